// sort_stably: as std::ranges::stable_sort, which calls a function of libstdc++ that is deprecated:
// clang ends the build for that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe_tool {

template <class T, class Less, class Key>
void sort_stably(std::vector<T>& all, Less less, Key key) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    const auto& left_key = std::invoke(key, all[left]);
    const auto& right_key = std::invoke(key, all[right]);
    if (less(left_key, right_key)) return true;
    return !less(right_key, left_key) && left < right;
  });
  std::vector<T> sorted;
  sorted.reserve(all.size());
  for (const std::size_t from : order) sorted.push_back(std::move(all[from]));
  all = std::move(sorted);
}

}  // namespace troupe_tool
