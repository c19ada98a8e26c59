// CAF: ask: one actor asks another, and waits for the answer before it asks again.
#pragma once

#include "bench.hpp"

namespace caf_bench {

inline caf::behavior answerer(caf::event_based_actor*) {
  return {[](uint64_t number) -> uint64_t { return number + 1; }};
}

// await(), which handles nothing else in the meantime, is no slower than then().
inline void ask_next(caf::event_based_actor* self, const caf::actor& of, uint64_t number,
                     uint64_t times, const caf::actor& main) {
  if (number == times) return self->send(main, done_atom::value, number);
  self->request(of, caf::infinite, number).await([=](uint64_t next) {
    ask_next(self, of, next, times, main);
  });
}

inline caf::behavior asker(caf::event_based_actor* self, caf::actor of, uint64_t times,
                           caf::actor main) {
  return {[=](start_atom) { ask_next(self, of, 0, times, main); }};
}

inline result ask(unsigned workers, uint64_t times) {
  caf::actor_system& system = start_system(workers);
  caf::scoped_actor self{system};
  const caf::actor one = system.spawn(asker, system.spawn(answerer), times, caf::actor{self});
  result r;
  const stopwatch watch;
  self->send(one, start_atom::value);
  r.check = receive_sum(self, 1);
  r.value = watch.ns_per(times);
  return r;
}

}  // namespace caf_bench
