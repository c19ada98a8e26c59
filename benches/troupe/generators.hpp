// Our benchmark of generators. ../README.md says what one operation is.
#pragma once

#include <cstdint>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- an async_generator that has its values ready ----

inline troupe::async_generator<std::uint64_t> numbers(std::uint64_t size) {
  for (std::uint64_t i = 0; i < size; ++i) co_yield std::uint64_t{i};
}

inline troupe::task<std::uint64_t> count_right(std::uint64_t size) {
  std::uint64_t right = 0;
  auto all = numbers(size);
  while (const auto one = co_await all.next()) right += *one == right ? 1 : 0;
  co_return right;
}

inline result async_generator(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto right = rt.spawn(count_right(size));
  rt.run();
  return {.value = watch.ns_per(size), .check = right.get()};
}

}  // namespace troupe_bench
