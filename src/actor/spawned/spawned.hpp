// spawned: spawned tasks as actors of one common type.
#pragma once

#include <cstdint>
#include <new>

#include "actor/actor_system.hpp"
#include "troupe/actor/spawn_task.hpp"

namespace troupe::actor {

extern const cell_type spawned_type;

inline spawned_task& make_object(cell& made, message::handler act, tasks::coroutine& root,
                                 tasks::shared_state* result) noexcept {
  made.flags |= cell::constructed;
  return *::new (made.object()) spawned_task(&made, act, root, result);
}
// Makes the task's actor, which no other thread knows. Does not count it. Throws std::bad_alloc.
TROUPE_INLINE spawned_task& make_spawned(actor_system& system, message::handler act,
                                         tasks::coroutine& root, tasks::shared_state* result) {
  void* const slot = system.slots.allocate(spawned_type.slot_bytes, own_magazines(system));
  return make_object(
      *::new (slot) cell(spawned_type, 0, static_cast<std::uint8_t>(spawned_type.offset / 8)), act,
      root, result);
}

}  // namespace troupe::actor
