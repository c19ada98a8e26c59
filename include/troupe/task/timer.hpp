// timer: an event at a point in time. For the library's own use; users meet sleep_for, after(),
// every() and timeouts.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"

namespace troupe::tasks {

class timers;

// The purpose of a timer, by which timers are counted while a runtime is observed.
enum class timer_source : std::uint8_t {
  sleep,       // sleep_for
  after,       // runtime::after
  every,       // runtime::every
  timeout,     // a limit of a future, a lock, a channel, or a stream
  io_timeout,  // a limit of an operation of I/O
  deadline,    // of a call
  runtime,     // the runtime's own
};
inline constexpr std::size_t timer_sources = 7;

// An armed timer must not move before it has expired or cancel() has returned.
struct timer {
  enum class state : std::uint8_t { idle, armed, due, fired };

  // `on_time` runs on the thread that keeps the time; it may free the timer.
  timer(void (*on_time)(timer&) noexcept, timer_source what_for, bool is_weak = false) noexcept
      : expired(on_time), weak(is_weak), source(what_for) {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  void (*const expired)(timer&) noexcept;
  base::list_link<timer> link;  // belongs to the timer wheel
  std::int64_t due_tick = 0;    // belongs to the owner before the timer is armed
  std::uint16_t slot = 0;
  state is = state::idle;
  bool weak;  // a weak timer does not keep the program alive
  timer_source source;
};

// Arms the timer. `due_ns` is in the clock's own time; a time in the past is due at once. Throws
// std::system_error if the thread that keeps the time cannot be started. Thread: any.
void arm(timers& clock, timer& entry, std::int64_t due_ns);
// Returns true if the timer has not expired and will not. False: it has expired, and its function
// has returned.
bool cancel(timers& clock, timer& entry) noexcept;
std::int64_t now_ns(const timers& clock) noexcept;
// The time at which a span that begins now ends; a time too far away becomes the largest time.
std::int64_t due_in(const timers& clock, std::chrono::nanoseconds span) noexcept;

// The suspension of sleep_for.
class sleep_suspension final : public suspension, public timer {
 public:
  // For the branches of when_any: a sleep that has won moves nothing until its losers have ended.
  static constexpr bool puts_back = true;
  sleep_suspension(std::int64_t span_ns, bool is_weak) noexcept
      : suspension(&act_on), timer(&on_time, timer_source::sleep, is_weak) {
    due_tick = span_ns;
    excused = is_weak;
  }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    return suspend(awaiting.promise());
  }
  void await_resume() const;
  // The sleep of which this wait, or this timer, is a part; null if it is part of no sleep.
  static sleep_suspension* of(suspension& part) noexcept {
    return part.act == &act_on ? static_cast<sleep_suspension*>(&part) : nullptr;
  }
  static sleep_suspension* of(timer& part) noexcept {
    return part.expired == &on_time ? static_cast<sleep_suspension*>(&part) : nullptr;
  }

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  bool suspend(coroutine& awaiting);
  static const char* act_on(sched::message*, void*, sched::message_act);
  static void on_time(timer& self) noexcept;
};

// One word, since it lies in the coroutine's frame beside the suspension.
class sleep {
 public:
  explicit sleep(time_span span) noexcept : ns_(std::max<std::int64_t>(span.count(), 0)) {}
  // The program may run out of work during this sleep; the task then continues in the next run(),
  // if at all.
  sleep weak() const noexcept {
    sleep same = *this;
    if (ns_ >= 0) same.ns_ = ~ns_;
    return same;
  }
  sleep_suspension operator co_await() const noexcept {
    return ns_ < 0 ? sleep_suspension(~ns_, true) : sleep_suspension(ns_, false);
  }

 private:
  std::int64_t ns_;  // negative for a weak sleep: the complement of the span
};

// Ends as soon as the other actors of the worker had their turn.
class yield_wait final : public suspension {
 public:
  yield_wait() noexcept : suspension(&act_on) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    return suspend(awaiting.promise());
  }
  void await_resume() const;

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  bool suspend(coroutine& awaiting) noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
};
class yielding {
 public:
  yielding() noexcept {}
  yield_wait operator co_await() const noexcept { return yield_wait(); }
};

}  // namespace troupe::tasks

namespace troupe {

// co_await yield(): each other actor of this worker gets a turn before the task continues. The
// messages of the task's own actor wait meanwhile, as always while a turn is suspended. Errors:
// throws cancelled when its actor is stopped.
[[nodiscard]] inline tasks::yielding yield() noexcept { return {}; }

// co_await sleep_for(span): the task continues after `span` at the earliest, on its actor's worker.
// No thread blocks. Accuracy: about 0.1 ms late on an idle machine. Errors: throws cancelled when
// its actor is stopped. Under the simulated policy the time is virtual and passes at once.
//
// Example:
//     troupe::task<> blink() {
//       for (int i = 0; i < 3; ++i) co_await troupe::sleep_for(std::chrono::milliseconds(1));
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(blink());
//       rt.run();
//     }
//
// A template, so that the span is converted here, and not in the frame of the awaiting coroutine.
template <class Count, class Unit>
requires std::convertible_to<std::chrono::duration<Count, Unit>, time_span>
[[nodiscard]] tasks::sleep sleep_for(std::chrono::duration<Count, Unit> span) noexcept {
  return tasks::sleep(time_span(span));
}
TROUPE_REFUSE_REST(
    sleep_for,
    "troupe: sleep_for: it takes a time with its unit, as std::chrono::milliseconds(100)");

}  // namespace troupe
