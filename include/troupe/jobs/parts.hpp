// parts: how the parallel algorithms divide their input, and their options.
#pragma once

#include "troupe/base/language.hpp"

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

// Options of the parallel algorithms.
//
// Example:
//     std::vector<float> samples(100'000, 1.0f);
//     troupe::parallel_for(samples, [](float& one) { one *= 0.5f; }, {.grain = 10'000}).get();
struct parallel_options {
  // Maximum number of elements in one part. A part is not divided further; between parts a worker
  // checks for errors, stops and the clock. 0 (default): the algorithm's own choice, which it
  // documents.
  std::size_t grain = 0;
};

namespace jobs {

// The work for part i; several threads call it at once. Lives in the frame of the work that runs
// it.
struct part_body {
  virtual void run_part(std::size_t i) const = 0;

 protected:
  ~part_body() = default;
};

// Runs `count` parts; `count` is at least 1.
work<> run_parts(const part_body& body, std::size_t count);
// About 64 parts for each worker, so that the last parts to end are not late.
std::size_t grain_by_workers(std::size_t count) noexcept;
// 256 parts, for any number of workers: for results that depend on where the input is divided.
constexpr std::size_t fixed_grain(std::size_t count) noexcept {
  return std::max<std::size_t>((count + 255) / 256, 1);
}

// An interval of a sequence, divided into parts.
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
      // i may be too large for First, but the sum is not
      return static_cast<First>(static_cast<std::size_t>(first) + i);
    } else {
      return first + static_cast<std::iter_difference_t<First>>(i);
    }
  }
};

[[noreturn]] void refuse_negative_first(const char* loop);

// The numbers from `first` up to but not including `last`, compared by value, whatever the signs of
// the types. Throws usage_error if the numbers are unsigned, because one end is, and `first` is
// negative.
template <std::integral First, std::integral Last>
cut<std::common_type_t<First, Last>> interval(First first, Last last, std::size_t grain,
                                              const char* loop) {
  using index = std::common_type_t<First, Last>;
  // The + turns characters into numbers; std::cmp_less does not compare characters.
  if (!std::cmp_less(+first, +last)) return {static_cast<index>(first), 0, grain};
  if constexpr (std::signed_integral<First> && std::unsigned_integral<index>) {
    if (first < 0) refuse_negative_first(loop);
  }
  const auto begin = static_cast<index>(first), end = static_cast<index>(last);
  return {begin, static_cast<std::size_t>(end) - static_cast<std::size_t>(begin), grain};
}

// A range that exists as long as the caller keeps it.
template <class Range>
concept parallel_range = std::ranges::random_access_range<Range> &&
    std::ranges::sized_range<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>);

// Elements that share a word with their neighbours: if two threads write to neighbours at the same
// time, one write is lost.
template <class Reference>
inline constexpr bool is_bit =
    std::same_as<std::remove_cvref_t<Reference>, std::vector<bool>::reference>;

template <class Range>
cut<std::ranges::iterator_t<Range>> cut_of(Range& range, std::size_t grain) {
  return {std::ranges::begin(range), static_cast<std::size_t>(std::ranges::size(range)), grain};
}

}  // namespace jobs

}  // namespace troupe
