// CAF's benchmarks with many actors: big, chameneos, idle_memory.
#pragma once

#include <vector>

#include <malloc.h>

#include "bench.hpp"

namespace caf_bench {

// ---- big: each actor pings others ----

using ping_atom = caf::atom_constant<caf::atom("ping")>;
using pong_atom = caf::atom_constant<caf::atom("pong")>;

struct crowd_member_state {
  const std::vector<caf::actor>* crowd = nullptr;
  uint64_t random = 0;
  uint64_t left = 0;
  uint64_t answered = 0;

  const caf::actor& somebody() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return (*crowd)[((random >> 32) * crowd->size()) >> 32];
  }
};

inline caf::behavior crowd_member(caf::stateful_actor<crowd_member_state>* self,
                                  const std::vector<caf::actor>* crowd, uint64_t index,
                                  uint64_t pings, caf::actor main) {
  self->state.crowd = crowd;
  self->state.random = index * 0x9E37'79B9'7F4A'7C15 + 1;
  self->state.left = pings;
  return {[=](ping_atom) -> pong_atom {
            ++self->state.answered;
            return pong_atom::value;
          },
          [=](pong_atom) {
            if (--self->state.left > 0) {
              self->send(self->state.somebody(), ping_atom::value);
            } else {
              self->send(main, done_atom::value, uint64_t{0});
            }
          },
          [=](start_atom) { self->send(self->state.somebody(), ping_atom::value); },
          [=](report_atom) { self->send(main, done_atom::value, self->state.answered); }};
}

inline result big(unsigned workers, uint64_t pings) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  std::vector<caf::actor> crowd(120);
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    crowd[i] = system.spawn(crowd_member, &crowd, uint64_t{i}, pings, caf::actor{self});
  }
  result r;
  const stopwatch watch;
  for (const caf::actor& member : crowd) self->send(member, start_atom::value);
  receive_sum(self, crowd.size());
  r.value = watch.ns_per(pings * crowd.size());
  for (const caf::actor& member : crowd) self->send(member, report_atom::value);
  r.check = receive_sum(self, crowd.size());
  return r;
}

// ---- chameneos: creatures meet in pairs and take a colour from both ----

using ask_atom = caf::atom_constant<caf::atom("ask")>;
using meet_atom = caf::atom_constant<caf::atom("meet")>;
using change_atom = caf::atom_constant<caf::atom("change")>;
using stop_atom = caf::atom_constant<caf::atom("stop")>;

struct mall_state {
  uint64_t meetings = 0;
  caf::actor waiting;
};

inline caf::behavior mall(caf::stateful_actor<mall_state>* self, uint64_t meetings) {
  self->state.meetings = meetings;
  return {[=](ask_atom, uint64_t colour) {
    mall_state& state = self->state;
    auto asker = caf::actor_cast<caf::actor>(self->current_sender());
    if (state.meetings == 0) {
      self->send(asker, stop_atom::value);
    } else if (!state.waiting) {
      state.waiting = std::move(asker);
    } else {
      --state.meetings;
      // Sent in the name of the second creature, so that its address need not be a part of the
      // message.
      caf::send_as(asker, state.waiting, meet_atom::value, colour);
      state.waiting = nullptr;
    }
  }};
}

struct creature_state {
  uint64_t colour = 0;
  uint64_t met = 0;
};

// Of three colours: the same one if both agree, otherwise the one that neither has.
inline uint64_t complement(uint64_t a, uint64_t b) { return a == b ? a : 3 - a - b; }

inline caf::behavior creature(caf::stateful_actor<creature_state>* self, caf::actor place,
                              uint64_t colour, caf::actor main) {
  self->state.colour = colour;
  return {[=](meet_atom, uint64_t other) {
            creature_state& state = self->state;
            ++state.met;
            state.colour = complement(state.colour, other);
            self->send(caf::actor_cast<caf::actor>(self->current_sender()), change_atom::value,
                       state.colour);
            self->send(place, ask_atom::value, state.colour);
          },
          [=](change_atom, uint64_t colour) {
            ++self->state.met;
            self->state.colour = colour;
            self->send(place, ask_atom::value, colour);
          },
          [=](start_atom) { self->send(place, ask_atom::value, self->state.colour); },
          [=](stop_atom) { self->send(main, done_atom::value, self->state.met); }};
}

inline result chameneos(unsigned workers, uint64_t meetings) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor place = system.spawn(mall, meetings);
  std::vector<caf::actor> creatures(100);
  for (std::size_t i = 0; i < creatures.size(); ++i) {
    creatures[i] = system.spawn(creature, place, uint64_t{i % 3}, caf::actor{self});
  }
  const stopwatch watch;
  for (const caf::actor& c : creatures) self->send(c, start_atom::value);
  std::vector<uint64_t> met(creatures.size());
  for (uint64_t& m : met) m = receive_sum(self, 1);
  return measure::meetings_result(watch.ns_per(meetings), met);
}

// ---- idle_memory: actors that do nothing ----

inline caf::behavior sleeper(caf::event_based_actor* self, uint64_t state, caf::actor main) {
  return {
      [=](report_atom) { self->send(main, done_atom::value, static_cast<uint64_t>(state != 0)); }};
}

inline result idle_memory(unsigned workers, uint64_t size) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor main{self};
  std::vector<caf::actor> handles(size);
  for (caf::actor& a : handles) a = nullptr;  // touches the array
  malloc_trim(0);
  const std::int64_t before = measure::resident_bytes();
  for (uint64_t i = 0; i < size; ++i) handles[i] = system.spawn(sleeper, i + 1, main);
  measure::sleep_ms(1'000);
  result r;
  r.value = static_cast<double>(measure::resident_bytes() - before) / static_cast<double>(size);
  // In parts, because the answers take memory, too.
  for (uint64_t i = 0; i < size; i += 10'000) {
    const uint64_t end = std::min(size, i + 10'000);
    for (uint64_t k = i; k < end; ++k) self->send(handles[k], report_atom::value);
    r.check += receive_sum(self, end - i);
  }
  return r;
}

}  // namespace caf_bench
