// self: an actor's own ref.
#pragma once

#include "troupe/actor/cell.hpp"
#include "troupe/actor/ref.hpp"

namespace troupe {

namespace actor {
// Throws usage_error when it is another's, or none runs.
void check_self(cell* running, const void* object);
}  // namespace actor

// A ref of the actor whose handler or constructor is running, to keep or to send: troupe::self(this).
// Throws usage_error when `object` is not the running actor.
//
// Example:
//     struct Clock {
//       int left = 3;
//       void tick() { if (--left > 0) troupe::self(this).tell<&Clock::tick>(); }
//     };
//     troupe::runtime rt;
//     rt.spawn<Clock>().tell<&Clock::tick>();
//     rt.run();
template <class T>
ref<T> self(const T* object) {
  actor::cell* running = actor::current_cell();
  actor::check_self(running, object);
  actor::add_ref(*running);
  return ref_access::adopt<T>(running);
}

}  // namespace troupe
