// timers: keeps the time of one runtime: a wheel, and a thread that sleeps until something is due.
//
// The thread does nothing else, so that no long handler delays a timer; the first timer starts it.
// Under the simulated policy there is no thread: the simulation moves the clock when nothing else
// is left to do.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/parker.hpp"
#include "base/walks/waiters_first.hpp"
#include "observe/counting/histogram.hpp"
#include "sched/runtime_host.hpp"
#include "task/timers/wheel.hpp"
#include "troupe/base/futex.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/small_mutex.hpp"

namespace troupe::tasks {

class timers {
 public:
  // The largest time. A simulation that reaches it continues, and a little later must still be a
  // representable time: hence one day less than the maximum.
  static constexpr std::int64_t last_ns =
      INT64_MAX - std::chrono::nanoseconds(std::chrono::hours(24)).count();

  // While a strong timer is armed they hold the runtime.
  timers(sched::runtime_host& host, bool has_thread) noexcept
      : runtime_(host), has_thread_(has_thread) {}
  ~timers();
  void shut_down();

  void arm(timer& entry, std::int64_t due_ns);
  bool cancel(timer& entry) noexcept;
  // As cancel, but does not wait for the timer's function to return: for a timer that keeps itself
  // alive.
  bool take_back(timer& entry) noexcept;
  // Runs `change` inside the lock if the timer is armed, and so has not begun to expire: a call
  // that the timer wakes later sees the effects of `change`.
  template <class Change>
  bool while_armed(const timer& entry, Change change) {
    const auto lock = turns_.enter(mutex_);
    if (entry.is != timer::state::armed) return false;
    change();
    return true;
  }
  // Calls `look` for each armed timer, inside the lock, at most piece_max times in one go: no
  // thread waits for the whole walk. Calls `before` outside of the lock before each piece, until
  // `before` returns false. A timer that moves in the wheel meanwhile may be found twice. One
  // thread at a time.
  static constexpr std::size_t piece_max = 64;
  template <class Look, class Before>
  void for_each(Look look, Before before) {
    bool is_due = false;
    for (bool begins = true, more = true; more && before(); begins = false) {
      if (!begins) let_in(is_due);
      std::lock_guard lock(mutex_);
      if (begins) wheel_.begin_walk();
      more = wheel_.walk(piece_max, look);
      is_due = is_thread_due();
    }
    std::lock_guard lock(mutex_);
    wheel_.end_walk();
  }
  // Disarms the timers for which `are` is true, and returns them.
  template <class Are>
  timer_list take_back_all(Are are) {
    std::lock_guard lock(mutex_);
    timer_list taken;
    wheel_.for_each([&](timer& entry) {
      if (!are(entry)) return true;
      remove(entry);
      taken.push_front(entry);
      return true;
    });
    return taken;
  }
  std::int64_t now_ns() const noexcept { return runtime_.now_ns(); }
  bool has_thread() const noexcept { return has_thread_; }
  struct counts {
    std::size_t armed = 0;
    std::int64_t strong = 0;  // of these, those that keep the program alive
  };
  // Does not count `but`, if that is armed.
  counts count(const timer* but = nullptr);

  // By source, since count_sources(), which comes before the first timer.
  struct source_count {
    std::uint64_t armed = 0, expired = 0, cancelled = 0;
  };
  using source_counts = std::array<source_count, timer_sources>;
  void count_sources() noexcept { counts_sources_ = true; }
  source_counts count_by_source() {
    std::lock_guard lock(mutex_);
    return by_source_;
  }
  // How long after its time each timer expired, in nanoseconds, counted like these.
  observe::value_counts count_lateness() {
    std::lock_guard lock(mutex_);
    return late_ns_;
  }

  // For a runtime without the thread: when the next timer may be due, if any is armed; and expiring
  // the timers that are due now.
  std::optional<std::int64_t> next_ns();
  void expire();
  // After shut_down: expires all armed timers, whatever their times.
  void expire_all();

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  bool remove(timer& entry) noexcept;
  bool is_thread_due() const noexcept;
  void let_in(bool is_due) const noexcept;
  using held = std::unique_lock<base::small_mutex>;
  void keep_time();
  void expire_due(held& lock);
  void expire_one(timer& entry, held& lock);
  void await_end(const timer& entry, held& lock) noexcept;

  void count(const timer& entry, std::uint64_t source_count::*counter) noexcept {
    if (counts_sources_) [[unlikely]]
      ++(by_source_[static_cast<std::size_t>(entry.source)].*counter);
  }

  sched::runtime_host& runtime_;
  const bool has_thread_;
  bool counts_sources_ = false;
  source_counts by_source_{};
  observe::value_counts late_ns_;
  // The words that arm() and cancel() use lie together, down to the first members of the wheel.
  alignas(base::line_bytes) base::small_mutex mutex_;
  base::waiters_first turns_;
  base::parker wakes_;  // of the thread
  std::thread thread_;
  std::int64_t armed_ = 0;
  // a tick; until then the thread sleeps unless it is notified. 0: the thread is awake
  std::int64_t sleeps_until_ = 0;
  const timer* expiring_ = nullptr;   // its function is running
  unsigned awaiting_end_ = 0;         // threads in cancel() that wait until it has returned
  base::kernel_futex::word ends_{0};  // functions that have returned while threads waited
  bool ending_ = false;
  wheel wheel_;
};

}  // namespace troupe::tasks
