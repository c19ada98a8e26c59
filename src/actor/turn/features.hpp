// features: the calls of a turn to the rooms above it. Each function is defined in the room that is
// named beside it, which includes this header: calls go up, includes go down.
#pragma once

#include <string>

#include "actor/mailbox/activation.hpp"
#include "actor/state/kept_failure.hpp"
#include "actor/system/actor_system.hpp"
#include "task/running/running.hpp"
#include "troupe/actor/supervision.hpp"

namespace troupe::actor {

struct turn_limit;

// lifetime/ending.cpp. In the actor's turn: the actor ends. Messages sent to it from now on become
// dead letters.
void end_object(cell& actor, ended how = ended(ended::why::stopped)) noexcept;

// lifetime/supervision.cpp. In the actor's turn: the actor has failed; applies its policy.
void apply_error_policy(cell& actor, kept_failure failed) noexcept;
// In the actor's turn, when the last call has ended for which the end of the actor waited: ends the
// actor, or constructs it anew.
void end_with_call(cell& actor) noexcept;

// lifetime/guards.cpp. After a message was handled: handles the guarded messages whose predicates
// hold by now, oldest first.
void look_at_guards(tasks::running_state& state, actor_system& system, activation& active,
                    turn_limit& limit) noexcept;

// lifetime/consume.cpp. In the actor's turn: the calls or guarded messages for which a request may
// have waited are done.
void call_consumer_in(cell& actor) noexcept;

// spawned/spawned.cpp. The class of the actors of spawned tasks.
extern const cell_type spawned_type;
// By the owner of such an actor, which does not need the actor before the wait is over. True when
// the task sleeps now: then the actor and the activation have been freed.
bool fall_asleep(activation& active) noexcept;

// waits/deadlock_search.cpp. By the thread that has parked an actor whose wait a search must know.
// Another thread may be running the actor already.
void search_after_park(actor_system& system) noexcept;
// The text of the exception that the refused wait throws.
std::string take_refusal(const tasks::suspension& refused);

}  // namespace troupe::actor
