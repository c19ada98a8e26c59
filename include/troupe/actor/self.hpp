// self: a ref to the actor whose code is running.
#pragma once

#include <cstddef>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/ref.hpp"

namespace troupe {

namespace actor {
// How many bytes `object` lies behind the beginning of the running actor's object, which it must be
// or be a base of. Throws usage_error if it is neither, or if no actor is running.
std::size_t offset_in_self(cell* running, const void* object, std::size_t bytes);
}  // namespace actor

// Returns a ref to the actor whose handler or constructor is running, to keep or to send:
// troupe::self(this). In a method of a base class the ref is a ref of that base. Thread: the one
// that runs the actor. Throws usage_error if `object` is not the running actor.
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
  const std::size_t offset = actor::offset_in_self(running, object, sizeof(T));
  actor::add_ref(*running);
  return ref_access::adopt_part<T>(*running, offset);
}

}  // namespace troupe
