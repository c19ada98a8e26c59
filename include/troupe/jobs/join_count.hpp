// join_count: how many are left of a forker and its parts. The library's own.
// Invariants
//   F1  it counts the forker and the parts, less those that have ended. The forker takes itself off
//   together with all parts that
//       it saw end on its own stack, and not at all when those were all. One brings it to zero, and
//       goes on with the forker; nobody else touches the fork after it has counted down.
//   F2  what the parts did is seen by who brings it to zero.
// Protocol: docs/protocols/fork_join.md.
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::jobs {

template <class Atomics>
class join_count {
 public:
  // Before anybody else knows of it.
  // order: relaxed  the deque publishes it
  TROUPE_INLINE void begin(std::uint32_t counted) noexcept {
    left_.store(counted, std::memory_order_relaxed);
  }

  // The forker, while it is counted itself: one more, which nobody knows of yet.
  // order: relaxed  the deque publishes it; what has ended is published through this, as through
  // each read-modify-write
  void add() noexcept { left_.fetch_add(1, std::memory_order_relaxed); }

  // So many have ended. True when they were the last.
  bool end(std::uint32_t ended) noexcept {
    // order: acq_rel  publishes what they did, and sees what the others did (F2); pairs with itself
    return left_.fetch_sub(ended, std::memory_order_acq_rel) == ended;
  }

 private:
  typename Atomics::template atomic<std::uint32_t> left_{0};
};

}  // namespace troupe::jobs
