// Our benchmarks of actors in a row: bounded_buffer and radix. ../README.md says what one operation
// is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// Work of some hundred nanoseconds that the compiler cannot remove.
inline std::uint64_t mix(std::uint64_t seed, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) seed = (seed ^ (seed >> 29)) * 0xBF58476D1CE4E5B9u;
  return seed;
}

// ---- bounded_buffer: senders wait for room, and their receiver works ----

struct buffer_sink {
  std::uint64_t* count;
  std::uint64_t sum = 0;
  void put(std::uint64_t item) {
    sum += mix(item, 300);
    ++*count;
  }
};
struct buffer_source {
  troupe::ref<buffer_sink> to;
  troupe::task<> run(std::uint64_t items) {
    for (std::uint64_t i = 0; i < items; ++i) co_await to.send<&buffer_sink::put>(mix(i, 300));
  }
};
template <troupe::policy Policy>
result bounded_buffer(unsigned workers, std::uint64_t each) {
  constexpr std::uint64_t sources = 40, room = 50;
  troupe::runtime_options options;
  options.workers = workers;
  options.policy = Policy;
  troupe::runtime rt(options);
  auto count = std::make_unique<std::uint64_t>(0);
  troupe::spawn_options bounded;
  bounded.mailbox.messages = room;
  auto sink = rt.spawn<buffer_sink>(bounded, count.get());
  std::vector<troupe::ref<buffer_source>> all;
  for (std::uint64_t i = 0; i < sources; ++i) all.push_back(rt.spawn<buffer_source>(sink));
  const stopwatch watch;
  for (const auto& one : all) one.tell<&buffer_source::run>(each);
  rt.run();
  return {.value = watch.ns_per(each * sources), .check = *count};
}

// ---- radix: keys go through a row of actors, each of which lets those without its bit pass first

struct radix_end {
  explicit radix_end(std::uint64_t* count) : in_order(count) {}
  void take(std::uint64_t key) {
    if (key >= last) ++*in_order;
    last = key;
  }
  std::uint64_t* in_order;
  std::uint64_t last = 0;
};
struct radix_actor {
  radix_actor(std::uint64_t keys, std::uint64_t own, troupe::ref<radix_actor> behind,
              troupe::ref<radix_end> end)
      : left(keys), bit(own), next(std::move(behind)), last(std::move(end)) {}
  void take(std::uint64_t key) {
    if ((key & bit) == 0) {
      pass(key);
    } else {
      kept.push_back(key);
    }
    if (--left != 0) return;
    for (const std::uint64_t one : kept) pass(one);
    kept.clear();
  }
  void pass(std::uint64_t key) {
    if (next) return next.tell<&radix_actor::take>(key);
    last.tell<&radix_end::take>(key);
  }
  std::uint64_t left;
  std::uint64_t bit;
  troupe::ref<radix_actor> next;
  troupe::ref<radix_end> last;
  std::vector<std::uint64_t> kept;
};
// The main thread feeds the keys.
template <troupe::policy Policy>
result radix(unsigned workers, std::uint64_t keys) {
  constexpr unsigned bits = 60;
  troupe::runtime_options options;
  options.workers = workers;
  options.policy = Policy;
  troupe::runtime rt(options);
  auto in_order = std::make_unique<std::uint64_t>(0);
  troupe::ref<radix_actor> first;
  auto end = rt.spawn<radix_end>(in_order.get());
  for (unsigned bit = bits; bit-- > 0;) {
    first = rt.spawn<radix_actor>(keys, std::uint64_t{1} << bit, std::move(first), end);
  }
  std::uint64_t key = 1;
  const stopwatch watch;
  for (std::uint64_t i = 0; i < keys; ++i) {
    key = mix(key + i, 2);
    first.tell<&radix_actor::take>(key >> 4);
  }
  rt.run();
  return {.value = watch.ns_per(keys), .check = *in_order};
}

}  // namespace troupe_bench
