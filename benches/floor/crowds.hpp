// The floor's benchmarks with many actors: big, chameneos, idle_memory. README.md says what one
// operation of each is.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "../measure.hpp"
#include "runtime.hpp"

namespace floor_bench {

using namespace floor_runtime;
using measure::result;
using measure::stopwatch;

// ---- big: each actor pings others ----

struct crowd_member final : actor {
  enum : std::uint32_t { start, ping, pong };

  void handle(const message& m) override {
    if (m.kind == ping) {
      ++answered;
      send(m.from, this, pong);
    } else if (m.kind == start || --left > 0) {
      send(&(*crowd)[random_below(crowd->size())], this, ping);
    }
  }

  std::uint64_t random_below(std::uint64_t bound) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return ((random >> 32) * bound) >> 32;
  }

  std::deque<crowd_member>* crowd = nullptr;
  std::uint64_t random = 0;
  std::uint64_t left = 0;
  std::uint64_t answered = 0;
};

inline result big(unsigned, std::uint64_t pings) {
  std::deque<crowd_member> crowd(120);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    crowd[i].crowd = &crowd;
    crowd[i].random = i * 0x9E37'79B9'7F4A'7C15 + 1;
    crowd[i].left = pings;
  }
  const stopwatch watch;
  for (crowd_member& member : crowd) send(&member, nullptr, crowd_member::start);
  run();
  result r{.value = watch.ns_per(pings * crowd.size())};
  for (const crowd_member& member : crowd) r.check += member.answered;
  return r;
}

// ---- chameneos: creatures meet in pairs and take a colour from both ----

enum chameneos_kind : std::uint32_t { start, ask, meet, change, stop };

struct mall final : actor {
  void handle(const message& m) override {
    if (meetings == 0) {
      send(m.from, this, stop);
    } else if (waiting == nullptr) {
      waiting = m.from;
    } else {
      --meetings;
      // Forwarded in the name of the second creature: the first one answers it without asking the
      // mall for an address.
      send(waiting, m.from, meet, m.number);
      waiting = nullptr;
    }
  }
  actor* waiting = nullptr;
  std::uint64_t meetings = 0;
};

struct creature final : actor {
  void handle(const message& m) override {
    if (m.kind == stop) return;
    if (m.kind == meet) {
      ++met;
      colour = complement(colour, m.number);
      send(m.from, this, change, colour);
    } else if (m.kind == change) {
      ++met;
      colour = m.number;
    }
    send(place, this, ask, colour);
  }

  // Of three colours: the same one if both agree, otherwise the one that neither has.
  static std::uint64_t complement(std::uint64_t a, std::uint64_t b) {
    return a == b ? a : 3 - a - b;
  }

  actor* place = nullptr;
  std::uint64_t colour = 0;
  std::uint64_t met = 0;
};

inline result chameneos(unsigned, std::uint64_t meetings) {
  mall place;
  place.meetings = meetings;
  std::deque<creature> creatures(100);
  for (std::size_t i = 0; i < creatures.size(); ++i) {
    creatures[i].place = &place;
    creatures[i].colour = i % 3;
  }
  const stopwatch watch;
  for (creature& c : creatures) send(&c, nullptr, start);
  run();
  const double ns = watch.ns_per(meetings);
  std::vector<std::uint64_t> met;
  for (const creature& c : creatures) met.push_back(c.met);
  return measure::meetings_result(ns, met);
}

// ---- idle_memory: actors that do nothing ----

struct sleeper final : actor {
  explicit sleeper(std::uint64_t i) : state(i) {}
  void handle(const message&) override { ++awake; }
  std::uint64_t state;
  static inline std::uint64_t awake = 0;
};

inline result idle_memory(unsigned, std::uint64_t size) {
  // Writes every word, so that the pages are counted before the measurement.
  std::vector<actor*> handles(size, nullptr);
  const std::int64_t before = measure::resident_bytes();
  for (std::uint64_t i = 0; i < size; ++i) handles[i] = new sleeper(i);
  const std::int64_t after = measure::resident_bytes();
  for (actor* a : handles) send(a, nullptr, 0);
  run();
  return {.value = static_cast<double>(after - before) / static_cast<double>(size),
          .check = sleeper::awake};
}

}  // namespace floor_bench
