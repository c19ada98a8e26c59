// current_actor: the actor whose turn the calling thread runs, as tasks and their users need it.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>

#include "troupe/sched/message.hpp"

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::tasks {

// Returns a counted reference to the actor whose turn the calling thread runs; null outside of
// turns.
void* hold_current_actor() noexcept;
void drop_actor(void* held) noexcept;
// Counts one more reference to an actor that is alive.
void hold_actor(void* actor) noexcept;
// Whether the calling thread runs the actor's turn.
bool is_current_actor(const void* actor) noexcept;
// Sends an ordinary message to it. The message's `act` gets an object that it must not use.
void send_to_actor(void* held, sched::message& mail);
// Whether the object is the running actor's object or lies inside it; false outside of turns.
bool is_part_of_current_actor(const void* object) noexcept;
// Whether a stop discards queued work, so that each wait that begins is to be cancelled. Called in
// a turn.
bool is_discarding(const void* actor) noexcept;
// Reports a failure of the running actor. Outside of turns nothing could receive the report: it
// calls std::terminate.
void report_unheard(std::exception_ptr failure) noexcept;
// The I/O of the runtime whose actor's turn the calling thread runs; null outside of turns.
sched::io_driver_slot* current_io() noexcept;
// Throws usage_error in a handler, since a handler that blocks would block its worker.
void check_may_block(const char* operation);

}  // namespace troupe::tasks
