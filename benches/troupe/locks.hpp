// Our benchmarks of locks that suspend: mutex, semaphore, each alone and with 64 parties.
// ../README.md says what one operation of each is.
#pragma once

#include <cstdint>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- one task takes the lock and gives it back, again and again ----

inline troupe::task<std::uint64_t> lock_often(troupe::mutex& busy, std::uint64_t size) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto held = co_await busy.lock();
    ++count;
  }
  co_return count;
}

inline troupe::task<std::uint64_t> acquire_often(troupe::semaphore& permits, std::uint64_t size) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto permit = co_await permits.acquire();
    ++count;
  }
  co_return count;
}

inline result lock_mutex(unsigned workers, std::uint64_t size) {
  troupe::mutex busy;
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto count = rt.spawn(lock_often(busy, size));
  rt.run();
  return {.value = watch.ns_per(size), .check = count.get()};
}

inline result acquire(unsigned workers, std::uint64_t size) {
  troupe::semaphore permits(8);
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  auto count = rt.spawn(acquire_often(permits, size));
  rt.run();
  return {.value = watch.ns_per(size), .check = count.get()};
}

// ---- 64 tasks; each lets the others run while it holds the lock, so that they queue for it ----

constexpr std::uint64_t parties = 64;

inline troupe::task<> lock_and_yield(troupe::mutex& busy, std::uint64_t& count,
                                     std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) {
    const auto held = co_await busy.lock();
    ++count;
    co_await troupe::yield();
  }
}

inline troupe::task<> acquire_and_yield(troupe::semaphore& permits, std::uint64_t& count,
                                        std::uint64_t times) {
  for (std::uint64_t i = 0; i < times; ++i) {
    const auto permit = co_await permits.acquire();
    ++count;
    co_await troupe::yield();
  }
}

inline result lock_mutex_64(unsigned workers, std::uint64_t size) {
  troupe::mutex busy;
  std::uint64_t count = 0;  // guarded by the mutex
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  for (std::uint64_t i = 0; i < parties; ++i) rt.spawn(lock_and_yield(busy, count, size / parties));
  rt.run();
  return {.value = watch.ns_per(size), .check = count};
}

inline result acquire_64(unsigned workers, std::uint64_t size) {
  troupe::semaphore permits(8);
  std::vector<std::uint64_t> counts(parties * 16);  // each in a cache line of its own
  troupe::runtime rt({.workers = workers});
  const stopwatch watch;
  for (std::uint64_t i = 0; i < parties; ++i)
    rt.spawn(acquire_and_yield(permits, counts[i * 16], size / parties));
  rt.run();
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return {.value = watch.ns_per(size), .check = all};
}

}  // namespace troupe_bench
