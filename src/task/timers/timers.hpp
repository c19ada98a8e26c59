// timers: keeps the time of one runtime: wheels, and a thread that sleeps until something is due.
//
// The thread does nothing else, so that no long handler delays a timer; the first timer starts it.
// Under the simulated policy there is no thread: the simulation moves the clock when nothing else
// is left to do. Under policy::one_thread the worker expires the timers between its turns.
//
// Up to 16 workers share one wheel. More workers have a wheel for each eight of them, and the
// address of a timer chooses one: with one wheel its lock would be the limit of all timeouts that
// are armed and cancelled (docs/decisions/many_cores.md). The thread keeps the time of all wheels.
// It expires the timers of one wheel after the timers of another; when it is late, the order of
// two wheels' timers is therefore not the order of their times.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/parker.hpp"
#include "observe/counting/histogram.hpp"
#include "sched/executor.hpp"
#include "sched/runtime_host.hpp"
#include "task/timers/guarded_wheel.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::tasks {

// Which thread keeps the time.
enum class time_kept_by : std::uint8_t { own_thread, worker, simulation };

class timers final : public sched::timekeeper {
 public:
  // The largest time. A simulation that reaches it continues, and a little later must still be a
  // representable time: hence one day less than the maximum.
  static constexpr std::int64_t last_ns =
      INT64_MAX - std::chrono::nanoseconds(std::chrono::hours(24)).count();

  // While a strong timer is armed they hold the runtime.
  timers(sched::runtime_host& host, time_kept_by keeper, unsigned workers);
  ~timers();
  void shut_down();
  // For time_kept_by::worker, before the first timer: the pool of that worker.
  void notify(sched::policy& pool) noexcept { pool_ = &pool; }
  std::int64_t expire_due() noexcept override;

  void arm(timer& entry, std::int64_t due_ns) {
    // order: relaxed  begin() looks again inside its lock
    if (!has_begun_.load(std::memory_order_relaxed)) [[unlikely]]
      begin();
    if (wheel_of(entry).arm(entry, wheel::tick_of(due_ns))) expire_soon();
  }
  bool cancel(timer& entry) noexcept { return wheel_of(entry).cancel(entry); }
  // As cancel, but does not wait for the timer's function to return: for a timer that keeps itself
  // alive.
  bool take_back(timer& entry) noexcept { return wheel_of(entry).take_back(entry); }
  // Runs `change` inside the lock if the timer is armed, and so has not begun to expire: a call
  // that the timer wakes later sees the effects of `change`.
  template <class Change>
  bool while_armed(const timer& entry, Change change) {
    return wheel_of(entry).while_armed(entry, change);
  }
  // Calls `look` for each armed timer, inside the lock of its wheel, at most piece_max times in one
  // go: no thread waits for the whole walk. Calls `before` outside of the lock before each piece,
  // until `before` returns false. A timer that moves in the wheel meanwhile may be found twice. One
  // thread at a time.
  static constexpr std::size_t piece_max = guarded_wheel::piece_max;
  template <class Look, class Before>
  void for_each(Look look, Before before) {
    for (unsigned i = 0; i < number_ && wheels_[i].for_each(look, before); ++i) {
    }
  }
  // Disarms the timers for which `are` is true, and returns them: of one wheel after the other.
  template <class Are>
  timer_list take_back_all(Are are) {
    timer_list taken;
    for (unsigned i = 0; i < number_; ++i) wheels_[i].take_back_all(are, taken);
    return taken;
  }
  std::int64_t now_ns() const noexcept { return runtime_.now_ns(); }
  bool has_thread() const noexcept { return keeper_ == time_kept_by::own_thread; }
  // Does not count `but`, if that is armed. The wheels are counted one after the other.
  timer_counts count(const timer* but = nullptr);

  // Counts by source, from count_sources() on, which comes before the first timer.
  void count_sources() noexcept;
  source_counts count_by_source();
  // How long after its time each timer expired, in nanoseconds, counted like these.
  observe::value_counts count_lateness();

  // For a runtime without the thread: when the next timer may be due, if any is armed; and expiring
  // the timers that are due now.
  std::optional<std::int64_t> next_ns();
  void expire();
  // After shut_down: expires all armed timers, whatever their times.
  void expire_all();

  // For tests: how many wheels the timers have that are made from now on; 0 for the usual number.
  static void set_wheels(unsigned number) noexcept;

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  guarded_wheel& wheel_of(const timer& entry) const noexcept {
    if (number_ == 1) [[likely]]
      return wheels_[0];
    return wheels_[place_of(entry)];
  }
  unsigned place_of(const timer& entry) const noexcept;
  void begin();
  void expire_soon() noexcept;
  void keep_time();
  std::int64_t expire_wheels();

  const unsigned number_;  // of wheels
  const std::unique_ptr<guarded_wheel[]> wheels_;
  std::atomic<bool> has_begun_;
  const time_kept_by keeper_;
  sched::policy* pool_ = nullptr;
  sched::runtime_host& runtime_;
  alignas(base::line_bytes) base::parker wakes_;  // of the thread
  std::mutex beginning_;
  std::thread thread_;
  std::atomic<bool> ending_{false};
};

}  // namespace troupe::tasks
