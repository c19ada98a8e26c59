// CAF's benchmarks with one message after another: ping_pong, counting, the two fork-joins and the
// rings.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "bench.hpp"

namespace caf_bench {

// ---- ping_pong: a reply is the value a handler returns ----

inline caf::behavior ponger(caf::event_based_actor*) {
  return {[](uint64_t number) -> uint64_t { return number + 1; }};
}

inline caf::behavior pinger(caf::event_based_actor* self, caf::actor other, uint64_t rounds,
                            caf::actor main) {
  return {[=](uint64_t number) {
    if (number < rounds) {
      self->send(other, number);
    } else {
      self->send(main, done_atom::value, number);
    }
  }};
}

inline result ping_pong(unsigned workers, uint64_t rounds) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor pong = system.spawn(ponger);
  const caf::actor ping = system.spawn(pinger, pong, rounds, caf::actor{self});
  result r;
  const stopwatch watch;
  self->send(ping, uint64_t{0});
  r.check = receive_sum(self, 1);
  r.value = watch.ns_per(rounds);
  return r;
}

// ---- counting: one sender, one counter ----

struct counter_state {
  uint64_t count = 0;
};

// Reports when it has counted to `size`.
inline caf::behavior counter(caf::stateful_actor<counter_state>* self, uint64_t size,
                             caf::actor main) {
  return {[=](count_atom) {
    if (++self->state.count == size) self->send(main, done_atom::value, self->state.count);
  }};
}

struct sender_state {
  uint64_t left = 0;
};

inline caf::behavior producer(caf::stateful_actor<sender_state>* self, caf::actor to,
                              uint64_t size) {
  self->state.left = size;
  return {[=](start_atom) {
    uint64_t& left = self->state.left;
    const uint64_t slice = std::min(left, slice_max);
    for (uint64_t i = 0; i < slice; ++i) self->send(to, count_atom::value);
    left -= slice;
    if (left > 0) self->send(self, start_atom::value);
  }};
}

inline result counting(unsigned workers, uint64_t size) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor to = system.spawn(counter, size, caf::actor{self});
  const caf::actor from = system.spawn(producer, to, size);
  result r;
  const stopwatch watch;
  self->send(from, start_atom::value);
  r.check = receive_sum(self, 1);
  r.value = watch.ns_per(size);
  return r;
}

// ---- fork_join_throughput: one sender, 60 counters, round robin ----

inline caf::behavior round_robin_sender(caf::stateful_actor<sender_state>* self,
                                        std::vector<caf::actor> to, uint64_t rounds) {
  self->state.left = rounds;
  return {[self, to = std::move(to)](start_atom) {
    for (const caf::actor& a : to) self->send(a, count_atom::value);
    if (--self->state.left > 0) self->send(self, start_atom::value);
  }};
}

inline result fork_join_throughput(unsigned workers, uint64_t rounds) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  std::vector<caf::actor> counters(60);
  for (caf::actor& a : counters) a = system.spawn(counter, rounds, caf::actor{self});
  const caf::actor from = system.spawn(round_robin_sender, counters, rounds);
  result r;
  const stopwatch watch;
  self->send(from, start_atom::value);
  r.check = receive_sum(self, counters.size());
  r.value = watch.ns_per(rounds * counters.size());
  return r;
}

// ---- fork_join_create: an actor is spawned, handles one message and dies ----

// What all mayflies share. The last one to handle its message tells the main thread.
struct mayfly_tally {
  std::atomic<uint64_t> handled{0};
  uint64_t size = 0;
  caf::actor main;
};

inline caf::behavior mayfly(caf::event_based_actor* self, mayfly_tally* tally) {
  return {[=](count_atom) {
    // order: relaxed  a count; the last one's message to main publishes it
    const uint64_t handled = tally->handled.fetch_add(1, std::memory_order_relaxed) + 1;
    if (handled == tally->size) self->send(tally->main, done_atom::value, handled);
    self->quit();
  }};
}

inline caf::behavior parent(caf::stateful_actor<sender_state>* self, mayfly_tally* tally) {
  self->state.left = tally->size;
  return {[=](start_atom) {
    uint64_t& left = self->state.left;
    const uint64_t slice = std::min(left, slice_max);
    for (uint64_t i = 0; i < slice; ++i) self->send(self->spawn(mayfly, tally), count_atom::value);
    left -= slice;
    if (left > 0) self->send(self, start_atom::value);
  }};
}

inline result fork_join_create(unsigned workers, uint64_t size) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  // Never deleted: the last mayflies may read it after they have reported.
  auto* tally = new mayfly_tally;
  tally->size = size;
  tally->main = caf::actor{self};
  const caf::actor from = system.spawn(parent, tally);
  result r;
  const stopwatch watch;
  self->send(from, start_atom::value);
  r.check = receive_sum(self, 1);
  r.value = watch.ns_per(size);
  return r;
}

// ---- thread_ring: one token, handed on until its hops are used up ----

struct ring_state {
  caf::actor next;
};

inline caf::behavior ring_member(caf::stateful_actor<ring_state>* self, uint64_t index,
                                 caf::actor main) {
  return {[=](start_atom, const caf::actor& next) { self->state.next = next; },
          [=](uint64_t hops_left) {
            if (hops_left == 0) {
              self->send(main, done_atom::value, index);
            } else {
              self->send(self->state.next, hops_left - 1);
            }
          }};
}

template <std::size_t Members>
result thread_ring(unsigned workers, uint64_t hops) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  std::vector<caf::actor> ring(Members);
  for (std::size_t i = 0; i < Members; ++i)
    ring[i] = system.spawn(ring_member, uint64_t{i}, caf::actor{self});
  for (std::size_t i = 0; i < Members; ++i)
    self->send(ring[i], start_atom::value, ring[(i + 1) % Members]);
  // one round, so that all know their next member before the clock starts
  self->send(ring[0], Members);
  receive_sum(self, 1);
  result r;
  const stopwatch watch;
  self->send(ring[0], hops);
  const bool at_its_place = receive_sum(self, 1) == hops % Members;
  r.value = watch.ns_per(hops);
  r.check = at_its_place ? hops : 0;
  return r;
}

}  // namespace caf_bench
