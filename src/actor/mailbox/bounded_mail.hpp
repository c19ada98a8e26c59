// bounded_mail: mail of an actor whose mailbox is bounded (state/mail_bound.hpp).
#pragma once

#include "actor/mailbox/activation.hpp"
#include "actor/system/actor_system.hpp"

namespace troupe::actor {

// Under drop_old: turns the oldest messages above the limit into dead letters, if they wait behind
// a suspended turn.
void drop_old(actor_system& system, activation& active) noexcept;

}  // namespace troupe::actor
