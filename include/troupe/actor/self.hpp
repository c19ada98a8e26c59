// self: an actor's own ref.
#pragma once

#include <cstddef>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/ref.hpp"

namespace troupe {

namespace actor {
// How far behind the running actor's object this lies, which is it or a base of it. Throws
// usage_error when it is another's, or none runs.
std::size_t offset_in_self(cell* running, const void* object, std::size_t bytes);
}  // namespace actor

// A ref of the actor whose handler or constructor is running, to keep or to send:
// troupe::self(this). In a method of a base class it is a ref of that. Throws usage_error when
// `object` is not the running actor.
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
