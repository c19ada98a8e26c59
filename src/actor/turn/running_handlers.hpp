// running_handlers: the names of what runs right now, for messages that say why a stop takes so
// long.
#pragma once

#include <string>

#include "actor/actor_system.hpp"

namespace troupe::actor {

// "&Account::deposit (#17); …" of this system, with the actors' ids; "none" when no handler runs.
// Any thread; a snapshot.
std::string running_handlers(const actor_system& system);

}  // namespace troupe::actor
