// nested_asks: which actors wait for which, because a handler of theirs has asked.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   Q1  An actor's `asks` is the number of messages that its handlers have asked and that lack
//       their answers; its `asked` is the number of those that others wait for from it.
#pragma once

#include "durable/memory/actor_in_memory.hpp"

namespace troupe::durable::parts {

// The handler of `asks` has asked. `asked`: null if another node has the actor.
void begin_wait(const record_ref& message, const turn_state& asks, activation* asked);
// The message has ended. Without effect if no handler waits for it.
void end_wait(record& message) noexcept;

}  // namespace troupe::durable::parts
