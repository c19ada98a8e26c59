// What the task layer asks of the layer above it: the actor whose turn the calling thread runs.
// Declared here, defined by the actor layer (src/actor/turn/async_calls.cpp).
#pragma once

#include <exception>

#include "troupe/sched/message.hpp"

namespace troupe::sched {
class io_driver_slot;
}

namespace troupe::tasks {

// A counted hold on the actor whose turn this thread runs; null outside of turns.
void* hold_current_actor() noexcept;
void drop_actor(void* held) noexcept;
// As an ordinary message, whose `act` gets no object that it knows.
void send_to_actor(void* held, sched::message& mail);
// Whether the object is the running actor's, or lies in it; false outside of turns.
bool is_part_of_current_actor(const void* object) noexcept;
// In a turn: a stop discards what is queued, and what goes on meanwhile is to be cancelled.
bool is_discarding(const void* actor) noexcept;
// A failure of the running actor; outside of turns nobody would hear of it: std::terminate.
void report_unheard(std::exception_ptr what) noexcept;
// Where the I/O of the runtime is whose actor this thread runs a turn of; null outside of turns.
sched::io_driver_slot* current_io() noexcept;
// Throws usage_error in a handler: it would hold its thread.
void check_may_block(const char* what);

}  // namespace troupe::tasks
