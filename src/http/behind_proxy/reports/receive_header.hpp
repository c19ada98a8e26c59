// receive_header: receives the header of the PROXY protocol, and no byte behind it, because the
// bytes that follow belong to TLS or to HTTP.
#pragma once

#include <optional>

#include "http/behind_proxy/proxy_header.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

struct server_state;

// Empty if the connection is to be closed; then the reason is counted. Cost: a few system calls for
// each header, since the length of version 1 is not known before its end.
task<std::optional<proxy_header>> receive_proxy_header(server_state& server, stream& from);

}  // namespace troupe::http
