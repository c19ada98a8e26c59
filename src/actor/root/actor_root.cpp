#include "actor/root/actor_root.hpp"

#include <memory>

#include "actor/lifetime/ending.hpp"
#include "actor/mailbox/activation.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/turn/turn.hpp"
#include "actor/waits/deadlock_search.hpp"
#include "task/running/running.hpp"

namespace troupe::actor {

actor_system* make_actor_system(limits turn, actor_host& host, bool observed) {
  auto system = std::make_unique<actor_system>(turn, host, observed);
  system->deadlocks = std::make_shared<deadlock_search>(*system);
  system->actors = &functions_of_actors;
  system->turns = observed ? &counted_turn_type : &turn_type;
  // order: relaxed  no other thread can see it yet
  if (turn.messages < turns_are_short_below)
    system->slow_path_flags.fetch_or(tasks::runtime_state::short_turns, std::memory_order_relaxed);
  return system.release();
}

void give_services(actor_system& system, tasks::timers* clock, sched::io_driver_slot* io,
                   std::uint8_t ready_units,
                   std::uint32_t (*choose_case)(void*, std::uint32_t) noexcept) noexcept {
  tasks::call_host services{};
  services.clock = clock;
  services.io = io;
  services.search_soon = [](void* actor) noexcept {
    actor_system::of(*static_cast<cell*>(actor)).deadlocks->search_soon();
  };
  services.searched_soon = &system.deadlocks->soon();
  services.choose_case = choose_case;
  services.ready_units = ready_units;
  make_call_hosts(system, services);
  make_host_asleep(system);
}

void destroy_actors(actor_system& system, std::uint16_t executor) noexcept {
  if (executor == 0) end_asleep(system);
  // Destructors may drop the last refs to other actors; they make no new actors any longer
  // (cell.cpp).
  system.slots.for_each([&](void* slot) {
    cell& actor = *static_cast<cell*>(slot);
    if (actor.lives_on() == executor) {
      system.supervised.forget(actor);
      leave_parent(actor);
    }
    if (actor.lives_on() == executor && (actor.flags & cell::stopped) == 0) destroy_actor(actor);
  });
}

void destroy_actor_system(actor_system& system) noexcept {
  tasks::leave_runtime(system);
  system.supervised.end_all();
  constexpr std::int64_t open = std::int64_t{1} << 40;
  // order: relaxed  meanwhile dropped refs count down from `open`
  system.orphan_refs.store(open, std::memory_order_relaxed);
  std::int64_t left = 0;
  system.slots.for_each([&](void* slot) {
    cell& actor = *static_cast<cell*>(slot);
    // order: release  a later sender sees a closed mailbox; pairs with append_always
    actor.word.store(mailbox::closed, std::memory_order_release);
    left += actor.refs.make_orphan();
  });
  // Waits for threads that dropped a last ref before it could be counted.
  system.entrance.wait();
  // order: acq_rel  as drop_orphan_ref
  if (system.orphan_refs.fetch_sub(open - left, std::memory_order_acq_rel) == open - left)
    delete &system;
}

}  // namespace troupe::actor
