// metrics_text: a program's numbers in the text format of Prometheus, or in OpenMetrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::observe_page {

// OpenMetrics also has the exemplars of histograms, which the other one has no place for.
enum class metrics_format : std::uint8_t { prometheus, open_metrics };

// The value of Content-Type.
const char* type_of(metrics_format format) noexcept;
// OpenMetrics for a reader whose field `Accept` prefers it to plain text.
metrics_format preferred_format(std::string_view accept) noexcept;

// `numbers` is a program's answer to that question. In base units: seconds and bytes. Throws
// std::runtime_error if it is none.
std::string as_metrics(std::string_view numbers,
                       metrics_format format = metrics_format::prometheus);

}  // namespace troupe::observe_page
