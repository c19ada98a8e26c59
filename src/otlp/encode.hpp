// encode: spans as OTLP's JSON, and what a collector answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "task/traces/spans.hpp"
#include "troupe/otlp/options.hpp"

namespace troupe::otlp {

// The resource, as an object of JSON: what is the same in all requests.
std::string resource_of(const exporter_options& options);
// The body of a request, with all spans of this list.
std::string body_of(std::string_view resource, const tasks::span_record* first);
// How many spans the collector says it has refused; 0 if the text is anything else than OTLP's
// JSON. At most `most`.
std::uint64_t rejected_in(std::string_view answer, std::uint64_t most) noexcept;

}  // namespace troupe::otlp
