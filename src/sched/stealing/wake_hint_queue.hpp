// wake_hint_queue: the deferred runnables of a worker that have got mail from other threads.
//
// A wake hint means "look at this runnable". It may come twice, or for a runnable that has changed
// its worker or was freed (its memory still holds a runnable): the taker checks. When more hints
// come than the queue holds, the oldest are lost and take() reports this: then the worker looks at
// all deferred runnables.
// Threads: push: any; take: the holder of the worker's lock. Cost of a push: two atomic exchanges.
// Invariants
//   N1  the item of each finished push is taken, or a take() after it returns true.
//   N2  the pusher's earlier writes are seen by the taker of its wake hint.
// Rejected: looking at all deferred runnables, one after the other (a cache miss for each, and late
// when there are many).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::sched {

template <class Item, std::size_t Size = 256, class Atomics = base::std_atomics>
class wake_hint_queue {
 public:
  void push(Item& item) noexcept {
    // order: relaxed  only reserves a cell; the cell publishes
    const std::uint64_t place = next_.fetch_add(1, std::memory_order_relaxed);
    auto& cell = cells_[place % Size];
    // order: acq_rel  publishes the pusher's writes (N2), sees taken_ if a taker was here; pairs
    // with take
    const bool overwrote = cell.exchange(&item, std::memory_order_acq_rel) != nullptr;
    // order: relaxed  a taker that passed this cell stored taken_ before its exchange, and our
    // exchange has read that one
    const bool passed_by = taken_.load(std::memory_order_relaxed) > place &&
                           cell.load(std::memory_order_relaxed) == &item;
    if (overwrote || passed_by) {
      // order: acq_rel  pairs with take/acquire: the lost hints' work is seen by the thread that
      // looks at all. An exchange, since a store would hide the writes published earlier.
      lost_.exchange(1, std::memory_order_acq_rel);
      // All hints may have been taken before: reserves one more cell, so that empty() is false.
      // order: release  the taker of that cell sees that hints were lost; pairs with take/acquire
      next_.fetch_add(1, std::memory_order_release);
    }
  }

  // order: relaxed  a hint
  bool empty() const noexcept {
    return next_.load(std::memory_order_relaxed) == taken_.load(std::memory_order_relaxed);
  }

  // Changes with each push.
  // order: relaxed  a hint
  std::uint64_t pushed() const noexcept { return next_.load(std::memory_order_relaxed); }

  // Calls look(item) for each hint. True when hints were lost: the caller must look at all deferred
  // runnables.
  template <class Look>
  bool take(Look look) noexcept {
    // order: acquire  sees lost_; pairs with push/release; relaxed: taken_ is the lock holder's
    const std::uint64_t end = next_.load(std::memory_order_acquire);
    std::uint64_t at = taken_.load(std::memory_order_relaxed);
    if (end - at > Size) at = end - Size;
    while (at != end) {
      auto& cell = cells_[at++ % Size];
      // A pusher that is between its two steps sees by this that the taker has passed its cell.
      // order: relaxed  the exchange that follows publishes it to that pusher
      taken_.store(at, std::memory_order_relaxed);
      // order: acq_rel  sees the pusher's writes (N2), publishes taken_; pairs with push
      if (Item* item = cell.exchange(nullptr, std::memory_order_acq_rel)) look(*item);
    }
    // order: acquire  pairs with push/release
    return lost_.load(std::memory_order_relaxed) != 0 &&
           lost_.exchange(0, std::memory_order_acquire) != 0;
  }

 private:
  alignas(base::line_bytes) typename Atomics::template atomic<std::uint64_t> next_{0};
  typename Atomics::template atomic<std::uint32_t> lost_{0};
  std::array<typename Atomics::template atomic<Item*>, Size> cells_{};
  // written inside the lock
  alignas(base::line_bytes) typename Atomics::template atomic<std::uint64_t> taken_{0};
};

}  // namespace troupe::sched
