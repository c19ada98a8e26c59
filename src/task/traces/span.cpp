#include "troupe/task/traces/span.hpp"

#include "troupe/task/call_context.hpp"

namespace troupe::this_call {

void span_attribute(literal key, std::int64_t value) noexcept {
  if (tasks::call_context* const within = tasks::current_context())
    tasks::add_to_span(*within, key.text(), value);
}

void span_attribute(literal key, std::string_view value) noexcept {
  if (tasks::call_context* const within = tasks::current_context())
    tasks::add_to_span(*within, key.text(), value);
}

}  // namespace troupe::this_call
