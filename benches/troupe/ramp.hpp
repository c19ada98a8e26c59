// Our benchmarks ramp_*: as many parts as workers, each of which sleeps for 20 ms. So two
// processors are enough to ask for any number of workers. ../README.md says what one operation is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "../measure.hpp"
#include "../task_work.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using troupe::work;

// The parts of one round: they sleep, and are counted.
struct ramp_round {
  std::uint64_t number = 0;
  std::atomic<std::uint64_t> parts{0};
  void nap() {
    parts.fetch_add(1, std::memory_order_relaxed);
    measure::sleep_ms(task_work::ramp_nap_ms);
  }
};

inline work<> ramp_part(ramp_round& in) {
  in.nap();
  co_return;
}
inline work<> ramp_span(ramp_round& in, unsigned count) {
  std::vector<work<>> parts;
  for (unsigned i = 0; i < count; ++i) parts.push_back(ramp_part(in));
  co_await troupe::fork(std::span(parts));
}
inline work<> ramp_halves(ramp_round& in, unsigned count) {
  if (count == 1) {
    in.nap();
    co_return;
  }
  co_await troupe::fork(ramp_halves(in, count / 2), ramp_halves(in, count - count / 2));
}
inline work<> ramp_for(ramp_round& in, unsigned count) {
  std::vector<int> numbers(count);
  const auto naps = [&in](int&) { in.nap(); };
  co_await troupe::parallel_for(numbers, naps);
}
inline work<> ramp_reduce(ramp_round& in, unsigned count) {
  const std::vector<int> numbers(count, 1);
  const auto naps = [&in](int one) {
    in.nap();
    return one;
  };
  co_await troupe::parallel_reduce(numbers, 0, std::plus(), naps);
}

// Each thread sleeps in the first piece that it does not divide: there it compares elements that
// are neighbours in memory.
struct ramp_less {
  ramp_round* in;
  bool operator()(const int& one, const int& two) const {
    thread_local std::uint64_t slept_in = 0;
    if (slept_in != in->number && &one - &two == 1 && one - two == 1) {
      slept_in = in->number;
      in->nap();
    }
    return one < two;
  }
};
inline work<> ramp_sort(ramp_round& in, unsigned count) {
  constexpr unsigned grain = 24;
  std::vector<int> numbers(std::size_t{count} * grain * 8);
  std::iota(numbers.begin(), numbers.end(), 0);
  const ramp_less less{&in};
  const troupe::parallel_options options{.grain = grain};
  co_await troupe::parallel_sort(numbers, less, options);
}
inline work<> ramp_lazies(ramp_round& in, unsigned count) {
  std::vector<troupe::lazy<int>> made;
  for (unsigned i = 0; i < count; ++i) {
    made.emplace_back([&in] {
      in.nap();
      return 1;
    });
  }
  for (auto& one : made) one.get();
  co_return;
}

// Waits with run(), because all parts are over when the runtime is out of work.
template <work<> (*Make)(ramp_round&, unsigned)>
void ramp_by_work(troupe::runtime& rt, ramp_round& in, unsigned count) {
  const auto wants = [](work<> given) -> troupe::task<> { co_await std::move(given); };
  rt.spawn(wants(Make(in, count)));
  rt.run();
}
inline void ramp_by_tasks(troupe::runtime& rt, ramp_round& in, unsigned count) {
  const auto one = [](ramp_round& of) -> troupe::task<> {
    of.nap();
    co_return;
  };
  const auto all = [](ramp_round& of, unsigned parts, auto begin) -> troupe::task<> {
    for (unsigned i = 0; i < parts; ++i) troupe::spawn(begin(of));
    co_return;
  };
  rt.spawn(all(in, count, one));
  rt.run();
}
struct ramp_actor {
  ramp_round* in;
  void nap() { in->nap(); }
};
struct ramp_teller {
  std::vector<troupe::ref<ramp_actor>> others;
  void begin() {
    for (auto& one : others) one.tell<&ramp_actor::nap>();
  }
};
inline void ramp_by_actors(troupe::runtime& rt, ramp_round& in, unsigned count) {
  std::vector<troupe::ref<ramp_actor>> others;
  for (unsigned i = 0; i < count; ++i) others.push_back(rt.spawn<ramp_actor>(&in));
  rt.spawn<ramp_teller>(std::move(others)).tell<&ramp_teller::begin>();
  rt.run();
}

// Returns milliseconds for a round, and how many rounds had a part for each worker.
template <void (*Round)(troupe::runtime&, ramp_round&, unsigned)>
result ramp(unsigned workers, std::uint64_t rounds) {
  troupe::runtime rt({.workers = workers});
  result made;
  for (std::uint64_t number = 1; number <= rounds; ++number) {
    ramp_round in{.number = number};
    measure::sleep_ms(20);  // all workers are at rest
    const std::int64_t began = measure::now_ns();
    Round(rt, in, workers);
    made.value += task_work::ms_of(began) / static_cast<double>(rounds);
    if (in.parts >= workers) ++made.check;
  }
  made.times_ideal = made.value / task_work::ramp_nap_ms;
  return made;
}

}  // namespace troupe_bench
