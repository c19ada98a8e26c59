// Our benchmarks of tasks that sleep and of timers that are cancelled: memory and timers.
// ../README.md says what is measured.
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

// ---- memory: tasks that sleep for an hour ----------------------------------------------------------

struct naps {
  std::atomic<std::uint64_t> begun{0}, ended{0};
};

inline troupe::task<> nap(naps& all) {
  all.begun.fetch_add(1, std::memory_order_relaxed);
  co_await troupe::sleep_for(std::chrono::hours(1));
  all.ended.fetch_add(1, std::memory_order_relaxed);
}

// The runtime is never destroyed: its end would wake them all, one exception each.
inline result memory(unsigned workers, std::uint64_t size) {
  auto& rt = *new troupe::runtime({.workers = workers});
  auto& all = *new naps;
  const std::int64_t before = measure::resident_bytes();
  for (std::uint64_t i = 0; i < size; ++i) rt.spawn(nap(all));
  while (all.begun < size) measure::sleep_ms(10);
  measure::sleep_ms(500);  // the last ones fall asleep
  const std::int64_t after = measure::resident_bytes();
  return {.value = static_cast<double>(after - before) / static_cast<double>(size), .check = all.begun - all.ended};
}

// ---- timers: waits that may take an hour; all are armed, then all end in time -----------------------

struct waits {
  explicit waits(std::uint64_t size) : asked(size) {}
  std::vector<troupe::promise<>> asked;
  std::uint64_t armed = 0, in_time = 0;
};

inline troupe::task<> wait_at_most_an_hour(waits& all, troupe::future<> of) {
  ++all.armed;
  co_await std::move(of).timeout(std::chrono::hours(1));
  ++all.in_time;
}

// By timeouts, which are what most timers are for, and less work than after() with a stop token. Still each is a
// task and a future too: of about 550 ns the timer alone, tasks::arm and tasks::cancel, takes 45.
inline troupe::task<> arm_and_cancel(troupe::runtime& rt, waits& all) {
  for (auto& one : all.asked) rt.spawn(wait_at_most_an_hour(all, one.get_future()));
  while (all.armed < all.asked.size()) co_await troupe::yield();
  for (auto& one : all.asked) one.set_value();
}

// With one worker, as the plain counts ask. Once before the clock starts, so that the memory is there.
inline result timers(unsigned, std::uint64_t size) {
  troupe::runtime rt({.workers = 1});
  waits first(size), all(size);
  rt.spawn(arm_and_cancel(rt, first));
  rt.run();
  const stopwatch watch;
  rt.spawn(arm_and_cancel(rt, all));
  rt.run();
  return {.value = watch.ns_per(size), .check = all.in_time};
}

}  // namespace troupe_bench
