// guarded_wheel: a wheel that threads share: its lock, and the timer whose function is running.
// One thread, the timers', expires those that are due (timers.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/walks/waiters_first.hpp"
#include "observe/counting/histogram.hpp"
#include "sched/runtime_host.hpp"
#include "task/timers/wheel.hpp"
#include "troupe/base/futex.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/small_mutex.hpp"

namespace troupe::tasks {

// By source, from timers::count_sources() on.
struct source_count {
  std::uint64_t armed = 0, expired = 0, cancelled = 0;
};
using source_counts = std::array<source_count, timer_sources>;

struct timer_counts {
  std::size_t armed = 0;
  std::int64_t strong = 0;  // of these, those that keep the program alive
  std::int64_t holds = 0;   // of the runtime, by wheels with strong timers
};

// Threads: any, where nothing else is said.
class guarded_wheel {
 public:
  // Comes before everything else. While a strong timer is armed, the wheel holds the runtime.
  void serve(sched::runtime_host& runtime, bool has_thread) noexcept {
    runtime_ = &runtime;
    has_thread_ = has_thread;
  }

  // True: the thread may look at this wheel later than this timer's time, and must be notified.
  // The timer is written only inside the lock: its function may have just told another thread, by a
  // relaxed word, that it can be armed again.
  bool arm(timer& entry, std::int64_t due_tick) {
    const auto lock = turns_.enter(mutex_);
    entry.due_tick = due_tick;
    // A wheel that has been empty for long has not been advanced: catch up first.
    if (wheel_.empty()) wheel_.advance(runtime_->now_ns() / wheel::tick_ns);
    wheel_.insert(entry);
    count(entry, &source_count::armed);
    if (!entry.weak && armed_++ == 0) runtime_->hold();
    if (entry.due_tick >= looks_by_) return false;
    looks_by_ = 0;  // one notification is enough
    return true;
  }
  // False: it has expired, and its function has returned.
  bool cancel(timer& entry) noexcept {
    auto lock = turns_.enter(mutex_);
    if (remove(entry)) return true;
    await_end(entry, lock);
    return false;
  }
  bool take_back(timer& entry) noexcept {
    const auto lock = turns_.enter(mutex_);
    return remove(entry);
  }
  template <class Change>
  bool while_armed(const timer& entry, Change change) {
    const auto lock = turns_.enter(mutex_);
    if (entry.is != timer::state::armed) return false;
    change();
    return true;
  }

  // As timers::for_each. False: `before` has ended the walk.
  static constexpr std::size_t piece_max = 64;
  template <class Look, class Before>
  bool for_each(Look& look, Before& before) {
    bool is_due = false, goes_on = true;
    for (bool begins = true, more = true; more; begins = false) {
      goes_on = before();
      if (!goes_on) break;
      if (!begins) let_in(is_due);
      std::lock_guard lock(mutex_);
      if (begins) wheel_.begin_walk();
      more = wheel_.walk(piece_max, look);
      is_due = is_thread_due();
    }
    std::lock_guard lock(mutex_);
    wheel_.end_walk();
    return goes_on;
  }
  // Disarms the timers for which `are` is true, and adds them to `taken`.
  template <class Are>
  void take_back_all(Are& are, timer_list& taken) {
    std::lock_guard lock(mutex_);
    wheel_.for_each([&](timer& entry) {
      if (!are(entry)) return true;
      remove(entry);
      taken.push_front(entry);
      return true;
    });
  }

  // Does not count `but`, if that is armed here; null for none.
  timer_counts count(const timer* but);
  // From now on each timer is counted by its source.
  void count_sources() noexcept { counts_sources_ = true; }
  void add_sources(source_counts& sums);
  void add_lateness(observe::value_counts& sums);

  // For the thread that keeps the time: expires the timers that are due, and returns when the wheel
  // has something to do next, a tick, or wheel::never. The thread expires again at that tick or
  // earlier: arm() asks for a notification for an earlier timer alone.
  std::int64_t expire();
  // When the wheel may have something to do next, a tick, or wheel::never.
  std::int64_t next_tick();
  // Expires all armed timers, whatever their times. False: there was none.
  bool expire_all();

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  using held = std::unique_lock<base::small_mutex>;

  bool remove(timer& entry) noexcept {
    if (entry.is != timer::state::armed && entry.is != timer::state::due) return false;
    wheel_.remove(entry);
    count(entry, &source_count::cancelled);
    if (!entry.weak && --armed_ == 0) runtime_->release();
    return true;
  }
  void count(const timer& entry, std::uint64_t source_count::*counter) noexcept {
    if (counts_sources_) [[unlikely]]
      ++(by_source_[static_cast<std::size_t>(entry.source)].*counter);
  }
  bool is_thread_due() const noexcept;
  void let_in(bool is_due) const noexcept;
  void expire_one(timer& entry, held& lock);
  void await_end(const timer& entry, held& lock) noexcept;

  source_counts by_source_{};
  observe::value_counts late_ns_;
  // The words that arm() and cancel() use lie together, down to the first members of the wheel.
  alignas(base::line_bytes) base::small_mutex mutex_;
  bool has_thread_ = true, counts_sources_ = false;
  base::waiters_first turns_;
  sched::runtime_host* runtime_ = nullptr;
  std::int64_t armed_ = 0;  // strong timers
  // a tick, by which the thread looks at this wheel; an earlier timer must notify it. 0: the thread
  // is at this wheel, or is notified
  std::int64_t looks_by_ = 0;
  const timer* expiring_ = nullptr;   // its function is running
  unsigned awaiting_end_ = 0;         // threads in cancel() that wait until it has returned
  base::kernel_futex::word ends_{0};  // functions that have returned while threads waited
  wheel wheel_;
};

}  // namespace troupe::tasks
