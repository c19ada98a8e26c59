// trace_context: the position of a call in a distributed trace, by the rules of W3C Trace Context.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// A trace is a tree of spans over several programs. This is the number of the trace, and the number
// of the span from which the next call goes out. A plain value. Thread: any.
//
// Example:
//     const auto here = troupe::trace_context::begin();
//     const auto there = troupe::trace_context::parse(here.traceparent());
//     std::cout << (there == here) << ' ' << here.traceparent().size() << '\n';  // 1 55
struct trace_context {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool sampled = true;  // whether spans of this trace are recorded

  // A new trace, with a first span. Random; under the simulated policy by the seed.
  static trace_context begin();
  // A new span of the same trace.
  trace_context child() const;

  // The value of the header field `traceparent`. Returns nothing if it breaks the rules: then a
  // receiver begins a new trace.
  static std::optional<trace_context> parse(std::string_view traceparent) noexcept;
  // Returns the value of that field, 55 characters.
  std::string traceparent() const;

  friend bool operator==(const trace_context&, const trace_context&) = default;
};

namespace this_call {

// The trace in which the calling handler, task, lazy or blocking function runs; nothing outside of
// with_trace. Thread: any. Cost: some ns.
std::optional<trace_context> trace() noexcept;

}  // namespace this_call

}  // namespace troupe
