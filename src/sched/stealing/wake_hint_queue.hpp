// wake_hint_queue: which deferred runnables of a worker have got mail from other threads.
//
// A wake hint says "look at this one": it may come twice, or for one that has changed hands or was
// freed (its memory stays of its kind), so whoever takes it checks. When more come than the box
// holds, the oldest are lost and take() says so: then all are looked at. Threads: push, any; take,
// who holds the worker's lock. Cost of a push: two atomic exchanges. Invariants
//   N1  the item of each finished push is taken, or a take() after it returns true.
//   N2  what the pusher did before is seen by who takes its wake hint.
// Rejected: looking at all deferred runnables in turn (a cache miss each, and late when they are
// many).
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
    // order: relaxed  a place in the box; the cell publishes
    const std::uint64_t place = next_.fetch_add(1, std::memory_order_relaxed);
    auto& cell = cells_[place % Size];
    // order: acq_rel  publishes what the pusher did (N2), sees taken_ if a taker was here; pairs
    // with take
    const bool overwrote = cell.exchange(&item, std::memory_order_acq_rel) != nullptr;
    // order: relaxed  a taker that passed this cell by stored taken_ before its exchange, which
    // ours has read
    const bool passed_by = taken_.load(std::memory_order_relaxed) > place &&
                           cell.load(std::memory_order_relaxed) == &item;
    if (overwrote || passed_by) {
      // order: acq_rel  pairs with take/acquire: the lost ones' work is seen by who looks at all.
      // An exchange, since a store would hide what an earlier one published.
      lost_.exchange(1, std::memory_order_acq_rel);
      // All may have been taken before: an empty place more, so that empty() shows it.
      // order: release  who takes that place sees that some were lost; pairs with take/acquire
      next_.fetch_add(1, std::memory_order_release);
    }
  }

  // order: relaxed  a hint
  bool empty() const noexcept {
    return next_.load(std::memory_order_relaxed) == taken_.load(std::memory_order_relaxed);
  }

  // Another number than before when something was pushed since.
  // order: relaxed  a hint
  std::uint64_t pushed() const noexcept { return next_.load(std::memory_order_relaxed); }

  // Calls look(item) for each. True when some were lost: all must be looked at.
  template <class Look>
  bool take(Look look) noexcept {
    // order: acquire  sees lost_; pairs with push/release; relaxed: taken_ is the lock holder's
    const std::uint64_t end = next_.load(std::memory_order_acquire);
    std::uint64_t at = taken_.load(std::memory_order_relaxed);
    if (end - at > Size) at = end - Size;
    while (at != end) {
      auto& cell = cells_[at++ % Size];
      // A pusher that is between its two steps now finds that it was passed by.
      // order: relaxed  the exchange behind it publishes it to that pusher
      taken_.store(at, std::memory_order_relaxed);
      // order: acq_rel  sees what the pusher did (N2), publishes taken_; pairs with push
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
