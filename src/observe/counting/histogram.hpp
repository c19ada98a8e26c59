// histogram: how often values of each size were seen. Each power of two has four buckets: a value
// is known within 25 %.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "observe/counting/owned.hpp"
#include "observe/numbers/number.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::observe {

// The values of several histograms together, or of one at a moment.
class value_counts {
 public:
  static constexpr std::size_t buckets = 252;

  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < 4) return static_cast<std::size_t>(value);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    return (width - 2) * 4 + static_cast<std::size_t>((value >> (width - 3)) & 3);
  }
  // The least value of a bucket.
  static constexpr std::uint64_t least_of(std::size_t bucket) noexcept {
    if (bucket < 4) return bucket;
    return (std::uint64_t{4} + bucket % 4) << (bucket / 4 - 1);
  }

  void add(std::size_t bucket, std::uint64_t times) noexcept {
    counts_[bucket] += times;
    all_ += times;
  }
  void add(const value_counts& others) noexcept {
    for (std::size_t i = 0; i < buckets; ++i) counts_[i] += others.counts_[i];
    all_ += others.all_;
  }
  std::uint64_t count() const noexcept { return all_; }
  // The value below which this part of all values lies, from 0 to 1: the middle of its bucket. 0 if
  // there is no value.
  std::uint64_t quantile(double part) const noexcept {
    if (all_ == 0) return 0;
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(all_ - 1)) + 1;
    std::uint64_t seen = 0;
    std::size_t bucket = 0;
    while (bucket + 1 < buckets && (seen += counts_[bucket]) < wanted) ++bucket;
    return middle_of(bucket);
  }
  // All values together, each as the middle of its bucket.
  double sum() const noexcept {
    double all = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
      if (counts_[i] != 0)
        all += static_cast<double>(counts_[i]) * static_cast<double>(middle_of(i));
    }
    return all;
  }
  // The same values in buckets with these bounds, without a sum. `scaled` is the bounds' unit of a
  // value.
  template <class Scale>
  distribution spread_over(std::span<const double> bounds, Scale scaled) const {
    distribution spread{bounds, std::vector<std::uint64_t>(bounds.size() + 1), 0};
    std::size_t to = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
      if (counts_[i] == 0) continue;
      const double value = scaled(static_cast<double>(middle_of(i)));
      while (to < bounds.size() && value > bounds[to]) ++to;
      spread.counts[to] += counts_[i];
    }
    return spread;
  }

 private:
  static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
    const std::uint64_t least = least_of(bucket);
    return bucket + 1 < buckets ? least + (least_of(bucket + 1) - least) / 2 : least;
  }

  std::array<std::uint64_t, buckets> counts_{};
  std::uint64_t all_ = 0;
};

// A number that one thread changes and others read.
template <class Number>
class basic_counter {
 public:
  // These are for the owner. add() returns the number before; no number is below 0.
  Number add(Number n) noexcept {
    const Number before = get();
    set(before + n);
    return before;
  }
  // The same for 1, at its lowest price.
  TROUPE_INLINE void add_one() noexcept { observe::add_one(value_); }
  void subtract(Number n) noexcept { set(get() < n ? 0 : get() - n); }
  // order: relaxed  a statistic; no other thread writes
  void set(Number n) noexcept { value_.store(n, std::memory_order_relaxed); }

  // Thread: any.
  // order: relaxed  as above
  Number get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Number> value_{0};
};
using counter = basic_counter<std::uint64_t>;
using small_counter = basic_counter<std::uint32_t>;

// Thread: one adds; any reads.
class histogram {
 public:
  // A sample that represents `times` values.
  void add(std::uint64_t value, std::uint64_t times = 1) noexcept {
    counts_[value_counts::bucket_of(value)].add(times);
  }
  void add_to(value_counts& sum) const noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) sum.add(i, counts_[i].get());
  }
  // How many values lie in buckets above the bucket of `value`.
  std::uint64_t count_above(std::uint64_t value) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = value_counts::bucket_of(value) + 1; i < counts_.size(); ++i)
      count += counts_[i].get();
    return count;
  }

 private:
  std::array<counter, value_counts::buckets> counts_{};
};

}  // namespace troupe::observe
