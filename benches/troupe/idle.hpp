// Our benchmarks of a runtime at rest, of waking it, and of spreading work over workers.
// ../README.md says what is measured.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;

struct sleeper {
  explicit sleeper(std::uint64_t& count) : answers(&count) {}
  void answer() { ++*answers; }
  std::uint64_t* answers;
};

inline result idle_memory(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  std::uint64_t answers = 0;
  std::vector<troupe::ref<sleeper>> handles(size);
  const std::int64_t before = measure::resident_bytes();
  for (auto& one : handles) one = rt.spawn<sleeper>(answers);
  rt.run();
  const std::int64_t after = measure::resident_bytes();
  if (workers > 1) workers = 1;  // the count is not atomic: one actor answers after the other
  for (auto& one : handles) {
    one.tell<&sleeper::answer>();
    if (workers > 0) rt.run();
  }
  return {.value = static_cast<double>(after - before) / static_cast<double>(size),
          .check = answers};
}

inline result idle_cpu(unsigned workers, std::uint64_t seconds) {
  troupe::runtime rt({.workers = workers});
  std::uint64_t answers = 0;
  auto one = rt.spawn<sleeper>(answers);
  auto pinned =
      rt.spawn<sleeper>(troupe::pinned("idle"), troupe::unchecked<std::uint64_t&>{answers});
  auto open = rt.hold();
  std::thread main_part([&rt] { rt.run(); });  // the main thread's queue is parked, too
  measure::sleep_ms(500);
  const std::int64_t cpu = measure::process_cpu_ns(), began = measure::now_ns();
  measure::sleep_ms(static_cast<std::int64_t>(seconds) * 1000);
  const double busy = static_cast<double>(measure::process_cpu_ns() - cpu),
               wall = static_cast<double>(measure::now_ns() - began);
  one.tell<&sleeper::answer>();
  open.release();
  main_part.join();
  return {.value = busy / wall * 1000, .check = answers};
}

struct receiver {
  explicit receiver(std::vector<std::int64_t>& into) : latencies(into) {}
  void post(std::int64_t sent_ns) { latencies.push_back(measure::now_ns() - sent_ns); }
  std::vector<std::int64_t>& latencies;
};

inline result wake_latency(unsigned workers, std::uint64_t posts) {
  measure::pin_this_thread(0);  // the pool inherits this
  troupe::runtime rt({.workers = workers});
  std::vector<std::int64_t> latencies;
  latencies.reserve(posts);
  auto to = rt.spawn<receiver>(latencies);
  std::thread poster([&, open = rt.hold()] {
    measure::pin_this_thread(1);
    for (std::uint64_t i = 0; i < posts; ++i) {
      measure::sleep_ms(1);
      to.tell<&receiver::post>(measure::now_ns());
    }
  });
  rt.run();
  poster.join();
  return measure::latency_result(std::move(latencies));
}

struct calculator {
  void step(std::uint64_t left) {
    // About a microsecond of arithmetic that the compiler cannot remove.
    for (int i = 0; i < 500; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
    ++done;
    if (left > 1) troupe::self(this).tell<&calculator::step>(left - 1);
  }
  void report(std::atomic<std::uint64_t>* into) { *into += done + (state == 0); }
  std::uint64_t state = 1;
  std::uint64_t done = 0;
};

inline double seconds_with(unsigned workers, std::uint64_t steps, std::uint64_t& handled) {
  troupe::runtime rt({.workers = workers});
  std::vector<troupe::ref<calculator>> all;
  for (int i = 0; i < 64; ++i) all.push_back(rt.spawn<calculator>());
  const measure::stopwatch watch;
  for (auto& one : all) one.tell<&calculator::step>(steps);
  rt.run();
  const double seconds = watch.ns_per(1'000'000'000);
  std::atomic<std::uint64_t> sum{0};
  for (auto& one : all) one.tell([&sum](calculator& self) { self.report(&sum); });
  rt.run();
  handled = sum;
  return seconds;
}

inline result scaling(unsigned workers, std::uint64_t steps) {
  std::uint64_t handled = 0;
  const double one = seconds_with(1, steps, handled);
  const double more = seconds_with(std::max(workers, 2u), steps, handled);
  return {.value = one / more, .check = handled};
}

}  // namespace troupe_bench
