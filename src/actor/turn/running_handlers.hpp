// running_handlers: the names of the handlers that run right now, for messages about a slow stop.
#pragma once

#include <string>

#include "actor/system/actor_system.hpp"

namespace troupe::actor {

// "&Account::deposit (#17); …" of this system, with the actors' ids; "none" when no handler runs.
// Any thread; a snapshot.
std::string running_handlers(const actor_system& system);

}  // namespace troupe::actor
