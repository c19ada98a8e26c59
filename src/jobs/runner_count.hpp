// runner_count: how many runners there are, so that no queued job is left without one (docs/protocols/lazies.md).
//
// Whoever queues a job asks may_call() behind that; a runner that has found nothing says end() and looks once more.
// Invariants
//   R1  of a job queued beside a runner's end, one of the two sides sees the other.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::jobs {

template <class Atomics = base::std_atomics>
class runner_count {
 public:
  explicit runner_count(std::uint32_t most) noexcept : most_(most) {}

  // Behind a push: whether there is room for one more.
  bool may_call() noexcept {
    Atomics::light_or_full_fence();
    // order: relaxed  behind the fence (R1); pairs with end
    return count_.load(std::memory_order_relaxed) < most_;
  }

  // One more begins. False when there are enough.
  bool begin() noexcept {
    // order: relaxed  a count; what a runner finds the queues publish
    std::uint32_t seen = count_.load(std::memory_order_relaxed);
    do {
      if (seen >= most_) return false;
      // order: relaxed (both)  as above
    } while (!count_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }

  // One is gone; the caller looks for jobs behind this. False when there is no fence: then a look says nothing.
  bool end() noexcept {
    // order: relaxed  in front of the fence (R1)
    count_.fetch_sub(1, std::memory_order_relaxed);
    return Atomics::heavy_fence();
  }

 private:
  const std::uint32_t most_;
  typename Atomics::template atomic<std::uint32_t> count_{0};
};

}  // namespace troupe::jobs
