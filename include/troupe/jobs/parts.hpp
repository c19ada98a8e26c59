// parts: how the parallel algorithms cut what they have to do, and their options.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/jobs/work.hpp"

namespace troupe {

// Of the parallel algorithms.
//
// Example:
//     std::vector<float> samples(100'000, 1.0f);
//     troupe::parallel_for(samples, [](float& one) { one *= 0.5f; }, {.grain = 10'000}).get();
struct parallel_options {
  // Elements that one part has, at most; a part is not divided further, and is what a worker does
  // between two looks at errors, stops and the clock. 0 (default): the algorithm's own choice,
  // which it documents.
  std::size_t grain = 0;
};

namespace jobs {

// What is done with part i; called by several threads at once. Lives in the frame of the work that
// runs it.
struct part_body {
  virtual void run_part(std::size_t i) const = 0;

 protected:
  ~part_body() = default;
};

// Runs so many parts; at least one.
work<> run_parts(const part_body& body, std::size_t count);
// About 64 parts for each worker, so that the last to end is not late.
std::size_t grain_by_workers(std::size_t count) noexcept;
// 256 parts, whatever the workers: for what depends on where it is cut.
constexpr std::size_t fixed_grain(std::size_t count) noexcept {
  return std::max<std::size_t>((count + 255) / 256, 1);
}

// An interval of a sequence, cut into parts.
template <class First>
struct cut {
  First first{};
  std::size_t count = 0, grain = 1;

  std::size_t parts() const noexcept { return count / grain + (count % grain != 0 ? 1 : 0); }
  First begin_of(std::size_t part) const { return at(part * grain); }
  First end_of(std::size_t part) const {
    return at(count - part * grain <= grain ? count : (part + 1) * grain);
  }

 private:
  First at(std::size_t i) const {
    if constexpr (std::integral<First>) {
      // i may be too large for First, but what comes out is not
      return static_cast<First>(static_cast<std::size_t>(first) + i);
    } else {
      return first + static_cast<std::iter_difference_t<First>>(i);
    }
  }
};

[[noreturn]] void refuse_negative_first(const char* loop);

// The numbers from first to last, which is not one of them, by what the ends are worth, whatever
// their signs. Throws usage_error when numbers are unsigned, since one end is, and the first is
// negative.
template <std::integral First, std::integral Last>
cut<std::common_type_t<First, Last>> interval(First first, Last last, std::size_t grain,
                                              const char* loop) {
  using index = std::common_type_t<First, Last>;
  // The + makes numbers of characters, which cannot be compared so.
  if (!std::cmp_less(+first, +last)) return {static_cast<index>(first), 0, grain};
  if constexpr (std::signed_integral<First> && std::unsigned_integral<index>) {
    if (first < 0) refuse_negative_first(loop);
  }
  const auto begin = static_cast<index>(first), end = static_cast<index>(last);
  return {begin, static_cast<std::size_t>(end) - static_cast<std::size_t>(begin), grain};
}

// A range that is there for as long as the caller keeps it.
template <class Range>
concept parallel_range = std::ranges::random_access_range<Range> &&
    std::ranges::sized_range<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>);

// Elements that share words with their neighbours: what two threads write to them at the same time
// is lost.
template <class Reference>
inline constexpr bool is_bit =
    std::same_as<std::remove_cvref_t<Reference>, std::vector<bool>::reference>;

template <class Range>
cut<std::ranges::iterator_t<Range>> cut_of(Range& range, std::size_t grain) {
  return {std::ranges::begin(range), static_cast<std::size_t>(std::ranges::size(range)), grain};
}

}  // namespace jobs

}  // namespace troupe
