// trace: a recording of the program's next seconds, for ui.perfetto.dev.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "troupe/http/response.hpp"
#include "troupe/task/task.hpp"

namespace troupe::observe_page {

inline constexpr int trace_seconds_max = 60;

// Asks for a trace at the program's socket, and passes it on as it comes: it may be large. `gone`
// is requested when the reader has disconnected; then the trace is given up.
task<http::response> trace(std::function<std::string()> socket, std::string seconds,
                           std::stop_token gone);

}  // namespace troupe::observe_page
