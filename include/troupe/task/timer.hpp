// timer: something that happens at a time. The library's own; users meet sleep_for, sleep_until and
// timeouts.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "troupe/base/platform.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"

namespace troupe::tasks {

class timers;

// Armed, it stays where it is until it has expired or cancel() has returned.
struct timer {
  enum class state : std::uint8_t { idle, armed, due, fired };

  // On the thread that keeps the time; it may free the timer.
  explicit timer(void (*on_time)(timer&) noexcept, bool is_weak = false) noexcept
      : expired(on_time), weak(is_weak) {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;

  void (*const expired)(timer&) noexcept;
  timer* next = nullptr;  // these are the wheel's
  timer** link = nullptr;
  std::int64_t due_tick = 0;  // before it is armed, its owner's
  std::uint16_t slot = 0;
  state is = state::idle;
  bool weak;  // it does not keep the program alive
};

// Any thread. `due_ns` in the clock's own time; what is past is due at once. Throws
// std::system_error when the thread that keeps the time cannot be started.
void arm(timers& clock, timer& one, std::int64_t due_ns);
// True when it has not expired and will not. False: it has, and its function has returned.
bool cancel(timers& clock, timer& one) noexcept;
std::int64_t now_ns(const timers& clock) noexcept;
// A span from now on as a time; far ones count as the end of time.
std::int64_t due_in(const timers& clock, std::chrono::nanoseconds span) noexcept;

class sleep_suspension final : public suspension, public timer {
 public:
  sleep_suspension(std::int64_t span_ns, bool is_weak) noexcept
      : suspension(&act_on), timer(&on_time, is_weak) {
    due_tick = span_ns;
    excused = is_weak;
  }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    return suspend(awaiting.promise());
  }
  void await_resume() const;
  // What the wait, or the timer, is a part of; null if that is no sleep.
  static sleep_suspension* of(suspension& part) noexcept {
    return part.act == &act_on ? static_cast<sleep_suspension*>(&part) : nullptr;
  }
  static sleep_suspension* of(timer& part) noexcept {
    return part.expired == &on_time ? static_cast<sleep_suspension*>(&part) : nullptr;
  }

 private:
  bool suspend(coroutine& who);
  static const char* act_on(sched::message*, void*, sched::message_act);
  static void on_time(timer& self) noexcept;
};

// One word, since it lies in the coroutine's frame beside its wait.
class sleep {
 public:
  explicit sleep(std::chrono::nanoseconds span) noexcept
      : ns_(std::max<std::int64_t>(span.count(), 0)) {}
  // The program may be out of work while this sleeps; then it does not go on before the next run(),
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
  std::int64_t ns_;  // less than zero: of a weak one, the complement
};

// Over as soon as the other actors of the worker had their turn.
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
  bool suspend(coroutine& who) noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
};
class yielding {
 public:
  yielding() noexcept {}
  yield_wait operator co_await() const noexcept { return yield_wait(); }
};

}  // namespace troupe::tasks

namespace troupe {

// co_await yield(): the other actors of this worker have a turn each before the task goes on. Its
// own actor's messages wait, as always while a turn is suspended. Throws cancelled when its actor
// is stopped.
[[nodiscard]] inline tasks::yielding yield() noexcept { return {}; }

// co_await sleep_for(d): the task goes on after `d` at the earliest, on its actor's worker; no
// thread sleeps. Lateness: about 0.1 ms on an idle machine. Throws cancelled when its actor is
// stopped. Under the simulated policy the time is virtual and passes at once.
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
[[nodiscard]] inline tasks::sleep sleep_for(std::chrono::nanoseconds span) noexcept {
  return tasks::sleep(span);
}
// So that a span of another unit is not converted in the frame of who awaits it.
template <class Count, class Unit>
requires std::convertible_to<std::chrono::duration<Count, Unit>, std::chrono::nanoseconds>
[[nodiscard]] tasks::sleep sleep_for(std::chrono::duration<Count, Unit> span) noexcept {
  return tasks::sleep(span);
}
TROUPE_REFUSE_REST(
    sleep_for,
    "troupe: sleep_for: it takes a time with its unit, as std::chrono::milliseconds(100)");
// The same until a time of the steady clock; one that is past is due at once. Under the simulated
// policy use sleep_for: real times mean nothing there.
[[nodiscard]] inline tasks::sleep sleep_until(std::chrono::steady_clock::time_point due) noexcept {
  const auto now = std::chrono::steady_clock::now();
  // a difference to what is long past may overflow
  return tasks::sleep(due > now ? due - now : std::chrono::nanoseconds(0));
}

}  // namespace troupe
