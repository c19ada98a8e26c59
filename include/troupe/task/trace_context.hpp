// trace_context: the position of a call in a distributed trace, by the rules of W3C Trace Context.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// A trace is a tree of spans over several programs. This is the number of the trace, and the number
// of the span from which the next call goes out. A plain value; a copy allocates nothing. Thread:
// any.
//
// Example:
//     const auto here = troupe::trace_context::begin();
//     const auto there = troupe::trace_context::parse(here.traceparent());
//     std::cout << (there == here) << ' ' << here.traceparent().size() << '\n';  // 1 55
struct trace_context {
  // Not an aggregate: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression.
  trace_context() noexcept {}
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  bool sampled = true;  // whether spans of this trace are recorded

  // A new trace, with a first span. Random; under the simulated policy by the seed.
  static trace_context begin();
  // A new span of the same trace.
  trace_context child() const;

  // Reads the values of the header fields `traceparent` and `tracestate`. Returns nothing if the
  // former breaks the rules: then a receiver begins a new trace. A malformed `tracestate` is
  // ignored. Several fields `tracestate` are one list: join them by commas. A list of more than 512
  // characters is shortened by the rules of the standard.
  static std::optional<trace_context> parse(std::string_view traceparent,
                                            std::string_view tracestate = {}) noexcept;
  // Returns the value of the field `traceparent`, 55 characters.
  std::string traceparent() const;
  // Returns the value of the field `tracestate`: data of the tracing systems that took part so far,
  // which go with each call of the trace unchanged. Empty: none. Lifetime: as this trace_context.
  std::string_view tracestate() const noexcept {
    return tracestate_ == nullptr ? std::string_view() : std::string_view(*tracestate_);
  }

  friend bool operator==(const trace_context& a, const trace_context& b) noexcept {
    return a.trace_id == b.trace_id && a.span_id == b.span_id && a.sampled == b.sampled &&
           a.tracestate() == b.tracestate();
  }

 private:
  std::shared_ptr<const std::string> tracestate_;  // shared by all contexts of the trace
};

namespace this_call {

// The trace in which the calling handler, task, lazy or blocking function runs; nothing outside of
// with_trace. Thread: any. Cost: some ns.
std::optional<trace_context> trace() noexcept;

}  // namespace this_call

}  // namespace troupe
