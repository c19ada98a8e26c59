// peer_of: describes a descriptor for the texts of errors.
#pragma once

#include <string>

#include "io/kernel/kernel.hpp"

namespace troupe::io {

// Returns "127.0.0.1:80" for a socket that has a peer, otherwise "descriptor 7".
std::string peer_of(kernel& calls, int fd);

}  // namespace troupe::io
