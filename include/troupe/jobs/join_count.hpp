// join_count: how many of a forker and its parts have not ended. For the library's own use.
//
// Invariants
//   F1  it counts the forker and the parts, less those that have ended. The forker subtracts itself
//       together with all parts that it saw end on its own stack; if all parts ended there, it
//       subtracts nothing. One party brings the count to zero, and resumes the forker; no other
//       party touches the fork after it has counted down.
//   F2  the party that brings the count to zero sees the writes of the parts.
//
// Protocol: docs/protocols/fork_join.md.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::jobs {

template <class Atomics>
class join_count {
 public:
  // Called before any other thread can see the count.
  // order: relaxed  the deque publishes it
  TROUPE_INLINE void begin(std::uint32_t counted) noexcept {
    left_.store(counted, std::memory_order_relaxed);
  }

  // Called by the forker while it is itself counted: adds one more part, which no other thread can
  // see yet.
  // order: relaxed  the deque publishes it; the writes of ended parts are published through this,
  // as through each read-modify-write
  void add() noexcept { left_.fetch_add(1, std::memory_order_relaxed); }

  // Subtracts parts that have ended. Returns true if they were the last.
  bool end(std::uint32_t ended) noexcept {
    // order: acq_rel  publishes their writes, and sees the others' writes (F2); pairs with itself
    return left_.fetch_sub(ended, std::memory_order_acq_rel) == ended;
  }

  // Whether all have ended, once that was reported to the caller.
  // order: relaxed  the report has published it
  bool is_zero() const noexcept { return left_.load(std::memory_order_relaxed) == 0; }

 private:
  typename Atomics::template atomic<std::uint32_t> left_{0};
};

}  // namespace troupe::jobs
