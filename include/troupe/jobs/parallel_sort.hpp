// parallel_sort: sorts a range in place, on all workers.
#pragma once

#include "troupe/base/language.hpp"

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

// Even if the comparison contradicts itself (<=, or NaN among the numbers), these functions end,
// and touch no memory outside of the range. std::sort does not promise this.
template <class Iterator, class Compare>
void sort_few(Iterator first, Iterator last, const Compare& less) {
  if (first == last) return;
  for (Iterator next = first + 1; next != last; ++next) {
    if (!std::invoke(less, *next, *(next - 1))) continue;
    std::iter_value_t<Iterator> moved = std::move(*next);
    Iterator at = next;
    do {
      *at = std::move(*(at - 1));
    } while (--at != first && std::invoke(less, moved, *(at - 1)));
    *at = std::move(moved);
  }
}
template <class Iterator, class Compare>
void sort_alone(Iterator first, Iterator last, const Compare& less, int depth_left) {
  constexpr int few = 24;
  while (last - first > few) {
    if (depth_left-- == 0) {  // the pivots were bad
      std::make_heap(first, last, std::cref(less));
      return std::sort_heap(first, last, std::cref(less));
    }
    Iterator a = first + 1, b = first + (last - first) / 2, c = last - 1;
    if (std::invoke(less, *b, *a)) std::swap(a, b);
    if (std::invoke(less, *c, *b)) b = std::invoke(less, *c, *a) ? a : c;
    std::iter_swap(first, b);
    Iterator low = first + 1, high = last;
    for (;;) {
      while (low != high && std::invoke(less, *low, *first)) ++low;
      while (low != high && std::invoke(less, *first, *--high)) {
      }
      if (low == high) break;
      std::iter_swap(low, high);
      ++low;
    }
    std::iter_swap(first, low - 1);
    if (low - first < last - low) {
      sort_alone(first, low - 1, less, depth_left);
      first = low;
    } else {
      sort_alone(low, last, less, depth_left);
      last = low - 1;
    }
  }
  sort_few(first, last, less);
}

// The ends of the two sides: before, and after, the elements equal to the pivot. Each side still
// has to be sorted.
template <class Iterator>
struct partitioned {
  Iterator left_end, right_begin;
};

// Uses the median of nine elements as the pivot; it moves no element to find it.
template <class Iterator, class Compare>
partitioned<Iterator> partition_around_median(Iterator first, Iterator last, const Compare& less) {
  const auto step = (last - first) / 9;
  std::array<Iterator, 9> nine{};
  for (std::size_t i = 0; i < nine.size(); ++i)
    nine[i] = first + static_cast<std::iter_difference_t<Iterator>>(i) * step;
  sort_few(nine.begin(), nine.end(),
           [&](const Iterator& a, const Iterator& b) { return std::invoke(less, *a, *b); });
  std::iter_swap(first, nine[4]);
  const auto& pivot = *first;
  const Iterator middle = std::partition(
      first + 1, last, [&](const auto& element) { return std::invoke(less, element, pivot); });
  const Iterator right = std::partition(
      middle, last, [&](const auto& element) { return !std::invoke(less, pivot, element); });
  std::iter_swap(first, middle - 1);
  return {middle - 1, right};
}

constexpr int depth_max = 32;

template <class Iterator, class Compare>
work<> sort_parts(Iterator first, Iterator last, const Compare& less, std::size_t grain,
                  int depth_left) {
  if (static_cast<std::size_t>(last - first) <= grain || depth_left == 0) {
    sort_alone(first, last, less, depth_max);
    co_return;
  }
  const partitioned<Iterator> sides = partition_around_median(first, last, less);
  co_await fork(sort_parts(first, sides.left_end, less, grain, depth_left - 1),
                sort_parts(sides.right_begin, last, less, grain, depth_left - 1));
}

template <class Iterator, class Compare>
work<> run_sort(Iterator first, Iterator last, Compare less, std::size_t grain) {
  co_await sort_parts(first, last, less, grain, depth_max);
}

}  // namespace jobs

// Sorts the range as std::sort does: equal elements end in any order, but in the same order for any
// number of workers. Needs no memory for elements. Errors: if a comparison throws, the elements are
// valid, in an unspecified order, as with std::sort. If comparisons contradict each other (<=, or
// NaN among the numbers), the elements end in an unspecified order, and no other memory is touched.
// The first step, a partition, runs on one thread, which limits the speed-up to about eight
// workers. Grain by default: a 64th of the range, at least 4096. Otherwise as parallel_for.
//
// Example:
//     std::vector<int> numbers{3, 1, 2};
//     troupe::parallel_sort(numbers, std::greater()).get();
//     std::cout << numbers[0] << '\n';
template <class Range, class Compare = std::ranges::less>
requires jobs::parallel_range<Range> work<> parallel_sort(Range&& range, Compare less = {},
                                                          parallel_options options = {}) {
  static_assert(std::strict_weak_order<const Compare&, std::ranges::range_reference_t<Range>,
                                       std::ranges::range_reference_t<Range>>,
                "troupe: parallel_sort: the comparison must be callable with two elements, as a "
                "const object");
  static_assert(!jobs::is_bit<std::ranges::range_reference_t<Range>>,
                "troupe: parallel_sort: threads that write to neighbours in a std::vector<bool> "
                "lose bits; use a std::vector<char>, or count");
  constexpr std::size_t grain_min = 9;  // a median of nine needs that many
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  const std::size_t grain = options.grain != 0 ? std::max(options.grain, grain_min)
                                               : std::max<std::size_t>(count / 64, 4096);
  const auto first = std::ranges::begin(range);
  return jobs::run_sort(first, first + static_cast<std::ranges::range_difference_t<Range>>(count),
                        std::move(less), grain);
}

}  // namespace troupe
