// The floor's benchmarks with one message after another: ping_pong, counting, the two fork-joins
// and the rings. README.md says what one operation of each is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../measure.hpp"
#include "runtime.hpp"

namespace floor_bench {

using namespace floor_runtime;
using measure::result;
using measure::stopwatch;

// ---- ping_pong: the number goes there and back, one more each time ----

struct ponger final : actor {
  void handle(const message& m) override { send(m.from, this, 0, m.number + 1); }
};

struct pinger final : actor {
  void handle(const message& m) override {
    last = m.number;
    if (last < rounds) send(other, this, 0, last);
  }
  actor* other = nullptr;
  std::uint64_t rounds = 0;
  std::uint64_t last = 0;
};

inline result ping_pong(unsigned, std::uint64_t rounds) {
  ponger pong;
  pinger ping;
  ping.other = &pong;
  ping.rounds = rounds;
  const stopwatch watch;
  send(&ping, nullptr, 0);
  run();
  return {.value = watch.ns_per(rounds), .check = ping.last};
}

// ---- counting: one sender, one counter ----

struct counter final : actor {
  void handle(const message&) override { ++count; }
  std::uint64_t count = 0;
};

// Sends 64 messages, then one to itself. A handler that sent all at once would keep the counter
// waiting, and every message in memory.
struct producer final : actor {
  void handle(const message&) override {
    const std::uint64_t slice = std::min<std::uint64_t>(left, 64);
    for (std::uint64_t i = 0; i < slice; ++i) send(to, this, 0);
    left -= slice;
    if (left > 0) send(this, this, 0);
  }
  actor* to = nullptr;
  std::uint64_t left = 0;
};

inline result counting(unsigned, std::uint64_t size) {
  counter to;
  producer from;
  from.to = &to;
  from.left = size;
  const stopwatch watch;
  send(&from, nullptr, 0);
  run();
  return {.value = watch.ns_per(size), .check = to.count};
}

// ---- fork_join_throughput: one sender, 60 counters, round robin ----

struct round_robin_sender final : actor {
  void handle(const message&) override {
    for (counter& c : *to) send(&c, this, 0);
    if (--rounds > 0) send(this, this, 0);
  }
  std::vector<counter>* to = nullptr;
  std::uint64_t rounds = 0;
};

inline result fork_join_throughput(unsigned, std::uint64_t rounds) {
  std::vector<counter> counters(60);
  round_robin_sender from;
  from.to = &counters;
  from.rounds = rounds;
  const stopwatch watch;
  send(&from, nullptr, 0);
  run();
  result r{.value = watch.ns_per(rounds * counters.size())};
  for (const counter& c : counters) r.check += c.count;
  return r;
}

// ---- fork_join_create: an actor is made, handles one message and is destroyed ----

struct mayfly final : actor {
  explicit mayfly(std::uint64_t& lives) : handled(lives) {}
  void handle(const message&) override {
    ++handled;
    leave(this);
  }
  std::uint64_t& handled;
};

// Makes 64 actors, then lets them run. The next 64 find the memory of the last ones still in the
// cache.
struct parent final : actor {
  void handle(const message&) override {
    const std::uint64_t slice = std::min<std::uint64_t>(left, 64);
    for (std::uint64_t i = 0; i < slice; ++i) send(new mayfly(handled), this, 0);
    left -= slice;
    if (left > 0) send(this, this, 0);
  }
  std::uint64_t left = 0;
  std::uint64_t handled = 0;
};

inline result fork_join_create(unsigned, std::uint64_t size) {
  parent p;
  p.left = size;
  const stopwatch watch;
  send(&p, nullptr, 0);
  run();
  return {.value = watch.ns_per(size), .check = p.handled};
}

// ---- thread_ring: one token, handed on until its hops are used up ----

struct ring_member final : actor {
  void handle(const message& m) override {
    if (m.number == 0) {
      last_holder = this;
    } else {
      send(next, this, 0, m.number - 1);
    }
  }
  actor* next = nullptr;
  static inline const ring_member* last_holder = nullptr;
};

template <std::size_t Members>
result thread_ring(unsigned, std::uint64_t hops) {
  // Each member is allocated separately, as a program would do it; only so do 10,000 differ from
  // 100.
  std::vector<std::unique_ptr<ring_member>> ring(Members);
  for (auto& member : ring) member = std::make_unique<ring_member>();
  for (std::size_t i = 0; i < Members; ++i) ring[i]->next = ring[(i + 1) % Members].get();
  const stopwatch watch;
  send(ring[0].get(), nullptr, 0, hops);
  run();
  const bool at_its_place = ring[hops % Members].get() == ring_member::last_holder;
  return {.value = watch.ns_per(hops), .check = at_its_place ? hops : 0};
}

}  // namespace floor_bench
