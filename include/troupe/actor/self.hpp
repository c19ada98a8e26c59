// self: a ref to the actor whose code is running.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/ref.hpp"

namespace troupe {

namespace actor {
// Prepares a ref to the running actor, whose object `object` is, or a base of that object. Returns
// how many bytes it lies behind the beginning of the actor's object. An actor under construction
// takes mail from now on. Throws usage_error if it is neither, or if no actor is running; and
// std::bad_alloc.
std::size_t prepare_self_ref(cell* running, const void* object, std::size_t bytes);
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
  const std::size_t offset = actor::prepare_self_ref(running, object, sizeof(T));
  actor::add_ref(*running);
  return ref_access::adopt_part<T>(*running, offset);
}

}  // namespace troupe
