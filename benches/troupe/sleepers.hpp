// Our benchmarks of sleeping tasks and of cancelled timers: memory and timers. ../README.md says
// what is measured.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- memory: tasks that sleep for an hour ----

struct naps {
  std::atomic<std::uint64_t> begun{0}, ended{0};
};

inline troupe::task<> nap(naps& all) {
  all.begun.fetch_add(1, std::memory_order_relaxed);
  co_await troupe::sleep_for(std::chrono::hours(1));
  all.ended.fetch_add(1, std::memory_order_relaxed);
}

// The runtime is never destroyed: its end would wake all tasks, with an exception each.
inline result memory(unsigned workers, std::uint64_t size) {
  auto& rt = *new troupe::runtime({.workers = workers});
  auto& all = *new naps;
  const std::int64_t before = measure::resident_bytes();
  for (std::uint64_t i = 0; i < size; ++i) rt.spawn(nap(all));
  while (all.begun < size) measure::sleep_ms(10);
  measure::sleep_ms(500);  // until the last tasks sleep
  const std::int64_t after = measure::resident_bytes();
  return {.value = static_cast<double>(after - before) / static_cast<double>(size),
          .check = all.begun - all.ended};
}

// ---- timers: calls that are due in an hour; all are armed, then all are cancelled ----

inline std::uint64_t arm_and_cancel(troupe::runtime& rt, std::vector<troupe::timer>& all,
                                    std::uint64_t& called) {
  std::uint64_t in_time = 0;
  for (auto& one : all) one = rt.after(std::chrono::hours(1), [&called] { ++called; });
  for (auto& one : all) in_time += one.cancel() ? 1 : 0;
  return in_time;
}

// Runs once before the clock starts, so that the memory is allocated.
inline result timers(unsigned, std::uint64_t size) {
  troupe::runtime rt({.workers = 1});
  std::vector<troupe::timer> all(size);
  std::uint64_t called = 0;
  arm_and_cancel(rt, all, called);
  const stopwatch watch;
  const std::uint64_t in_time = arm_and_cancel(rt, all, called);
  const double value = watch.ns_per(size);
  rt.run();
  return {.value = value, .check = in_time - called};
}

}  // namespace troupe_bench
