// trace: what each thread did when, written as a file or a table at the end of the program.
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe {

namespace observe {

// Those that end in _begin and _end enclose a time of one thread, and nest.
enum class event : std::uint8_t {
  spawned,     // an actor (its class)
  ended,       // an actor
  sent,        // a message (its method) to the actor `id`
  turn_begin,  // of the actor `id`
  turn_end,
  handle_begin,  // a message (its method), or the next part of a coroutine
  handle_end,
  post_begin,  // a posted procedure
  post_end,
  suspended,   // a coroutine of the actor `id`, for this
  resumed,     // what an actor waited for is over: it goes on
  park_begin,  // the thread sleeps
  park_end,
  woke,      // another worker
  stole,     // `id` runnables of another worker
  timer,     // it is due
  io_begin,  // an operation on the descriptor `id`
  io_end,    // its result
  lazy_queued,
  lazy_taken,   // out of the thread's own queue
  lazy_stolen,  // out of another thread's
  // nobody had begun it: it runs in the thread that wants it; `id`: 1 if it was queued there
  lazy_inline,
  lazy_begin,  // it runs
  lazy_end,
  asleep_begin,  // until another thread has computed a lazy
  asleep_end,
  context_made,  // the context `id`
  context_kept,  // a rollback or an end left memory of it to something persisted
  context_ended,
  span_begin,  // the user's
  span_end,
  mark,  // the user's
};

extern constinit std::atomic<bool> is_on;
// `what` is kept as it is: a literal, or as long-lived.
void record(event kind, const char* what, std::uint64_t id) noexcept;

// order: relaxed  a thread may notice a little late
TROUPE_INLINE bool tracing() noexcept { return is_on.load(std::memory_order_relaxed); }
TROUPE_INLINE void trace(event kind, const char* what, std::uint64_t id = 0) noexcept {
  if (tracing()) [[unlikely]]
    record(kind, what, id);
}

// While it exists the thread sleeps.
struct parked {
  parked() noexcept { trace(event::park_begin, nullptr); }
  parked(const parked&) = delete;
  parked& operator=(const parked&) = delete;
  ~parked() { trace(event::park_end, nullptr); }
};

}  // namespace observe

// A stretch of this thread's time under a name of yours, in the trace (TROUPE_TRACE, see the
// guide). One thread: not across a co_await. `name` is a literal: it is not copied. Cost: some 12
// ns each end while a trace is taken, else a branch.
//
// Example:
//     {
//       troupe::trace_span span("load the index");
//       troupe::trace_mark("half of it");
//     }
class trace_span {
 public:
  explicit trace_span(const char* name) noexcept : name_(name) {
    observe::trace(observe::event::span_begin, name_);
  }
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() { observe::trace(observe::event::span_end, name_); }

 private:
  const char* const name_;
};

// An instant; `value` is shown with it.
inline void trace_mark(const char* name, std::uint64_t value = 0) noexcept {
  observe::trace(observe::event::mark, name, value);
}

}  // namespace troupe
