// Our benchmarks with many actors: big and chameneos. ../README.md says what one operation is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- big: everybody pings random others, one at a time ----

struct big_actor;
using big_crowd = std::vector<troupe::ref<big_actor>>;

struct big_actor {
  big_actor(std::uint64_t pings, std::uint64_t seed, std::atomic<std::uint64_t>& count)
      : left(pings), random(seed), answered(count) {}
  void meet(std::shared_ptr<const big_crowd> everybody, std::uint32_t index) {
    crowd = std::move(everybody);
    me = index;
  }
  void start() { ping_somebody(); }
  void ping(std::uint32_t from) { (*crowd)[from].tell<&big_actor::pong>(); }
  void pong() {
    ++got;
    if (--left > 0) return ping_somebody();
    answered.fetch_add(got, std::memory_order_relaxed);
  }
  void ping_somebody() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    (*crowd)[((random >> 32) * crowd->size()) >> 32].tell<&big_actor::ping>(me);
  }
  std::shared_ptr<const big_crowd> crowd;
  std::uint64_t left;
  std::uint64_t random;
  std::uint64_t got = 0;
  std::uint32_t me = 0;
  std::atomic<std::uint64_t>& answered;
};

inline result big(unsigned workers, std::uint64_t pings) {
  constexpr std::uint32_t actors = 120;
  troupe::runtime rt({.workers = workers});
  std::atomic<std::uint64_t> answered{0};
  auto crowd = std::make_shared<big_crowd>();
  for (std::uint32_t i = 0; i < actors; ++i)
    crowd->push_back(rt.spawn<big_actor>(pings, i * 0x9E3779B97F4A7C15u + 1, answered));
  for (std::uint32_t i = 0; i < actors; ++i) (*crowd)[i].tell<&big_actor::meet>(crowd, i);
  rt.run();
  const stopwatch watch;
  for (const auto& one : *crowd) one.tell<&big_actor::start>();
  rt.run();
  return {.value = watch.ns_per(pings * actors), .check = answered.load()};
}

// ---- chameneos: creatures meet in pairs at a mall and change their colours ----

struct creature;

struct mall {
  explicit mall(std::uint64_t meetings) : left(meetings) {}
  void meet(troupe::ref<creature> who, std::uint8_t colour);
  std::uint64_t left;
  troupe::ref<creature> waiting;
};

struct creature {
  creature(troupe::ref<mall> place, std::uint8_t own, std::uint64_t& count)
      : at(std::move(place)), colour(own), met(count) {}
  void start() { ask(); }
  void partner(troupe::ref<creature> other, std::uint8_t its_colour) {
    ++met;
    colour = complement(colour, its_colour);
    other.tell<&creature::change>(colour);
    ask();
  }
  void change(std::uint8_t to) {
    ++met;
    colour = to;
    ask();
  }
  void stop() { at = {}; }
  void ask() { at.tell<&mall::meet>(troupe::self(this), colour); }
  static std::uint8_t complement(std::uint8_t a, std::uint8_t b) {
    return a == b ? a : static_cast<std::uint8_t>(3 - a - b);
  }
  troupe::ref<mall> at;
  std::uint8_t colour;
  std::uint64_t& met;
};

inline void mall::meet(troupe::ref<creature> who, std::uint8_t colour) {
  if (left == 0) return who.tell<&creature::stop>();
  if (!waiting) {
    waiting = std::move(who);
    return;
  }
  --left;
  waiting.tell<&creature::partner>(std::move(who), colour);
  waiting = {};
}

inline result chameneos(unsigned workers, std::uint64_t meetings) {
  constexpr std::size_t creatures = 100;
  troupe::runtime rt({.workers = workers});
  struct alignas(128) padded {
    std::uint64_t count = 0;
  };
  std::vector<padded> counts(creatures);
  auto place = rt.spawn<mall>(meetings);
  std::vector<troupe::ref<creature>> all;
  for (std::size_t i = 0; i < creatures; ++i) {
    all.push_back(rt.spawn<creature>(place, static_cast<std::uint8_t>(i % 3), counts[i].count));
  }
  const stopwatch watch;
  // Sent by one procedure: if the main thread were preempted between two sends, some actors would
  // start much earlier than others.
  rt.post([all] {
    for (const auto& one : all) one.tell<&creature::start>();
  });
  rt.run();
  const double ns = watch.ns_per(meetings);
  std::vector<std::uint64_t> met;
  for (const padded& one : counts) met.push_back(one.count);
  return measure::meetings_result(ns, met);
}

}  // namespace troupe_bench
