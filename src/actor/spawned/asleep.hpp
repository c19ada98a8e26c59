// asleep: a spawned task that sleeps, and that nobody knows, is its frame alone.
//
// When it has come to rest its actor and activation go, and its timer wakes it as a new actor
// (docs/protocols/suspended_turns.md). All that is kept of it lies in its frames: each has the
// system's async call `asleep` as its own, and what has no use meanwhile keeps the task's `act` and
// its result.
#pragma once

#include <cstddef>
#include <functional>

#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::actor {

// The system's async call for them.
void make_host_asleep(actor_system& of) noexcept;

// By its owner, who has no use for it before its wait is over: whether it sleeps now. Then actor
// and activation have gone.
bool fall_asleep(activation& active) noexcept;

// How many sleep now. `look` is shown some of them, until it returns false; meanwhile no timer
// expires, and none is armed.
std::size_t look_at_asleep(
    actor_system& of,
    const std::function<bool(tasks::suspension& sleep, message::handler act)>& look);

// At the runtime's end, when no timer expires any more: each is cancelled, and runs to its end.
void end_asleep(actor_system& of) noexcept;

}  // namespace troupe::actor
