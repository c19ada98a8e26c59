// stoppable_sleep: a sleep that a stop token can end.
#pragma once

#include <chrono>
#include <exception>
#include <utility>

#include "troupe/sync/waiter.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::kit {

// The operation of sync::awaiting. It is over when its time has come.
class sleeping : public sync::waiter {
 public:
  static constexpr const char* name = "a sleep";
  explicit sleeping(std::chrono::nanoseconds span, bool is_weak = false) noexcept
      : span_(span), alarm_(*this, is_weak) {}
  sleeping(sleeping&& other) noexcept : span_(other.span_), alarm_(*this, other.alarm_.weak) {}

  void begin_in(tasks::coroutine& suspended) noexcept { clock_ = suspended.in->at->clock; }
  bool start() noexcept {
    try {
      tasks::arm(*clock_, alarm_, tasks::due_in(*clock_, span_));
      return true;
    } catch (...) {
      failed_ = std::current_exception();
      return false;
    }
  }
  bool withdraw() noexcept { return tasks::cancel(*clock_, alarm_); }
  void finish() {
    if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  // No base of the operation: an awaitable with a time limit is a timer itself.
  struct alarm final : tasks::timer {
    alarm(sleeping& belongs_to, bool is_weak) noexcept : timer(&on_time, is_weak), of(belongs_to) {}
    static void on_time(timer& self) noexcept {
      sleeping& over = static_cast<alarm&>(self).of;
      over.wake(over);
    }
    sleeping& of;
  };
  const std::chrono::nanoseconds span_;
  tasks::timers* clock_ = nullptr;
  alarm alarm_;
  std::exception_ptr failed_;
};

// co_await it with stop(): cancelled if a stop is requested first.
inline sync::awaiting<sleeping> stoppable_sleep(std::chrono::nanoseconds span) noexcept {
  return sync::awaiting<sleeping>(std::in_place, span);
}

}  // namespace troupe::kit
