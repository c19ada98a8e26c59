// Our benchmarks with one message after another: ping_pong, counting, the two fork-joins and the
// rings. ../README.md says what one operation of each is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../measure.hpp"
#include "troupe/troupe.hpp"

namespace troupe_bench {

using measure::result;
using measure::stopwatch;

// ---- ping_pong: the number goes there and back, one more each time ----

struct pinger;

struct ponger {
  void ball(std::uint64_t number);
  troupe::ref<pinger> other;
};

struct pinger {
  pinger(troupe::ref<ponger> partner, std::uint64_t count, std::uint64_t& seen)
      : other(std::move(partner)), rounds(count), last(seen) {}
  void ball(std::uint64_t number) {
    last = number;
    if (last < rounds) other.tell<&ponger::ball>(last);
  }
  troupe::ref<ponger> other;
  std::uint64_t rounds;
  std::uint64_t& last;
};

inline void ponger::ball(std::uint64_t number) { other.tell<&pinger::ball>(number + 1); }

inline result ping_pong(unsigned workers, std::uint64_t rounds) {
  troupe::runtime rt({.workers = workers});
  std::uint64_t last = 0;
  auto pong = rt.spawn<ponger>();
  auto ping = rt.spawn<pinger>(pong, rounds, last);
  pong.tell([ping](ponger& self) { self.other = ping; });
  rt.run();
  const stopwatch watch;
  ping.tell<&pinger::ball>(0);
  rt.run();
  return {.value = watch.ns_per(rounds), .check = last};
}

// ---- counting: one sender, one counter ----

struct counter {
  explicit counter(std::uint64_t& into) : count(into) {}
  void increment() { ++count; }
  std::uint64_t& count;
};

struct producer {
  producer(troupe::ref<counter> counter, std::uint64_t size) : to(std::move(counter)), left(size) {}
  void slice() {
    const std::uint64_t now = std::min<std::uint64_t>(left, 64);
    for (std::uint64_t i = 0; i < now; ++i) to.tell<&counter::increment>();
    left -= now;
    if (left > 0) troupe::self(this).tell<&producer::slice>();
  }
  troupe::ref<counter> to;
  std::uint64_t left;
};

inline result counting(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  std::uint64_t count = 0;
  auto from = rt.spawn<producer>(rt.spawn<counter>(count), size);
  const stopwatch watch;
  from.tell<&producer::slice>();
  rt.run();
  return {.value = watch.ns_per(size), .check = count};
}

// ---- fork_join_throughput: one sender, 60 counters, round robin ----

struct round_robin_sender {
  round_robin_sender(std::vector<troupe::ref<counter>> counters, std::uint64_t count)
      : to(std::move(counters)), rounds(count) {}
  void round() {
    for (const auto& one : to) one.tell<&counter::increment>();
    if (--rounds > 0) troupe::self(this).tell<&round_robin_sender::round>();
  }
  std::vector<troupe::ref<counter>> to;
  std::uint64_t rounds;
};

inline result fork_join_throughput(unsigned workers, std::uint64_t rounds) {
  troupe::runtime rt({.workers = workers});
  struct alignas(128) padded {
    std::uint64_t count = 0;
  };
  std::vector<padded> counts(60);
  std::vector<troupe::ref<counter>> counters;
  for (padded& one : counts) counters.push_back(rt.spawn<counter>(one.count));
  auto from = rt.spawn<round_robin_sender>(std::move(counters), rounds);
  const stopwatch watch;
  from.tell<&round_robin_sender::round>();
  rt.run();
  result r{.value = watch.ns_per(rounds * counts.size())};
  for (const padded& one : counts) r.check += one.count;
  return r;
}

// ---- fork_join_create: an actor is made, handles one message and is destroyed ----

struct mayfly {
  explicit mayfly(std::atomic<std::uint64_t>& lives) : handled(lives) {}
  void live() { handled.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t>& handled;
};

struct parent {
  parent(troupe::runtime& runtime, std::atomic<std::uint64_t>& lives, std::uint64_t size)
      : rt(runtime), handled(lives), left(size) {}
  void slice() {
    const std::uint64_t now = std::min<std::uint64_t>(left, 64);
    for (std::uint64_t i = 0; i < now; ++i) rt.spawn<mayfly>(handled).tell<&mayfly::live>();
    left -= now;
    if (left > 0) troupe::self(this).tell<&parent::slice>();
  }
  troupe::runtime& rt;
  std::atomic<std::uint64_t>& handled;
  std::uint64_t left;
};

inline result fork_join_create(unsigned workers, std::uint64_t size) {
  troupe::runtime rt({.workers = workers});
  std::atomic<std::uint64_t> handled{0};
  auto from = rt.spawn<parent>(rt, handled, size);
  const stopwatch watch;
  from.tell<&parent::slice>();
  rt.run();
  return {.value = watch.ns_per(size), .check = handled.load()};
}

// ---- thread_ring: one token, handed on until its hops are used up ----

struct ring_member {
  ring_member(std::size_t index, std::size_t& holder) : number(index), last_holder(holder) {}
  void token(std::uint64_t left) {
    if (left == 0) {
      last_holder = number;
    } else {
      next.tell<&ring_member::token>(left - 1);
    }
  }
  std::size_t number;
  std::size_t& last_holder;
  troupe::ref<ring_member> next;
};

template <std::size_t Members>
result thread_ring(unsigned workers, std::uint64_t hops) {
  troupe::runtime rt({.workers = workers});
  std::size_t last_holder = Members;
  std::vector<troupe::ref<ring_member>> ring;
  for (std::size_t i = 0; i < Members; ++i) ring.push_back(rt.spawn<ring_member>(i, last_holder));
  for (std::size_t i = 0; i < Members; ++i) {
    ring[i].tell([next = ring[(i + 1) % Members]](ring_member& self) { self.next = next; });
  }
  rt.run();
  const stopwatch watch;
  ring[0].tell<&ring_member::token>(hops);
  rt.run();
  return {.value = watch.ns_per(hops), .check = last_holder == hops % Members ? hops : 0};
}

}  // namespace troupe_bench
