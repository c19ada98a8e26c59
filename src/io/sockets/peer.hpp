// peer_of: a descriptor in words, for errors.
#pragma once

#include <string>

#include "io/reactor/kernel.hpp"

namespace troupe::io {

// "127.0.0.1:80" of a socket that has a peer, else "descriptor 7".
std::string peer_of(kernel& calls, int fd);

}  // namespace troupe::io
