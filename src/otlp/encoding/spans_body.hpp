// spans_body: the spans of a program as OTLP's JSON.
#pragma once

#include <string>
#include <string_view>

#include "task/traces/spans.hpp"

namespace troupe::otlp {

// The body of a request, with all spans of this list.
std::string spans_body(std::string_view resource, const tasks::span_record* first);

}  // namespace troupe::otlp
