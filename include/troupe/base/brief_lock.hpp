// brief_lock: a lock of one byte, for sections of a few nanoseconds that are entered very often.
// Threads: any. Not recursive, not fair; a thread that waits asks again and again, and sleeps in
// between when it has asked for long.
// Invariants
//   X1  there is one holder at a time, and it sees the writes of the holder before.
//   X2  unlock uses nothing after it has set the word free: the object may be gone then.
//
// A small_mutex needs a locked instruction at both ends, a brief_lock at one: unlock is a plain
// store. For that a holder that the kernel preempts inside lets others wait up to sleep_max longer.
// docs/decisions/brief_lock.md.
// Model: tests/models/base/brief_lock.cpp.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>

#include "troupe/base/platform.hpp"

namespace troupe::base {

struct brief_lock_parts {
  template <class T>
  using atomic = std::atomic<T>;
  // Waits before the next attempt: `attempt` counts those that failed.
  static void wait(unsigned attempt) noexcept;
};

template <class Parts = brief_lock_parts>
class basic_brief_lock {
 public:
  basic_brief_lock() = default;
  basic_brief_lock(const basic_brief_lock&) = delete;
  basic_brief_lock& operator=(const basic_brief_lock&) = delete;

  TROUPE_INLINE void lock() noexcept {
    // order: acquire  sees the writes of the holder before (X1); pairs with unlock/release
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      lock_slowly();
  }

  TROUPE_INLINE void unlock() noexcept {
    // order: release  publishes the writes under the lock (X1); pairs with lock/acquire and
    // lock_slowly/acquire
    taken_.store(false, std::memory_order_release);
  }

 private:
  TROUPE_NOINLINE void lock_slowly() noexcept {
    for (unsigned attempt = 0;; ++attempt) {
      Parts::wait(attempt);
      // order: relaxed  a hint: a read leaves the line with its holder
      if (taken_.load(std::memory_order_relaxed)) continue;
      // order: acquire  as in lock()
      if (!taken_.exchange(true, std::memory_order_acquire)) return;
    }
  }

  typename Parts::template atomic<bool> taken_{false};
};

using brief_lock = basic_brief_lock<>;

}  // namespace troupe::base
