// actor_root: the beginning and the end of the actors of one runtime. Here the actor_system gets
// the parts that its rooms do not see: the functions of turns, and the search for deadlocks.
#pragma once

#include <cstdint>

#include "actor/system/actor_system.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

// The system goes with destroy_actor_system. Throws std::bad_alloc.
actor_system* make_actor_system(limits turn, actor_host& host, bool observed);

// Before the first turn: the services that the actors' async calls need.
void give_services(actor_system& system, tasks::timers* clock, sched::io_driver_slot* io,
                   std::uint8_t ready_units,
                   std::uint32_t (*choose_case)(void*, std::uint32_t) noexcept) noexcept;

// The end, when no turn runs any longer and no thread sends. First destroy_actors for each
// executor, each on its own thread, one executor after the other: it destroys the objects, in no
// particular order. Then destroy_actor_system: cells with refs become orphans, and the system is
// deleted when the last such ref goes.
void destroy_actors(actor_system& system, std::uint16_t executor) noexcept;
void destroy_actor_system(actor_system& system) noexcept;

}  // namespace troupe::actor
