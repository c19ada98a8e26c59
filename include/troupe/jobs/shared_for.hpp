// shared_for and shared_reduce: plain loops that cost almost nothing until another worker is idle.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/jobs/parts.hpp"
#include "troupe/jobs/shared_loop.hpp"

namespace troupe {

namespace jobs {

// The elements of a range, or the numbers of an interval, by index.
template <class First>
struct elements_from {
  First first;
  decltype(auto) operator[](std::size_t i) const {
    if constexpr (std::integral<First>) {
      return static_cast<First>(static_cast<std::size_t>(first) + i);
    } else {
      return first[static_cast<std::iter_difference_t<First>>(i)];
    }
  }
  elements_from from(std::size_t i) const {
    if constexpr (std::integral<First>) {
      return {(*this)[i]};
    } else {
      return {first + static_cast<std::iter_difference_t<First>>(i)};
    }
  }
};

// A small function, copied so that the compiler may keep its members in registers. Parts that are
// given to other threads refer to the caller's function.
template <class Function>
class hot_copy {
 public:
  static constexpr bool copies = std::is_trivially_copyable_v<Function> &&
                                 std::is_trivially_copy_constructible_v<Function> &&
                                 sizeof(Function) <= 64;
  explicit hot_copy(const Function& function) noexcept : function_(function) {}
  const Function& get() const noexcept { return function_; }

 private:
  std::conditional_t<copies, const Function, const Function&> function_;
};

template <class First, class Body>
struct shared_for_loop final : shared_loop {
  TROUPE_INLINE shared_for_loop(const elements_from<First>& all, std::size_t count,
                                const Body& body) noexcept
      : shared_loop(count, type), elements(all), calls(body) {}
  static given_part* give(shared_loop& base, std::size_t first, std::size_t last) noexcept try {
    const auto& self = static_cast<shared_for_loop&>(base);
    return part_of<void>::make(run_given(self.elements.from(first), last - first, self.calls));
  } catch (...) {
    return nullptr;
  }
  static work<> run_given(elements_from<First> all, std::size_t count, const Body& body);
  static constexpr kind type{&give, &part_of<void>::free};

  const elements_from<First> elements;
  const Body& calls;
};

template <class First, class Body>
void begin_shared_for(elements_from<First> all, std::size_t count, const Body& body);

template <class First, class Body>
TROUPE_INLINE_HERE void run_shared_for(const elements_from<First>& all, std::size_t count,
                                       const Body& body) {
  if (!in_segment()) [[unlikely]]
    return begin_shared_for(all, count, body);
  shared_for_loop<First, Body> loop(all, count, body);
  const hot_copy<Body> mine(body);
  const elements_from<First> elements = all;
  if (loop.run([&](std::size_t i) { static_cast<void>(std::invoke(mine.get(), elements[i])); }))
      [[unlikely]]
    loop.leave();
}

template <class First, class Body>
TROUPE_NOINLINE void begin_shared_for(elements_from<First> all, std::size_t count,
                                      const Body& body) {
  begin_segment([&] { run_shared_for(all, count, body); });
}

template <class First, class Body>
work<> shared_for_loop<First, Body>::run_given(elements_from<First> all, std::size_t count,
                                               const Body& body) {
  run_shared_for(all, count, body);
  co_return;
}

template <class T, class Combine, class Value>
TROUPE_INLINE void add_to(T& sum, const Combine& combine, Value&& value) {
  sum = std::invoke(combine, std::move(sum), std::forward<Value>(value));
}
template <class T, class Combine, class Value>
void add_to(std::optional<T>& sum, const Combine& combine, Value&& value) {
  if (sum) {
    add_to(*sum, combine, std::forward<Value>(value));
  } else {
    sum.emplace(std::forward<Value>(value));
  }
}

template <class T, class First, class Combine, class Transform>
struct shared_reduction final : shared_loop {
  TROUPE_INLINE shared_reduction(const elements_from<First>& all, std::size_t count,
                                 const Combine& combine, const Transform& transform) noexcept
      : shared_loop(count, type), elements(all), combines(combine), transforms(transform) {}
  static given_part* give(shared_loop& base, std::size_t first, std::size_t last) noexcept try {
    const auto& self = static_cast<shared_reduction&>(base);
    return part_of<T>::make(
        run_given(self.elements.from(first), last - first, self.combines, self.transforms));
  } catch (...) {
    return nullptr;
  }
  static work<T> run_given(elements_from<First> all, std::size_t count, const Combine& combine,
                           const Transform& transform);
  static constexpr kind type{&give, &part_of<T>::free};
  // Adds the parts' results in the order of their elements; the part that was given last comes
  // first.
  template <class Sum>
  TROUPE_NOINLINE Sum add_given(Sum sum) {
    for (given_part* at = newest_given; at != nullptr; at = at->older)
      add_to(sum, combines, static_cast<part_of<T>*>(at)->begun.take());
    return sum;
  }

  const elements_from<First> elements;
  const Combine& combines;
  const Transform& transforms;
};

// The part of run_shared_reduction that begins a segment. It is a separate function with parameters
// by value, so that no variable of run_shared_reduction needs an address.
template <class T, class Sum, class First, class Combine, class Transform>
Sum begin_shared_reduction(elements_from<First> all, std::size_t count, Sum init,
                           const Combine& combine, const Transform& transform);

// Sum is T, or an optional T without a value.
template <class T, class Sum, class First, class Combine, class Transform>
TROUPE_INLINE_HERE Sum run_shared_reduction(const elements_from<First>& all, std::size_t count,
                                            Sum init, const Combine& combine,
                                            const Transform& transform) {
  if (!in_segment()) [[unlikely]] {
    return begin_shared_reduction<T, Sum>(all, count, std::move(init), combine, transform);
  }
  Sum sum = std::move(init);
  shared_reduction<T, First, Combine, Transform> loop(all, count, combine, transform);
  const hot_copy<Transform> mine(transform);
  const elements_from<First> elements = all;
  if (loop.run([&](std::size_t i) { add_to(sum, combine, std::invoke(mine.get(), elements[i])); }))
      [[unlikely]] {
    const leaves_given at_end(loop);  // even if the move of `sum` throws
    return loop.add_given(std::move(sum));
  }
  return sum;
}

template <class T, class Sum, class First, class Combine, class Transform>
TROUPE_NOINLINE Sum begin_shared_reduction(elements_from<First> all, std::size_t count, Sum init,
                                           const Combine& combine, const Transform& transform) {
  return begin_segment([&] {
    return run_shared_reduction<T, Sum>(all, count, std::move(init), combine, transform);
  });
}

template <class T, class First, class Combine, class Transform>
work<T> shared_reduction<T, First, Combine, Transform>::run_given(elements_from<First> all,
                                                                  std::size_t count,
                                                                  const Combine& combine,
                                                                  const Transform& transform) {
  std::optional<T> none;
  std::optional<T> sum = run_shared_reduction<T>(all, count, std::move(none), combine, transform);
  co_return std::move(*sum);
}

}  // namespace jobs

// A loop in plain code. It runs in the calling thread, from the first element to the last, until an
// idle worker joins: that worker takes half of the remaining elements. It is meant for loops within
// loops, and for recursion with a loop in each node. Cost: 5 to 20 ns as long as no worker is idle:
// a program needs no size limit below which it uses plain loops. Of nested loops the outermost is
// shared first, since it has the most work left.
//
// Thread: plain code, posted procedures, lazies, functions that these call, and works; in a handler
// it throws usage_error: there, co_await a work that calls it. It returns when all calls have
// returned. While other threads finish the parts that they took, the calling thread helps with this
// loop only, and then sleeps. It occupies its thread like other plain code: actors run only where a
// parallel_for or a fork around it begins a new part, and a thread that has joined is occupied by
// the elements that it took. Hold no lock that the body takes. Without a runtime, in serial mode,
// and with stealing off, it is a plain loop.
//
// Errors: if a call throws, no new call begins in this loop and in the loops inside it, except for
// calls before the next check, every 10 to 40 µs. The loop waits for parts that other threads have
// begun, whose own loops throw troupe::cancelled, and then throws the first exception. The same
// happens at a stop that discards, at the end of the caller that waits for a work, and if the
// outermost fork around the loop fails in another part. If an inner fork fails, the loops in its
// other parts run to their end. The body is called as a const object, by several threads at once.
//
// Example:
//     void visit(const std::vector<std::vector<int>>& below, int node, std::atomic<long>& sum) {
//       sum += node;
//       troupe::shared_for(below[static_cast<std::size_t>(node)],
//                          [&](int child) { visit(below, child, sum); });
//     }
//     int main() {
//       const troupe::runtime rt;
//       std::atomic<long> sum{0};
//       visit({{1, 2}, {3}, {}, {}}, 0, sum);
//       std::cout << sum << '\n';
//     }
template <class Range, class Body>
requires jobs::parallel_range<Range> TROUPE_INLINE void shared_for(Range&& range,
                                                                   const Body& body) {
  static_assert(std::invocable<const Body&, std::ranges::range_reference_t<Range>>,
                "troupe: shared_for: the body must be callable with an element, as a const object: "
                "several threads call it at once");
  static_assert(!tasks::makes_task<const Body&, std::ranges::range_reference_t<Range>>,
                "troupe: shared_for: the body is a coroutine, which would never run: call get() "
                "of a work in it, or fork a vector of works");
  static_assert(!jobs::is_bit<std::ranges::range_reference_t<Range>>,
                "troupe: shared_for: threads that write to neighbours in a std::vector<bool> lose "
                "bits; use a std::vector<char>, or give "
                "std::as_const(range) if the body only reads");
  const jobs::elements_from<std::ranges::iterator_t<Range>> all{std::ranges::begin(range)};
  jobs::run_shared_for(all, static_cast<std::size_t>(std::ranges::size(range)), body);
}

// The same for the numbers from `first` up to but not including `last`, in the common type of both.
// Throws usage_error if that type is unsigned, `first` is negative, and `first` is less than
// `last`.
//
// Example:
//     std::vector<int> squares(10);
//     troupe::shared_for(0, 10, [&](int i) { squares[static_cast<std::size_t>(i)] = i * i; });
//     std::cout << squares[9] << '\n';
template <std::integral First, std::integral Last, class Body>
TROUPE_INLINE void shared_for(First first, Last last, const Body& body) {
  using index = std::common_type_t<First, Last>;
  static_assert(std::invocable<const Body&, index>,
                "troupe: shared_for: the body must be callable with a number, as a const object: "
                "several threads call it at once");
  static_assert(!tasks::makes_task<const Body&, index>,
                "troupe: shared_for: the body is a coroutine, which would never run: call get() "
                "of a work in it, or fork a vector of works");
  const jobs::cut<index> all = jobs::interval(first, last, 0, "shared_for");
  jobs::run_shared_for(jobs::elements_from<index>{all.first}, all.count, body);
}

// As shared_for; returns `init` and the values transform(element) of all elements, combined by
// combine(T, T), which must be associative but need not be commutative. The points at which the
// range is divided depend on which workers are idle. The last bits of a floating point result may
// therefore differ from run to run; with parallel_reduce they do not.
//
// Example:
//     long fib(int n) {
//       if (n < 2) return n;
//       return troupe::shared_reduce(1, 3, 0L, std::plus(),
//                                    [n](int less) { return fib(n - less); });
//     }
//     int main() {
//       const troupe::runtime rt;
//       std::cout << fib(20) << '\n';
//     }
template <class Range, class T, class Combine = std::plus<>, class Transform = std::identity>
requires jobs::parallel_range<Range> TROUPE_INLINE T
shared_reduce(Range&& range, T init, const Combine& combine = {}, const Transform& transform = {}) {
  static_assert(
      std::convertible_to<
          std::invoke_result_t<const Transform&, std::ranges::range_reference_t<Range>>, T> &&
          std::convertible_to<std::invoke_result_t<const Combine&, T, T>, T>,
      "troupe: shared_reduce: transform(element) and combine(T, T) must give the type of init; "
      "they are called as const objects");
  const jobs::elements_from<std::ranges::iterator_t<Range>> all{std::ranges::begin(range)};
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  return jobs::run_shared_reduction<T, T>(all, count, std::move(init), combine, transform);
}
template <std::integral First, std::integral Last, class T, class Combine = std::plus<>,
          class Transform = std::identity>
TROUPE_INLINE T shared_reduce(First first, Last last, T init, const Combine& combine = {},
                              const Transform& transform = {}) {
  using index = std::common_type_t<First, Last>;
  static_assert(std::convertible_to<std::invoke_result_t<const Transform&, index>, T> &&
                    std::convertible_to<std::invoke_result_t<const Combine&, T, T>, T>,
                "troupe: shared_reduce: transform(number) and combine(T, T) must give the type of "
                "init; they are called as const objects");
  const jobs::cut<index> all = jobs::interval(first, last, 0, "shared_reduce");
  return jobs::run_shared_reduction<T, T>(jobs::elements_from<index>{all.first}, all.count,
                                          std::move(init), combine, transform);
}

}  // namespace troupe
