// turn: the work between the moment when a thread takes an active actor and the moment when it
// leaves that actor.
#pragma once

#include "actor/mailbox/activation.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/turn_state.hpp"
#include "sched/runnable.hpp"
#include "task/running/actor_functions.hpp"
#include "task/running/running.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

// The turn of an actor off the fast path, or the rest of a turn that left the fast path or is long.
// `handled` is how many messages the turn has handled so far. `batch_done`: the turn has handled
// the whole list that was there at its start.
sched::after_turn run_on(tasks::running_state& state, activation& active, unsigned handled,
                         bool batch_done) noexcept;

// A turn looks at the clock before it handles this many messages.
inline constexpr unsigned turns_are_short_below = cell::quick + 1;

// In a turn: drops a ref to the actor; the fastest way when the turn is that actor's own.
void drop_in_turn(cell& actor) noexcept;

// Handles a message of an actor that is off the fast path (turn_limit.hpp: unusual).
void handle_unusual(tasks::running_state& state, actor_system& system, cell& actor,
                    message& mail) noexcept;

// In the actor's turn: cancels its suspended calls and runs each as far as it can. Calls that would
// suspend later are cancelled as well.
void cancel_turns(activation& active) noexcept;

// Adds to the count of suspended turns. A thread's own count is the turns that were suspended here
// less those that ended here: it may be negative.
void count_suspended(int change) noexcept;
// In the actor's turn: the call for which the actor was suspended is done.
void end_resumed(tasks::async_call& done) noexcept;
// At the runtime's end: cancels the suspended turn and ends it here and now.
void end_call(activation& active) noexcept;
// The same for the suspended calls of a reentrant actor.
void end_reentrant(cell& actor) noexcept;

// The functions of actors that the task layer calls.
extern const tasks::actor_functions functions_of_actors;

// Sets the system's hosts of async calls. `services` has the parts above the actors' turns: the
// clock, the I/O, and the search for deadlocks.
void make_call_hosts(actor_system& system, const tasks::call_host& services) noexcept;

}  // namespace troupe::actor
