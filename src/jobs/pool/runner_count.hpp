// runner_count: how many runners there are, so that no queued job is left without one
// (docs/protocols/lazies.md).
//
// Whoever queues a job asks wants_one() behind that; a runner that has found nothing says end() and
// looks once more. While a called runner has not arrived, it is the one that will see what is
// queued: it calls the next ones. Invariants
//   R1  of a job queued beside a runner's end, one of the two sides sees the other.
//   R2  of a job queued beside a runner's arrival, one of the two sides sees the other.
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
    return runners(word_.load(std::memory_order_relaxed)) < most_;
  }

  // The same, and nobody is on the way who will see what was pushed.
  bool wants_one() noexcept {
    if (!may_call()) return false;
    // order: relaxed  looked at again behind a fence
    if (coming(word_.load(std::memory_order_relaxed)) == 0) return true;
    Atomics::full_fence();
    // order: relaxed  behind the fence (R2); pairs with arrive
    return coming(word_.load(std::memory_order_relaxed)) == 0;
  }

  // One more is called. False when there are enough.
  bool begin() noexcept {
    // order: relaxed  a count; what a runner finds the queues publish
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    do {
      if (runners(seen) >= most_) return false;
      // order: relaxed (both)  as above
    } while (!word_.compare_exchange_weak(seen, seen + one_runner + one_coming,
                                          std::memory_order_relaxed, std::memory_order_relaxed));
    return true;
  }

  // A called one has begun; it looks for jobs behind this, and calls others for what it leaves.
  void arrive() noexcept {
    // order: relaxed  in front of the fence (R2); pairs with wants_one
    word_.fetch_sub(one_coming, std::memory_order_relaxed);
    Atomics::full_fence();
  }

  // How many have been called and have not arrived; a hint.
  // order: relaxed  a hint
  std::uint32_t on_their_way() const noexcept {
    return coming(word_.load(std::memory_order_relaxed));
  }

  // One is gone; the caller looks for jobs behind this. False when there is no fence: then a look
  // says nothing.
  bool end() noexcept {
    // order: relaxed  in front of the fence (R1)
    word_.fetch_sub(one_runner, std::memory_order_relaxed);
    return Atomics::heavy_fence();
  }

  // One that was called, and is discarded.
  void end_unarrived() noexcept {
    // order: relaxed  nobody relies on it any more
    word_.fetch_sub(one_runner + one_coming, std::memory_order_relaxed);
  }

 private:
  // The low half counts runners, the high one those of them that have not arrived.
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
