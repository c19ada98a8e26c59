// caller_flags: requests of other threads to the worker of a pool without a thread
// (caller_life.hpp): a look at the timers, and a return.
//
// A thread sets a flag, and then notifies the worker's parker; the worker reads the flags before it
// sleeps.
// Invariants
//   F1  a worker that sleeps, and is not notified, has seen all timers that were armed before a
//       flag: it clears the flag before it takes the timers' lock. A timer that it misses there is
//       armed later, and its flag is set after the clearing.
//   F2  a worker that has returned sees the earlier writes of the thread that asked for that.
#pragma once

#include "base/atomics.hpp"

namespace troupe::sched {

template <class Atomics = base::std_atomics>
class basic_caller_flags {
 public:
  // Any thread, outside of the timers' lock. It notifies the worker afterwards.
  // order: relaxed  the timers are read inside their lock; the parker orders it before the wake-up
  void expire_soon() noexcept { expires_soon_.store(true, std::memory_order_relaxed); }
  // order: release  publishes the reason (F2); pairs with returned/acquire
  void ask_back() noexcept { asked_back_.store(true, std::memory_order_release); }

  // The worker.
  // order: relaxed  as expire_soon
  bool expires_soon() const noexcept { return expires_soon_.load(std::memory_order_relaxed); }
  // order: relaxed  before the timers' lock is taken, and let go (F1)
  void begin_expiring() noexcept { expires_soon_.store(false, std::memory_order_relaxed); }
  // order: relaxed  a hint; returned() acquires
  bool is_asked_back() const noexcept { return asked_back_.load(std::memory_order_relaxed); }
  // order: acquire  sees the reason (F2); pairs with ask_back/release
  void returned() noexcept { asked_back_.exchange(false, std::memory_order_acquire); }

 private:
  typename Atomics::template atomic<bool> expires_soon_{false}, asked_back_{false};
};

using caller_flags = basic_caller_flags<>;

}  // namespace troupe::sched
