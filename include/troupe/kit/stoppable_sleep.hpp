// stoppable_sleep: a sleep that a stop token can end, and tasks within limits. For the library's
// own use.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/sync/channels/waiter.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"

namespace troupe::kit {

// The operation of sync::awaiting. It is over when its time is reached.
class sleeping : public sync::waiter {
 public:
  static constexpr const char* name = "a sleep";
  explicit sleeping(time_span span, bool is_weak = false) noexcept
      : span_(span), alarm_(*this, is_weak) {}
  sleeping(sleeping&& other) noexcept : span_(other.span_), alarm_(*this, other.alarm_.weak) {}

  void begin_in(tasks::coroutine& suspended) noexcept { clock_ = suspended.call->at->clock; }
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
  // Such a wait is no stall when the program ends.
  bool is_weak() const noexcept { return alarm_.weak; }
  bool put_back() const noexcept { return true; }
  void finish() {
    if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  // No base of the operation: an awaitable with a time limit is a timer itself.
  struct alarm final : tasks::timer {
    alarm(sleeping& belongs_to, bool is_weak) noexcept
        : timer(&on_time, tasks::timer_source::sleep, is_weak), sleep(belongs_to) {}
    static void on_time(timer& self) noexcept {
      sleeping& over = static_cast<alarm&>(self).sleep;
      over.wake(over);
    }
    sleeping& sleep;
  };
  const std::chrono::nanoseconds span_;
  tasks::timers* clock_ = nullptr;
  alarm alarm_;
  std::exception_ptr failed_;
};

// co_await it with stop(): cancelled if a stop is requested first.
inline sync::awaiting<sleeping> stoppable_sleep(time_span span) noexcept {
  return sync::awaiting<sleeping>(std::in_place, span);
}

[[noreturn]] void throw_late(const char* task_name);

// Awaits the task. When the time is over or a stop is requested, the task is cancelled; when it has
// ended, this throws timed_out or cancelled. The name is a literal that names the task.
template <class T>
task<T> run_within(task<T> limited, tasks::limits within, const char* task_name) {
  if (!within.any()) co_return co_await std::move(limited);
  auto pause = stoppable_sleep(within.left());
  task<> limit = tasks::make_branch(std::move(pause).stop(within.stop()));
  tasks::coroutine* const roots[] = {&tasks::task_access::root(limited),
                                     &tasks::task_access::root(limit)};
  const std::size_t first = co_await tasks::join(true, roots);
  if (first == 0) co_return tasks::task_access::result(limited).take();
  tasks::task_access::result(limit).take();  // throws if it was stopped
  throw_late(task_name);
}

}  // namespace troupe::kit
