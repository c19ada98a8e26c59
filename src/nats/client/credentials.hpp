// credentials: the client's identity, from the options and the address of a server.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nats/protocol/info.hpp"
#include "nats/protocol/servers.hpp"
#include "troupe/nats/options.hpp"
#include "troupe/task/task.hpp"

namespace troupe::nats {

// Files are read anew for each connection, so that they may be renewed. Throws option_error for
// one that cannot be read, or has no key.
task<identity> make_identity(const server& target, std::string nonce,
                             std::shared_ptr<const options> by);

}  // namespace troupe::nats
