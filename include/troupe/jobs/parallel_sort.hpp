// parallel_sort: sorts a range in place, on all workers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>

#include "troupe/jobs/parts.hpp"

namespace troupe {

namespace jobs {

// What lies in front of what is equal to the pivot, and what behind; each is still to be sorted.
template <class Iterator>
struct partitioned {
  Iterator left_end, right_begin;
};

// The median of nine elements as they lie, without moving any.
template <class Iterator, class Compare>
partitioned<Iterator> partition_around_median(Iterator first, Iterator last, const Compare& less) {
  const auto step = (last - first) / 9;
  std::array<Iterator, 9> nine{};
  for (std::size_t i = 0; i < nine.size(); ++i) nine[i] = first + static_cast<std::iter_difference_t<Iterator>>(i) * step;
  std::nth_element(nine.begin(), nine.begin() + 4, nine.end(), [&](const Iterator& a, const Iterator& b) { return std::invoke(less, *a, *b); });
  std::iter_swap(first, nine[4]);
  const auto& pivot = *first;
  const Iterator middle = std::partition(first + 1, last, [&](const auto& one) { return std::invoke(less, one, pivot); });
  const Iterator right = std::partition(middle, last, [&](const auto& one) { return !std::invoke(less, pivot, one); });
  std::iter_swap(first, middle - 1);
  return {middle - 1, right};
}

template <class Iterator, class Compare>
work<> sort_parts(Iterator first, Iterator last, const Compare& less, std::size_t grain, int depth_left) {
  if (static_cast<std::size_t>(last - first) <= grain || depth_left == 0) {
    std::sort(first, last, std::cref(less));
    co_return;
  }
  const partitioned<Iterator> sides = partition_around_median(first, last, less);
  co_await fork(sort_parts(first, sides.left_end, less, grain, depth_left - 1),
                sort_parts(sides.right_begin, last, less, grain, depth_left - 1));
}

template <class Iterator, class Compare>
work<> run_sort(Iterator first, Iterator last, Compare less, std::size_t grain) {
  constexpr int depth_max = 32;  // bad luck with pivots; then std::sort, which is never slow
  co_await sort_parts(first, last, less, grain, depth_max);
}

}  // namespace jobs

// Sorts the range as std::sort does: equal elements come in any order, the same with any number of workers. Needs no memory
// for elements. When a comparison throws, the elements are valid, and otherwise as std::sort leaves them. The first step, a partition, is one
// thread's: so sorting scales to some eight workers. Grain by default: a 64th of the range, and 4096 at least. Otherwise as
// parallel_for.
//
// Example:
//     std::vector<int> numbers{3, 1, 2};
//     troupe::parallel_sort(numbers, std::greater()).get();
//     std::cout << numbers[0] << '\n';
template <class Range, class Compare = std::ranges::less>
  requires jobs::parallel_range<Range>
work<> parallel_sort(Range&& range, Compare less = {}, parallel_options options = {}) {
  static_assert(std::strict_weak_order<const Compare&, std::ranges::range_reference_t<Range>, std::ranges::range_reference_t<Range>>,
                "troupe: parallel_sort: the comparison must be callable with two elements, as a const object");
  static_assert(!jobs::is_bit<std::ranges::range_reference_t<Range>>,
                "troupe: parallel_sort: threads that write to neighbours in a std::vector<bool> lose bits; use a std::vector<char>, or count");
  constexpr std::size_t grain_min = 9;  // of which a median is taken
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  const std::size_t grain = options.grain != 0 ? std::max(options.grain, grain_min) : std::max<std::size_t>(count / 64, 4096);
  const auto first = std::ranges::begin(range);
  return jobs::run_sort(first, first + static_cast<std::ranges::range_difference_t<Range>>(count), std::move(less), grain);
}

}  // namespace troupe
