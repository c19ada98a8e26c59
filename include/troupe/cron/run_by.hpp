// run_by: calls a procedure at the times of a schedule.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "troupe/cron/schedule.hpp"
#include "troupe/runtime/limited_task.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

// Options of run_by() and until_next(): plain values, which may be written where they are used.
struct cron_options {
  // True: waiting for the next time does not keep the program alive. Default false.
  bool weak = false;
  // The time at which a simulated program begins. Default 2000-01-01 00:00 UTC.
  wall_time simulated_start =
      std::chrono::sys_days(std::chrono::year(2000) / std::chrono::January / 1);
};

namespace cron {

// The call of until_next().
class until_call {
 public:
  using result = cron_schedule::time_point;
  until_call(cron_schedule schedule, cron_options options) noexcept
      : schedule_(std::move(schedule)), options_(options) {}
  task<result> start(tasks::limits within) &&;

 private:
  static task<result> wait(result due, cron_options options, tasks::limits within);
  cron_schedule schedule_;
  cron_options options_;
};

// The part of run_by() that does not depend on the procedure.
class course {
 public:
  course(cron_schedule schedule, std::stop_token stop, cron_options options) noexcept
      : schedule_(std::move(schedule)), stop_(std::move(stop)), options_(options) {}
  // Waits for the next time. Returns false if a stop was requested.
  task<bool> wait();
  cron_schedule::time_point due() const noexcept { return due_; }

 private:
  // If a clock is set back by more than this, it was wrong before.
  static constexpr std::chrono::hours set_back_max{3};
  const cron_schedule schedule_;
  const std::stop_token stop_;
  const cron_options options_;
  cron_schedule::time_point due_{};  // the last time
};

// Calls the procedure, with its due time if it takes an argument.
template <class Procedure>
decltype(auto) call_at(Procedure& procedure, cron_schedule::time_point due) {
  if constexpr (std::invocable<Procedure&, cron_schedule::time_point>) {
    return procedure(due);
  } else {
    return procedure();
  }
}

}  // namespace cron

// Waits for the next time of the schedule, which it returns: co_await it, with timeout() or stop()
// if need be. Thread: a handler or a task. Errors: timed_out, cancelled. Limits: while it waits, it
// reads the system clock every 30 seconds, and notices a change of the clock up to 30 seconds late.
//
// Example:
//     const auto at = co_await troupe::until_next(troupe::cron_schedule("* * * * * *"));
//     std::cout << std::chrono::system_clock::to_time_t(at) << '\n';
inline tasks::limited_task<cron::until_call> until_next(cron_schedule schedule,
                                                        cron_options options = {}) {
  return tasks::limited_task<cron::until_call>(std::in_place, std::move(schedule), options);
}

// Calls `procedure` at each time of the schedule, with that time as an argument if it takes an
// argument. The procedure may return a task or another awaitable, which is awaited. Calls do not
// overlap: times that come while a call runs are skipped. It is a task: spawn it. It ends when a
// stop is requested, which does not interrupt a call that runs, or with the error that the
// procedure throws.
//
// Thread: the task's. Time: the system clock; under the simulated policy virtual time, which begins
// at options.simulated_start. If the clock is set back by up to 3 hours, no time comes twice.
// Limits: as until_next(). With GCC 12, give `procedure` a name first if it captures more than
// plain values, and you await the task rather than spawn it (task.hpp).
//
// Example:
//     troupe::runtime rt({.policy = troupe::policy::simulated});
//     std::stop_source stop;
//     int calls = 0;
//     const auto backup = [&](troupe::cron_schedule::time_point) {
//       if (++calls == 3) stop.request_stop();
//     };
//     rt.spawn(troupe::run_by(troupe::cron_schedule("0 2 * * *", "Europe/Berlin"), backup,
//                             stop.get_token()));
//     rt.run();  // three days pass at once
template <class Procedure>
task<> run_by(cron_schedule schedule, Procedure procedure, std::stop_token stop,
              cron_options options = {}) {
  static_assert(std::invocable<Procedure&> || std::invocable<Procedure&, cron_schedule::time_point>,
                "troupe: run_by: the procedure is called without arguments, or with the time");
  cron::course course(std::move(schedule), std::move(stop), options);
  for (;;) {
    task<bool> waits = course.wait();
    const bool is_due = co_await std::move(waits);
    if (!is_due) co_return;
    using result = decltype(cron::call_at(procedure, course.due()));
    if constexpr (tasks::awaitable<result>) {
      auto called = cron::call_at(procedure, course.due());
      static_cast<void>(co_await std::move(called));
    } else {
      static_cast<void>(cron::call_at(procedure, course.due()));
    }
  }
}
template <class Procedure>
task<> run_by(cron_schedule schedule, Procedure procedure, cron_options options = {}) {
  return run_by(std::move(schedule), std::move(procedure), std::stop_token(), options);
}

}  // namespace troupe
