// tally: an exact count of things of which some are samples, for the price of one subtraction and
// one branch for each thing. It counts down to the next sample, and computes the count from the
// remaining distance.
//
// Owner: one thread counts. Readers: any thread.
// Invariants
//   A1  `due_ - left_` is the number of things counted, whenever `left_` is not 0.
//   A2  `left_` is 0 only between a sample's count() and its next(), a few instructions; `due_`
//       changes only then.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/invariant.hpp"
#include "observe/counting/owned.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::observe {

class tally {
 public:
  // The owner's. Counts one thing. True: it is a sample, and next() must follow.
  TROUPE_INLINE bool count() noexcept {
    // order: relaxed  the owner's own
    TROUPE_INVARIANT(left_.load(std::memory_order_relaxed) != 0, "A2");
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
    ++tallied_;
#endif
    return observe::subtract_one(left_);
  }
  // The sample that is due represents as many things.
  std::uint32_t stands_for() const noexcept { return gap_; }
  // The next sample is the thing `gap` (at least 1) behind this one.
  void next(std::uint32_t gap) noexcept {
    gap_ = gap;
    // order: relaxed (both)  the owner's own
    TROUPE_INVARIANT(left_.load(std::memory_order_relaxed) == 0, "A2");
    TROUPE_INVARIANT(due_.load(std::memory_order_relaxed) == tallied_, "A1");
    // order: relaxed (load)  the owner's own
    // order: release  behind the 0 in left_, with which get() does not use it (A2)
    due_.store(due_.load(std::memory_order_relaxed) + gap, std::memory_order_release);
    left_.store(gap, std::memory_order_release);  // order: release  behind due_; pairs with get
  }

  // Thread: any.
  std::uint64_t get() const noexcept {
    for (int tries = 0;; ++tries) {
      // order: acquire (both)  pairs with next: equal values of due_ enclose one period's left_
      const std::uint64_t due = due_.load(std::memory_order_acquire);
      const std::uint32_t left = left_.load(std::memory_order_acquire);
      // order: relaxed  behind the acquire of left_
      if (left != 0 && due == due_.load(std::memory_order_relaxed)) return due - left;
      // The owner was interrupted between the two (A2). If it is held up for longer, one gap more
      // may be counted now, and not at the next look.
      if (tries == tries_max) return due;
      // sleeps: the owner sends no notice when it continues
      std::this_thread::sleep_for(std::chrono::microseconds(tries));
    }
  }

 private:
  static constexpr int tries_max = 100;  // together about 10 ms

  std::atomic<std::uint32_t> left_{1};
  std::uint32_t gap_ = 1;
  std::atomic<std::uint64_t> due_{1};
#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
  std::uint64_t tallied_ = 0;  // one by one
#endif
};

}  // namespace troupe::observe
