// parallel_for: calls a function for each element of a range, or each number of an interval, on all
// workers.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "troupe/jobs/parts.hpp"

namespace troupe {

namespace jobs {

template <class First, class Body>
class for_loop final : public part_body {
 public:
  for_loop(const cut<First>& over, Body&& body) : cut_(over), body_(std::move(body)) {}
  // The default, by the number of workers at the beginning.
  std::size_t count_parts() {
    if (cut_.grain == 0) cut_.grain = grain_by_workers(cut_.count);
    return cut_.parts();
  }
  void run_part(std::size_t i) const override {
    const First end = cut_.end_of(i);
    for (First at = cut_.begin_of(i); at != end; ++at) {
      if constexpr (std::integral<First>) {
        static_cast<void>(std::invoke(body_, at));
      } else {
        static_cast<void>(std::invoke(body_, *at));
      }
    }
  }

 private:
  cut<First> cut_;
  Body body_;
};

template <class First, class Body>
work<> run_for(for_loop<First, Body> loop) {
  const std::size_t parts = loop.count_parts();
  if (parts != 0) co_await run_parts(loop, parts);
}

}  // namespace jobs

// Calls body(element) once for each element of a random access range, several at the same time.
// co_await it in a task, a handler or a work; call get() in plain code. The body is moved in and is
// called as a const object, by several threads at once. Elements that it writes must be separate
// objects, which the bits of a std::vector<bool> are not. Lifetime: the range must exist until the
// end, and must not be a temporary.
//
// Errors: if a call throws, no further part begins, and the first exception is thrown when the
// running parts have ended. Grain by default: a 64th of each worker's share. Choose a larger one
// for calls of a few ns, so that a part takes at least 10 µs; an actor on the same worker may have
// to wait for a whole part.
//
// Example:
//     std::vector<int> numbers{1, 2, 3};
//     troupe::parallel_for(numbers, [](int& one) { one *= 2; }).get();
//     std::cout << numbers[2] << '\n';
template <class Range, class Body>
requires jobs::parallel_range<Range> work<> parallel_for(Range&& range, Body body,
                                                         parallel_options options = {}) {
  static_assert(std::invocable<const Body&, std::ranges::range_reference_t<Range>>,
                "troupe: parallel_for: the body must be callable with an element, as a const "
                "object: several threads call it at once");
  static_assert(!tasks::makes_task<const Body&, std::ranges::range_reference_t<Range>>,
                "troupe: parallel_for: the body is a coroutine, which would never run: call get() "
                "of a work in it, or fork a vector of works");
  static_assert(!jobs::is_bit<std::ranges::range_reference_t<Range>>,
                "troupe: parallel_for: threads that write to neighbours in a std::vector<bool> "
                "lose bits; use a std::vector<char>, or give "
                "std::as_const(range) if the body only reads");
  jobs::for_loop loop(jobs::cut_of(range, options.grain), std::move(body));
  return jobs::run_for(std::move(loop));
}

// The same for the numbers from `first` up to but not including `last`, in the common type of both.
// Throws usage_error at once if that type is unsigned, `first` is negative, and `first` is less
// than `last`.
//
// Example:
//     std::vector<int> squares(10);
//     troupe::parallel_for(0, 10, [&](int i) {
//       squares[static_cast<std::size_t>(i)] = i * i;
//     }).get();
//     std::cout << squares[9] << '\n';
template <std::integral First, std::integral Last, class Body>
work<> parallel_for(First first, Last last, Body body, parallel_options options = {}) {
  using index = std::common_type_t<First, Last>;
  static_assert(std::invocable<const Body&, index>,
                "troupe: parallel_for: the body must be callable with a number, as a const object: "
                "several threads call it at once");
  static_assert(!tasks::makes_task<const Body&, index>,
                "troupe: parallel_for: the body is a coroutine, which would never run: call get() "
                "of a work in it, or fork a vector of works");
  jobs::for_loop loop(jobs::interval(first, last, options.grain, "parallel_for"), std::move(body));
  return jobs::run_for(std::move(loop));
}

}  // namespace troupe
