// deliver: the delivery to the actors of a worker, beside its sends to them
// (troupe/actor/cell.hpp).
#pragma once

#include "troupe/actor/cell.hpp"

namespace troupe::actor {

// For a new actor that no other thread can see yet. On a worker of its pool the actor starts
// active, with its deactivation deferred there: its creator is likely to send it something soon.
void start_at_home(cell& actor);

// Drops the only ref to an actor that is active on the calling worker, and notifies the actor.
// Returns false and does nothing if the actor is elsewhere or has other refs.
bool drop_at_home(cell& actor) noexcept;

}  // namespace troupe::actor
