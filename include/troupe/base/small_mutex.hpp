// small_mutex: a mutex of four bytes, for objects of which there are many thousands.
// Threads: any. Not recursive, not fair; a thread that waits sleeps in the kernel.
// Invariants
//   X1  there is one holder at a time, and it sees the writes of the holder before.
//   X2  while a thread sleeps, the word is `awaited`, or the thread that changed it is about to
//       wake one.
//   X3  once the word is free, unlock uses nothing but the word's address. If the object no longer
//       exists when the wake comes, the wake finds no sleeper, or lets a sleeper check again for no
//       reason.
//
// Rejected: std::mutex (40 bytes, and a function call each way); a spin lock (its holder may be
// preempted).
// Model: tests/models/base/small_mutex.cpp.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

#include "troupe/base/futex.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::base {

struct mutex_atomics {
  template <class T>
  using atomic = std::atomic<T>;
};

template <class Atomics = mutex_atomics, class Futex = kernel_futex>
class basic_small_mutex {
 public:
  basic_small_mutex() = default;
  basic_small_mutex(const basic_small_mutex&) = delete;
  basic_small_mutex& operator=(const basic_small_mutex&) = delete;

  void lock() noexcept {
    std::uint32_t seen = open;
    // order: acquire  sees the writes of the holder before (X1); pairs with unlock/release
    if (word_.compare_exchange_strong(seen, taken, std::memory_order_acquire,
                                      std::memory_order_relaxed))
      return;
    lock_slowly();
  }

  // Returns false if another thread holds it.
  bool try_lock() noexcept {
    std::uint32_t seen = open;
    // order: acquire  as in lock()
    return word_.compare_exchange_strong(seen, taken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  void unlock() noexcept {
    // order: release  publishes the writes under the lock (X1); pairs with lock/acquire,
    // try_lock/acquire and lock_slowly/acquire
    if (word_.exchange(open, std::memory_order_release) == awaited) Futex::wake_one(word_);
  }

 private:
  enum : std::uint32_t { open, taken, awaited };

  // A thread that has waited leaves the word as `awaited`, because other threads may still sleep
  // (X2). That costs one wake too many.
  TROUPE_NOINLINE void lock_slowly() noexcept {
    // order: acquire  as in lock()
    while (word_.exchange(awaited, std::memory_order_acquire) != open)
      Futex::wait(word_, awaited, nullptr);
  }

  typename Atomics::template atomic<std::uint32_t> word_{open};
};

using small_mutex = basic_small_mutex<>;

}  // namespace troupe::base
