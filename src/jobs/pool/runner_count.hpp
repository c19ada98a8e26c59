// runner_count: how many runners there are, so that no queued job is left without one
// (docs/protocols/lazies.md).
//
// A thread that queues a job asks wants_one() afterwards; a runner that has found nothing calls
// end() and looks once more. As long as a called runner has not arrived, no other is called: that
// one will see the queued jobs, and calls the next ones.
// Invariants
//   R1  when a job is queued while a runner ends, at least one of the two sides sees the other.
//   R2  when a job is queued while a runner arrives, at least one of the two sides sees the other.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::jobs {

template <class Atomics = base::std_atomics>
class runner_count {
 public:
  explicit runner_count(std::uint32_t most) noexcept : most_(most) {}

  // After a push: whether there may be one more runner.
  bool may_call() noexcept {
    Atomics::light_or_full_fence();
    // order: relaxed  behind the fence (R1); pairs with end
    return runners(word_.load(std::memory_order_relaxed)) < most_;
  }

  // The same, and no runner is on its way that will see the pushed job.
  bool wants_one() noexcept {
    if (!may_call()) return false;
    // order: relaxed  looked at again after a fence
    if (coming(word_.load(std::memory_order_relaxed)) == 0) return true;
    Atomics::full_fence();
    // order: relaxed  behind the fence (R2); pairs with arrive
    return coming(word_.load(std::memory_order_relaxed)) == 0;
  }

  // One more runner is called. False when there are enough.
  bool begin() noexcept {
    // order: relaxed  a count; the queues publish the jobs that a runner finds
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    do {
      if (runners(seen) >= most_) return false;
      // order: relaxed (both)  as above
    } while (!word_.compare_exchange_weak(seen, seen + one_runner + one_coming,
                                          std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }

  // A called runner has begun. After this it looks for jobs, and calls others for those that it
  // leaves.
  void arrive() noexcept {
    // order: relaxed  before the fence (R2); pairs with wants_one
    word_.fetch_sub(one_coming, std::memory_order_relaxed);
    Atomics::full_fence();
  }

  // How many runners were called and have not arrived.
  // order: relaxed  a hint
  std::uint32_t on_their_way() const noexcept {
    return coming(word_.load(std::memory_order_relaxed));
  }

  // A runner ends; the caller looks for jobs after this. False when there is no heavy fence: then a
  // look would prove nothing.
  bool end() noexcept {
    // order: relaxed  before the fence (R1)
    word_.fetch_sub(one_runner, std::memory_order_relaxed);
    return Atomics::heavy_fence();
  }

  // A called runner is discarded before it has arrived.
  void end_unarrived() noexcept {
    // order: relaxed  no thread relies on it any longer
    word_.fetch_sub(one_runner + one_coming, std::memory_order_relaxed);
  }

 private:
  // The low half counts the runners, the high half the runners that have not arrived.
  static constexpr std::uint64_t one_runner = 1, one_coming = std::uint64_t{1} << 32;
  static constexpr std::uint32_t runners(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word);
  }
  static constexpr std::uint32_t coming(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 32);
  }

  const std::uint32_t most_;
  typename Atomics::template atomic<std::uint64_t> word_{0};
};

}  // namespace troupe::jobs
