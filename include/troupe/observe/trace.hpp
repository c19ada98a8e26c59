// trace: the events of each thread with their times, written to a file or a table at the end of the
// program.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

#include "troupe/base/literal.hpp"
#include "troupe/base/platform.hpp"

namespace troupe {

namespace observe {

// Events that end in _begin and _end enclose a period of one thread; they nest.
enum class event : std::uint8_t {
  spawned,     // an actor (its class)
  ended,       // an actor
  sent,        // a message (its method) to actor `id`
  turn_begin,  // of actor `id`
  turn_end,
  handle_begin,  // a message (its method), or the next part of a coroutine
  handle_end,
  post_begin,  // a posted procedure
  post_end,
  suspended,   // a coroutine of actor `id`, with the event that it awaits
  resumed,     // the wait of an actor is over, and its coroutine continues
  park_begin,  // the thread sleeps
  park_end,
  woke,         // another worker
  stole,        // `id` runnables from another worker
  arrived,      // `id` runnables, of which other threads have mail or have made them
  timer,        // a timer is due
  io_begin,     // an operation on descriptor `id`
  io_end,       // with its result
  lazy_queued,  // of these, `id` is a lazy_event (src/observe/kinds.hpp)
  lazy_taken,   // from the thread's own queue
  lazy_stolen,  // from another thread's queue
  // no thread had begun it: it runs in the thread that needs it
  lazy_inline,
  lazy_begin,  // a lazy runs
  lazy_end,
  asleep_begin,  // the thread sleeps until another thread has computed a lazy
  asleep_end,
  context_made,  // context `id`
  context_kept,  // a rollback or an end left memory to persisted objects
  context_ended,
  span_begin,  // of the user
  span_end,
  mark,  // of the user
};

// The watched properties of each message, as bits: one load shows whether any is watched.
enum class watched : std::uint8_t {
  events = 1,          // a trace records them
  trace_contexts = 2,  // messages take along the trace in which they are sent
  counts = 4,          // a runtime counts them by class and handler
  spans = 8,           // parts of traces are recorded (src/task/traces/spans.hpp)
};
extern constinit std::atomic<std::uint8_t> watches;
// From now on. Thread: any.
void watch(watched flags) noexcept;
// No longer. A thread may see it a little late.
void unwatch(watched flags) noexcept;
// Keeps the pointer to the text: pass a literal, or a text that lives as long.
void record(event kind, const char* text, std::uint64_t id) noexcept;

// order: relaxed  a thread may see a change a little late
TROUPE_INLINE bool is_watched(watched flags) noexcept {
  return (watches.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(flags)) != 0;
}
// order: relaxed  as above
TROUPE_INLINE std::uint8_t all_watched() noexcept {
  return watches.load(std::memory_order_relaxed);
}
TROUPE_INLINE bool tracing() noexcept { return is_watched(watched::events); }

// The events that a flight recorder keeps beside the turns
// (src/observe/flight/recorder.hpp): causes for a worker to begin or end a row of turns, and the
// marks of the user.
constexpr bool is_beside(event kind) noexcept {
  switch (kind) {
    case event::post_end:
    case event::park_begin:
    case event::park_end:
    case event::stole:
    case event::arrived:
    case event::timer:
    case event::io_end:
    case event::mark:
      return true;
    default:
      return false;
  }
}
// Null while there is no flight recorder.
extern constinit std::atomic<void (*)(event kind, const char* text, std::uint64_t id) noexcept>
    beside;
// order: relaxed  as above
TROUPE_INLINE bool is_recorded(event kind) noexcept {
  return tracing() || (is_beside(kind) && beside.load(std::memory_order_relaxed) != nullptr);
}
TROUPE_INLINE void trace(event kind, const char* text, std::uint64_t id = 0) noexcept {
  if (is_recorded(kind)) [[unlikely]]
    record(kind, text, id);
}

// The two halves of a trace_span while a trace is taken, or a runtime is observed. begin_span
// returns the argument of end_span: 0, unless the span's time is counted.
std::uint64_t begin_span(const char* name) noexcept;
void end_span(const char* name, std::uint64_t began) noexcept;
// The same without a trace of it: for a part of a span that several turns share.
std::uint64_t begin_counted_span() noexcept;
void end_counted_span(const char* name, std::uint64_t began) noexcept;
// Counts the time of spans that are within no other span: called by the thread that has run it, at
// its end.
using span_counter = void (*)(const char* name, std::uint64_t ticks) noexcept;
void count_spans_by(span_counter counter) noexcept;

// The thread sleeps while this object exists.
struct parked {
  parked() noexcept { trace(event::park_begin, nullptr); }
  parked(const parked&) = delete;
  parked& operator=(const parked&) = delete;
  ~parked() { trace(event::park_end, nullptr); }
};

}  // namespace observe

// A named period of this thread in the trace (TROUPE_TRACE, see the guide). In an observed runtime,
// its time is shown under its handler's, if it is within no other period. Thread: one; do not use
// it across a co_await. Cost: about 12 ns at each end while a trace is taken, and 20 ns in a
// runtime that is observed; otherwise one branch.
//
// Example:
//     {
//       troupe::trace_span span("load the index");
//       troupe::trace_mark("half of it");
//     }
class trace_span {
 public:
  explicit trace_span(literal name) noexcept
      : name_(name),
        began_((observe::all_watched() & watched_for) == 0 ? 0 : observe::begin_span(name.text())) {
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() {
    if ((observe::all_watched() & watched_for) != 0 || began_ != 0) [[unlikely]]
      observe::end_span(name_.text(), began_);
  }

 private:
  static constexpr auto watched_for =
      static_cast<std::uint8_t>(static_cast<unsigned>(observe::watched::events) |
                                static_cast<unsigned>(observe::watched::counts));

  const literal name_;
  const std::uint64_t began_;
};

// A moment in the trace; `value` is shown with it.
inline void trace_mark(literal name, std::uint64_t value = 0) noexcept {
  observe::trace(observe::event::mark, name.text(), value);
}

}  // namespace troupe
