// parallel_reduce: combines all elements of a range into one value. parallel_scan: does so for each
// prefix of a range.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/jobs/parts.hpp"

namespace troupe {

namespace jobs {

// Combines the elements of each part into one value for the part.
template <class T, class First, class Combine, class Transform>
class reduction final : public part_body {
 public:
  reduction(const cut<First>& over, Combine&& combine, Transform&& transform)
      : cut_(over), combine_(std::move(combine)), transform_(std::move(transform)) {}
  void begin() { values_.resize(cut_.parts()); }
  std::size_t parts() const noexcept { return values_.size(); }
  void run_part(std::size_t i) const override {
    First at = cut_.begin_of(i);
    const First end = cut_.end_of(i);
    T sum = std::invoke(transform_, *at);
    while (++at != end) sum = std::invoke(combine_, std::move(sum), std::invoke(transform_, *at));
    values_[i].emplace(std::move(sum));  // each part writes its own element
  }
  // Combines the parts' values in order, and frees each value after its use.
  T fold(T sum) const {
    for (auto& value : values_) {
      sum = std::invoke(combine_, std::move(sum), std::move(*value));
      value.reset();
    }
    return sum;
  }
  // Replaces each part's value by the combined value of all parts before it, in order.
  void find_prefixes() const {
    std::optional<T> before;
    for (auto& value : values_) {
      std::optional<T> next(before ? std::invoke(combine_, *before, std::move(*value))
                                   : std::move(*value));
      value = std::exchange(before, std::move(next));
    }
  }
  const std::optional<T>& before(std::size_t part) const { return values_[part]; }
  const cut<First>& all() const noexcept { return cut_; }
  const Combine& combines() const noexcept { return combine_; }

 private:
  cut<First> cut_;
  Combine combine_;
  Transform transform_;
  mutable std::vector<std::optional<T>> values_;
};

template <class T, class Reduction>
work<T> run_reduction(Reduction loop, T init) {
  loop.begin();
  if (loop.parts() != 0) co_await run_parts(loop, loop.parts());
  co_return loop.fold(std::move(init));
}

template <class Reduction, class Out>
class rescan final : public part_body {
 public:
  rescan(const Reduction& sums, Out out) : sums_(sums), out_(std::move(out)) {}
  void run_part(std::size_t i) const override {
    const auto& all = sums_.all();
    const Out to = out_ + static_cast<std::iter_difference_t<Out>>(i * all.grain);
    // std::inclusive_scan copies its function
    const auto combine = std::cref(sums_.combines());
    if (const auto& before = sums_.before(i)) {
      std::inclusive_scan(all.begin_of(i), all.end_of(i), to, combine, *before);
    } else {
      std::inclusive_scan(all.begin_of(i), all.end_of(i), to, combine);
    }
  }

 private:
  const Reduction& sums_;
  const Out out_;
};

template <class Reduction, class Out>
work<> run_scan(Reduction sums, Out out) {
  sums.begin();
  if (sums.parts() == 0) co_return;
  co_await run_parts(sums, sums.parts());
  sums.find_prefixes();
  const rescan<Reduction, Out> again(sums, std::move(out));
  co_await run_parts(again, sums.parts());
}

}  // namespace jobs

// Returns `init` and the values transform(element) of all elements, combined by combine(T, T),
// which must be associative but need not be commutative. Otherwise as parallel_for. The elements of
// a part are combined from the first to the last, then the parts in their order. Therefore the same
// range and grain give the same result, to the last bit of a floating point number, for any number
// of workers. Grain by default: a 256th of the range, which does not depend on the workers either.
// T may be move-only: values are moved, never copied.
//
// Example:
//     const std::vector<double> numbers{1, 2, 3};
//     const auto square = [](double one) { return one * one; };
//     std::cout << troupe::parallel_reduce(numbers, 0.0, std::plus(), square).get() << '\n';
template <class Range, class T, class Combine = std::plus<>, class Transform = std::identity>
requires jobs::parallel_range<Range> work<T> parallel_reduce(Range&& range, T init,
                                                             Combine combine = {},
                                                             Transform transform = {},
                                                             parallel_options options = {}) {
  static_assert(std::movable<T>,
                "troupe: parallel_reduce: the type of init must be movable and assignable");
  static_assert(
      std::convertible_to<
          std::invoke_result_t<const Transform&, std::ranges::range_reference_t<Range>>, T> &&
          std::is_invocable_r_v<T, const Combine&, T, T>,
      "troupe: parallel_reduce: transform(element) and combine(T, T) must give the type of init; "
      "they are called as const objects");
  const std::size_t grain =
      options.grain != 0 ? options.grain : jobs::fixed_grain(std::ranges::size(range));
  const auto all = jobs::cut_of(range, grain);
  using loop_type = jobs::reduction<T, std::ranges::iterator_t<Range>, Combine, Transform>;
  loop_type loop(all, std::move(combine), std::move(transform));
  return jobs::run_reduction<T>(std::move(loop), std::move(init));
}

// For each element, writes to `out` the combination of all elements up to and including it. `out`
// must have random access and may be the range itself. Divided and combined as by parallel_reduce;
// each element is read twice.
//
// Example:
//     std::vector<int> numbers{1, 2, 3};
//     troupe::parallel_scan(numbers, numbers.begin()).get();
//     std::cout << numbers[2] << '\n';
template <class Range, std::random_access_iterator Out, class Combine = std::plus<>>
requires jobs::parallel_range<Range> work<> parallel_scan(Range&& range, Out out,
                                                          Combine combine = {},
                                                          parallel_options options = {}) {
  using value = std::ranges::range_value_t<Range>;
  static_assert(std::copyable<value>,
                "troupe: parallel_scan: the elements must be copyable, since each sum is written "
                "and then added to");
  static_assert(!jobs::is_bit<std::iter_reference_t<Out>>,
                "troupe: parallel_scan: threads that write to neighbours in a std::vector<bool> "
                "lose bits; write to a std::vector<char>");
  const std::size_t grain =
      options.grain != 0 ? options.grain : jobs::fixed_grain(std::ranges::size(range));
  const auto all = jobs::cut_of(range, grain);
  using loop_type = jobs::reduction<value, std::ranges::iterator_t<Range>, Combine, std::identity>;
  std::identity same;
  loop_type sums(all, std::move(combine), std::move(same));
  return jobs::run_scan(std::move(sums), std::move(out));
}

}  // namespace troupe
