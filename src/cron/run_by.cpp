#include "troupe/cron/run_by.hpp"

#include <algorithm>

#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/sync/waiting.hpp"

namespace troupe::cron {
namespace {

using system_time = std::chrono::system_clock::time_point;

// The time of the system, or of the simulated program.
system_time time_now(const cron_options& options) {
  if (!kit::is_simulated()) return std::chrono::system_clock::now();
  return system_time(time_span(now()).after(options.simulated_start.time_since_epoch()));
}

// Returns false if the time of the limits was over first; throws cancelled after a stop.
task<bool> sleep_until(cron_schedule::time_point due, cron_options options, tasks::limits within) {
  // The system clock may be set while we wait; virtual time may not.
  constexpr std::chrono::nanoseconds longest_sleep = std::chrono::seconds(30);
  for (;;) {
    if (within.stop().stop_requested())
      throw cancelled("troupe: cron: a stop was requested before the time came");
    const std::chrono::nanoseconds span = due - time_now(options);
    if (span.count() <= 0) co_return true;
    const std::chrono::nanoseconds left = within.left();
    if (left.count() <= 0) co_return false;
    const std::chrono::nanoseconds at_most = kit::is_simulated() ? span : longest_sleep;
    sync::awaiting<kit::sleeping> sleeps(std::in_place, std::min({span, at_most, left}),
                                         options.weak);
    co_await std::move(sleeps).stop(within.stop());
  }
}

}  // namespace

task<cron_schedule::time_point> until_call::start(tasks::limits within) && {
  const cron_schedule::time_point due = schedule_.next(time_now(options_));
  return wait(due, options_, std::move(within));
}

task<cron_schedule::time_point> until_call::wait(cron_schedule::time_point due,
                                                 cron_options options, tasks::limits within) {
  task<bool> sleeps = sleep_until(due, options, std::move(within));
  const bool is_due = co_await std::move(sleeps);
  if (!is_due) throw timed_out("troupe: until_next: the schedule has no time before the limit");
  co_return due;
}

task<bool> course::wait() {
  const system_time now = time_now(options_);
  const bool was_set_back = now < due_ && due_ - now <= set_back_max;
  due_ = schedule_.next(was_set_back ? system_time(due_) : now);
  bool is_stopped = false;
  try {
    task<bool> sleeps =
        sleep_until(due_, options_, tasks::limits(std::chrono::nanoseconds::max(), stop_));
    co_await std::move(sleeps);
  } catch (const cancelled&) {
    is_stopped = stop_.stop_requested();
    if (!is_stopped) throw;
  }
  co_return !is_stopped;
}

}  // namespace troupe::cron
