// with_span: a named part of a trace, which an exporter sends to a collector.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

#include "troupe/base/literal.hpp"
#include "troupe/task/limits.hpp"

namespace troupe {

// co_await with_span(name, task): awaits a task, or the awaitable that a callable makes, in a span
// of its own. A span is a part of a trace: it has a name, a begin, an end, and the span around it,
// and it failed if the task throws. Outside of a trace it begins a new trace. All that the task
// begins belongs to the span, as with with_trace.
//
// Spans are recorded while the program has an exporter (troupe/otlp/exporter.hpp). In an observed
// runtime the time of its turns is shown under the time of its handler, if it is within no other
// span. Otherwise this is the task itself, and the cost is one branch.
//
// Thread: the turns of the actor that awaits it. Cost: about 1 us when it is recorded, 300 ns when
// it is only observed. Errors: the task's.
//
// Example:
//     troupe::task<int> look_up(int key) { co_return key + 1; }
//     troupe::task<> use() {
//       std::cout << co_await troupe::with_span("look up", look_up(6)) << '\n';  // 7
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use());
//       rt.run();
//     }
template <class Given>
auto with_span(literal name, Given&& given) {
  return tasks::in_span(tasks::make_limited(std::forward<Given>(given)), tasks::span_kind::internal,
                        name.text());
}

namespace this_call {

// Adds an attribute to the span in which the calling handler, task, lazy or blocking function runs;
// does nothing outside of a span that is recorded. It is exported: give it no secrets. Thread: any.
// Cost: some ns when no span is recorded, else about 100.
//
// Example:
//     troupe::this_call::span_attribute("shop.items", 3);
//     troupe::this_call::span_attribute("shop.currency", "EUR");
void span_attribute(literal key, std::int64_t value) noexcept;
void span_attribute(literal key, std::string_view value) noexcept;

}  // namespace this_call

}  // namespace troupe
