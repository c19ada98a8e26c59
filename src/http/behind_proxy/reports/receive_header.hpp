// receive_header: receives the header of the PROXY protocol, and no byte behind it, because the
// bytes that follow belong to TLS or to HTTP.
#pragma once

#include <optional>
#include <stop_token>

#include "http/behind_proxy/proxy_header.hpp"
#include "http/behind_proxy/reports/counters.hpp"
#include "troupe/http/options.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// Empty if the connection is to be closed; then the reason is counted. Cost: a few system calls for
// each header, since the length of version 1 is not known before its end. `stopping`: the server
// stops, and the header has only a moment left. Lifetime: `options`, `counts` and `from` outlive
// the task.
task<std::optional<proxy_header>> receive_proxy_header(const proxy_protocol_options& options,
                                                       std::stop_token stopping,
                                                       proxy_header_counters& counts, stream& from);

}  // namespace troupe::http
