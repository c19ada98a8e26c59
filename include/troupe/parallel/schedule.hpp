// schedule: when the call of a submission begins, and the parts of its run that do not depend on
// types. For the library's own use.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/context/context.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sched/message.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe::submissions {

// An event or a time, and the source line of the user's call: the default argument of a converting
// constructor is evaluated where the outer call is written.
struct event_at {
  // implicit
  event_at(const event& set, tasks::source_line here = __builtin_source_location())
      : of(set), where(here) {}
  event of;
  tasks::source_line where;
};
struct span_at {
  template <std::convertible_to<std::chrono::nanoseconds> Span>
  // implicit
  span_at(const Span& given, tasks::source_line here = __builtin_source_location())
      : of(given), where(here) {}
  std::chrono::nanoseconds of;
  tasks::source_line where;
};

// When the calls of a submission begin.
struct schedule {
  std::chrono::nanoseconds after{0};
  std::chrono::nanoseconds every{0};  // zero: once
  std::optional<event> when{};
  // the longest wait for the event
  std::chrono::nanoseconds at_most = std::chrono::nanoseconds::max();
  std::stop_token stop{};
  bool weak = false;
  tasks::source_line where = nullptr;  // the source line of the submission
  std::int64_t due_ns = 0;             // due time of the last call, on the runtime's clock
};

// Waits until the next call is due. Returns false if there are no more calls. Throws timed_out.
task<bool> wait_to_begin(schedule& of);

// Runs the task on the pool of `rt`, or of the runtime of the running handler if `rt` is null.
void start(runtime* rt, task<> run);

// Reports a failure of the actor whose turn this is, or of the submission itself. The context lives
// until run() has thrown the failure, and until the next one that run() throws; otherwise it ends
// at once. The caller must hold no other reference to the exception. `describes` names what has
// failed; null: a submitted call.
void report(std::exception_ptr what, owned_context of,
            sched::message::handler describes = nullptr) noexcept;

// A cancelled call has failed: throws cancelled, which refers to no context, and reports any other
// exception.
[[noreturn]] void end_cancelled(std::exception_ptr what, owned_context of);

// Calls `run(what)` in a turn of the actor. The future becomes true when that was done, false if
// the actor had stopped. The caller holds the actor. Throws std::bad_alloc.
future<bool> run_in_turn(void* actor, void* what, void (*run)(void* what) noexcept);

// co_await it: whether the task is being cancelled, by its actor's stop or the runtime's end.
class being_cancelled {
 public:
  being_cancelled() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
    cancelled_ = who.promise().in->cancelled;
    return false;
  }
  bool await_resume() const noexcept { return cancelled_; }

 private:
  bool cancelled_ = false;
};

// A reference to the actor whose turn this is, if there is one.
class actor_hold {
 public:
  actor_hold() noexcept;
  actor_hold(actor_hold&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  actor_hold& operator=(actor_hold&&) = delete;
  ~actor_hold();
  void* get() const noexcept { return held_; }

 private:
  void* held_;
};

}  // namespace troupe::submissions
