// settled_object: an actor's object between its turns, for the invariants of a simulation.
#pragma once

#include "troupe/base/language.hpp"

#include "troupe/actor/cell.hpp"

namespace troupe::actor {

// Null before the object's constructor has run, after its end, and while a handler of a class that
// is not reentrant is suspended: such a handler may leave the object half changed, and no other
// handler sees that. Thread: the simulation's own, between two turns.
const void* settled_object(cell& actor) noexcept;

}  // namespace troupe::actor
