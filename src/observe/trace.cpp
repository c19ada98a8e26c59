#include "troupe/observe/trace.hpp"

#include "observe/ticks.hpp"

namespace troupe::observe {

constinit std::atomic<std::uint8_t> watches{0};
constinit std::atomic<void (*)(event kind, const char* text, std::uint64_t id) noexcept> beside{
    nullptr};

void watch(watched flags) noexcept {
  if (is_watched(flags)) return;
  // order: relaxed  a thread may see it a little late
  watches.fetch_or(static_cast<std::uint8_t>(flags), std::memory_order_relaxed);
}

void unwatch(watched flags) noexcept {
  // order: relaxed  a thread may see it a little late
  watches.fetch_and(static_cast<std::uint8_t>(~static_cast<unsigned>(flags)),
                    std::memory_order_relaxed);
}

namespace {

constinit std::atomic<span_counter> counts_spans{nullptr};
// How many spans of the calling thread whose time is counted are open.
constinit thread_local unsigned open_spans [[gnu::tls_model("initial-exec")]] = 0;
// Replaces the begin of a span within another span: its time is not counted.
constexpr std::uint64_t within_another = 1;

}  // namespace

void count_spans_by(span_counter counter) noexcept {
  // order: relaxed  a function of the program's own; nothing else is published
  counts_spans.store(counter, std::memory_order_relaxed);
}

std::uint64_t begin_span(const char* name) noexcept {
  trace(event::span_begin, name);
  return begin_counted_span();
}

void end_span(const char* name, std::uint64_t began) noexcept {
  trace(event::span_end, name);
  end_counted_span(name, began);
}

std::uint64_t begin_counted_span() noexcept {
  if (!is_watched(watched::counts)) return 0;
  return open_spans++ == 0 ? now_ticks() : within_another;
}

void end_counted_span(const char* name, std::uint64_t began) noexcept {
  if (began == 0) return;
  --open_spans;
  // order: relaxed  as in count_spans_by
  const span_counter counter = counts_spans.load(std::memory_order_relaxed);
  if (began != within_another && counter != nullptr) counter(name, now_ticks() - began);
}

}  // namespace troupe::observe
