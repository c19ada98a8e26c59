// timers: keeps the time of one runtime: a wheel, and a thread that sleeps until something is due.
//
// The thread is its own, so that no long handler delays a timer; it is started by the first one.
// Under the simulated policy there is no thread: the simulation moves the clock when nothing else
// is left to do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "task/wheel.hpp"

namespace troupe::tasks {

class timers {
 public:
  // The end of time: a simulation that comes to it goes on, and what is a little later must be a
  // time, too.
  static constexpr std::int64_t last_ns =
      INT64_MAX - std::chrono::nanoseconds(std::chrono::hours(24)).count();

  // `clock`: nanoseconds that never go back. `keep_alive`: the first timer is armed (true), the
  // last one is gone (false).
  timers(std::function<std::int64_t()> clock, std::function<void(bool)> keep_alive,
         bool has_thread);
  ~timers();
  void shut_down();

  void arm(timer& one, std::int64_t due_ns);
  bool cancel(timer& one) noexcept;
  // The same, without a wait for its function: for a timer that keeps itself alive.
  bool take_back(timer& one) noexcept;
  // Within the lock, and only while it has not expired and does not: whoever it wakes sees what
  // `change` did.
  template <class Change>
  bool while_armed(const timer& one, Change change) {
    std::lock_guard lock(mutex_);
    if (one.is != timer::state::armed) return false;
    change();
    return true;
  }
  // Those that are armed, within the lock, until `look` returns false.
  template <class Look>
  void for_each(Look look) {
    std::lock_guard lock(mutex_);
    wheel_.for_each(look);
  }
  // Takes those back that `are` says, as a list by `next`.
  template <class Are>
  timer* take_back_all(Are are) {
    std::lock_guard lock(mutex_);
    timer* taken = nullptr;
    wheel_.for_each([&](timer& one) {
      if (!are(one)) return true;
      remove(one);
      one.next = std::exchange(taken, &one);
      return true;
    });
    return taken;
  }
  std::int64_t now_ns() const { return clock_(); }
  struct counts {
    std::size_t armed = 0;
    std::int64_t strong = 0;  // of these: they keep the program alive
  };
  // Without `but`, if that is armed.
  counts count(const timer* but = nullptr);

  // Without a thread: when the next timer may be due, if there is one; expires what is due now.
  std::optional<std::int64_t> next_ns();
  void expire();
  // After shut_down: expires what is armed, whatever its time.
  void expire_all();

 private:
  bool remove(timer& one) noexcept;
  void keep_time();
  void expire_due(std::unique_lock<std::mutex>& lock);
  void expire_one(timer& one, std::unique_lock<std::mutex>& lock);

  const std::function<std::int64_t()> clock_;
  const std::function<void(bool)> keep_alive_;
  const bool has_thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  wheel wheel_;
  std::int64_t armed_ = 0;
  std::int64_t sleeps_until_ = 0;    // a tick; the thread wakes then by itself
  const timer* expiring_ = nullptr;  // its function is running
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::tasks
