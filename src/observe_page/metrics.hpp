// metrics: a program's numbers in the text format of Prometheus.
#pragma once

#include <string>
#include <string_view>

namespace troupe::observe_page {

inline constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

// `numbers` is a program's answer to that question. In base units: seconds and bytes. Throws
// std::runtime_error if it is none.
std::string as_metrics(std::string_view numbers);

}  // namespace troupe::observe_page
