// asleep: a spawned task that sleeps, and to which nobody else refers, costs only its coroutine
// frames.
//
// When such a task is deactivated, its actor and its activation are freed; its timer wakes the task
// as a new actor (docs/protocols/suspended_turns.md). All that is kept lies in the frames: each has
// the system's async call `asleep` as its own, and members that have no other use during the sleep
// keep the task's `act` and its result.
#pragma once

#include <cstddef>
#include <functional>

#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::actor {

// Sets the system's host for them, and the async call `asleep`.
void make_host_asleep(actor_system& of) noexcept;

// By the actor's owner, which does not need the actor before the wait is over. True when the task
// sleeps now: then the actor and the activation have been freed.
bool fall_asleep(activation& active) noexcept;

// Returns how many tasks sleep now. Shows some of them to `look`, until that returns false;
// meanwhile no timer expires and none is armed.
std::size_t look_at_asleep(
    actor_system& of,
    const std::function<bool(tasks::suspension& sleep, message::handler act)>& look);

// At the runtime's end, when no timer expires any longer: cancels each sleeping task and runs it to
// its end.
void end_asleep(actor_system& of) noexcept;

}  // namespace troupe::actor
