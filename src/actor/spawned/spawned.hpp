// spawned: a spawned task, in each state of its life.
//
//   state  | where its values lie                                  | who may touch them
//   queued | in a block of a queue, which becomes its activation   | the worker that begins it
//   actor  | in the object of an actor (spawned_task)              | the turns of that actor
//   asleep | in words of its frames that have no use meanwhile     | the holder of the clock's lock
//
//   queued -> actor   begin: its first turn. Most tasks wait for nothing and end in that turn; the
//                     next task takes over the actor's memory at once.
//   actor -> asleep   fall_asleep: it is deactivated, waits for a sleep_for alone, and no other ref
//                     to its actor is left. Then it costs only its frames: the actor and the
//                     activation are freed, and its coroutines belong to the async call
//                     `actor_system::asleep` (docs/protocols/suspended_turns.md).
//   asleep -> actor   wake: its timer has expired; end_asleep: the runtime ends.
//
// Off the fast path (with options, or in a runtime that traces or simulates) a task is an actor
// from the beginning.
#pragma once

#include <cstddef>
#include <functional>

#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

// Sets the system's host for sleeping tasks, and the async call `asleep`.
void make_host_asleep(actor_system& system) noexcept;

// Returns how many tasks sleep now. Shows them to `look` in pieces (tasks::timers::for_each);
// during a piece no timer expires and none is armed. Calls `before` before each piece, until that
// returns false.
std::size_t look_at_asleep(
    actor_system& system,
    const std::function<void(tasks::suspension& sleep, message::handler act)>& look,
    const std::function<bool()>& before);

// At the runtime's end, when no timer expires any longer: cancels each sleeping task and runs it to
// its end.
void end_asleep(actor_system& system) noexcept;

}  // namespace troupe::actor
