// ending: the end of an actor, and of the parts that end with it.
#pragma once

#include "actor/mailbox/activation.hpp"
#include "troupe/actor/cell.hpp"

namespace troupe::actor {

// Destroys the actor's object, and discards the object's allocations.
void destroy_object(cell& actor) noexcept;
// The actor has ended, or the runtime has: the actor does not keep its parent any longer.
void leave_parent(cell& actor) noexcept;
// Notifies the actor that its last ref was dropped. Any thread.
void notify_unreferenced(cell& to) noexcept;
// Stops the actor without waiting for its mail. When memory is out the actor gets no message, and
// continues. Any thread.
void send_stop_now(cell& actor) noexcept;
// At the runtime's end: destroys an actor that has not ended.
void destroy_actor(cell& actor) noexcept;

// guards.cpp. The actor's guarded messages become dead letters.
void make_dead_letters_of_guarded(cell& actor) noexcept;
// consume.cpp. The actor has ended in another way.
void refuse_consumer(cell& actor) noexcept;

}  // namespace troupe::actor
