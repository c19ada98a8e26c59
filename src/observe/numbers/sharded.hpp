// sharded: numbers that many threads change at the same time, in several cache lines. A counter has
// few, and is small; a histogram has one for each thread, which changes it without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_name.hpp"
#include "observe/numbers/exemplars.hpp"
#include "observe/numbers/number.hpp"
#include "observe/numbers/thread_shard.hpp"

namespace troupe::observe {

inline constexpr std::size_t number_shards = 8, cache_line_bytes = 64;
// The calling thread's shard: by its number as a worker; threads that are none share the first.
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
    for (const shard& counted : shards_) sum += counted.value.load(std::memory_order_relaxed);
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
    // Most values lie in the first buckets.
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
    if (shard* const own = shards_.own()) [[likely]] {
      // order: relaxed (all)  statistics, which no other thread writes; they publish nothing
      auto& count = own->counts[bucket];
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      own->sum.store(own->sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    } else {
      // order: relaxed (both)  statistics; they publish nothing
      shards_.shared().counts[bucket].fetch_add(1, std::memory_order_relaxed);
      shards_.shared().sum.fetch_add(value, std::memory_order_relaxed);
    }
    if (exemplars::are_taken()) [[unlikely]]
      exemplars_.note(bucket, value);
  }
  std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    shards_.for_each([&](const shard& part) {
      // order: relaxed  as above
      for (const auto& count : part.counts) sum += count.load(std::memory_order_relaxed);
    });
    return sum;
  }
  distribution get() const {
    distribution all{bounds_, std::vector<std::uint64_t>(bounds_.size() + 1), 0};
    shards_.for_each([&](const shard& part) {
      for (std::size_t i = 0; i < all.counts.size(); ++i)
        all.counts[i] +=
            part.counts[i].load(std::memory_order_relaxed);  // order: relaxed  as above
      all.sum += part.sum.load(std::memory_order_relaxed);   // order: relaxed  as above
    });
    all.exemplars = exemplars_.get();
    return all;
  }

 private:
  struct alignas(cache_line_bytes) shard {
    std::array<std::atomic<std::uint64_t>, bounds_max + 1> counts{};
    std::atomic<double> sum{0};
  };
  const std::span<const double> bounds_;
  sharded<shard> shards_;
  exemplars exemplars_;
};

}  // namespace troupe::observe
