// sharded: numbers that many threads change at the same time, in several cache lines.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_name.hpp"
#include "observe/numbers/exemplars.hpp"
#include "observe/numbers/number.hpp"

namespace troupe::observe {

inline constexpr std::size_t number_shards = 8, cache_line_bytes = 64;
// That of the calling thread: by its number as a worker; threads that are none share the first.
inline std::size_t shard_here() noexcept { return base::worker_number % number_shards; }

// Thread: any.
class sharded_counter {
 public:
  void add(std::uint64_t n) noexcept {
    // order: relaxed  a statistic; publishes nothing
    shards_[shard_here()].value.fetch_add(n, std::memory_order_relaxed);
  }
  // Never less than an earlier result, if the same thread asks.
  std::uint64_t get() const noexcept {
    std::uint64_t sum = 0;
    // order: relaxed  as above
    for (const shard& one : shards_) sum += one.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(cache_line_bytes) shard {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<shard, number_shards> shards_;
};

// Thread: any.
class sharded_histogram {
 public:
  static constexpr std::size_t bounds_max = 31;

  // `bounds` rise, are at most bounds_max, and outlive the histogram.
  explicit sharded_histogram(std::span<const double> bounds) noexcept : bounds_(bounds) {}

  void add(double value) noexcept {
    shard& own = shards_[shard_here()];
    const auto bucket =
        static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
    // order: relaxed (both)  statistics; they publish nothing
    own.counts[bucket].fetch_add(1, std::memory_order_relaxed);
    own.sum.fetch_add(value, std::memory_order_relaxed);
    if (exemplars::are_taken()) [[unlikely]]
      exemplars_.note(bucket, value);
  }
  std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const shard& one : shards_) {
      // order: relaxed  as above
      for (const auto& count : one.counts) sum += count.load(std::memory_order_relaxed);
    }
    return sum;
  }
  distribution get() const {
    distribution all{bounds_, std::vector<std::uint64_t>(bounds_.size() + 1), 0};
    for (const shard& one : shards_) {
      for (std::size_t i = 0; i < all.counts.size(); ++i)
        all.counts[i] += one.counts[i].load(std::memory_order_relaxed);  // order: relaxed  as above
      all.sum += one.sum.load(std::memory_order_relaxed);                // order: relaxed  as above
    }
    all.exemplars = exemplars_.get();
    return all;
  }

 private:
  struct alignas(cache_line_bytes) shard {
    std::array<std::atomic<std::uint64_t>, bounds_max + 1> counts{};
    std::atomic<double> sum{0};
  };
  const std::span<const double> bounds_;
  std::array<shard, number_shards> shards_;
  exemplars exemplars_;
};

}  // namespace troupe::observe
