// running: which handlers run right now, for who must say why an end does not come.
#pragma once

#include <string>

#include "actor/system.hpp"

namespace troupe::actor {

struct turn_place;

// Adds the calling thread, until it ends.
void list_running(turn_place& of_thread) noexcept;

// "&Account::deposit; …" of this system; "none" when there is none. Any thread; a snapshot.
std::string running_handlers(const system& home);

}  // namespace troupe::actor
