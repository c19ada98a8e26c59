// Our benchmark of scopes. ../README.md says what one operation is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- scopes of 1,000 children that do nothing ----

inline troupe::task<> count_one(std::uint64_t& count) {
  ++count;
  co_return;
}

inline troupe::task<std::uint64_t> scope_often(std::uint64_t size) {
  std::uint64_t count = 0;
  while (count < size) {
    const std::uint64_t now = std::min<std::uint64_t>(size - count, 1'000);
    co_await troupe::scope([&count, now](troupe::task_scope& s) {
      for (std::uint64_t i = 0; i < now; ++i) s.spawn(count_one(count));
    });
  }
  co_return count;
}

inline result scope_of_empty(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto count = rt.spawn(scope_often(size));
  rt.run();
  return {.value = watch.ns_per(size), .check = count.get()};
}

}  // namespace troupe_bench
