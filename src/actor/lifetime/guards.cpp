// Guarded messages: the choice of those that a turn handles, and their fate at the actor's end
// (system/guard_table.hpp).
#include <utility>

#include "actor/lifetime/ending.hpp"
#include "actor/mailbox/dead_letters.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn.hpp"
#include "actor/turn/turn_limit.hpp"
#include "troupe/actor/conditional_message.hpp"

namespace troupe::actor {

void set_aside(conditional_message& message) noexcept {
  cell& actor = *active_here().actor;
  actor.flags |= cell::guards;
  actor_system::of(actor).guards.add(actor, message);
  turn_here().set_aside = true;
  tasks::running_here().unusual.store(
      true, std::memory_order_relaxed);  // order: relaxed  the thread's own
}

namespace {

void take_from_guards(cell& actor, conditional_message& message) noexcept {
  guard_table& all = actor_system::of(actor).guards;
  all.remove(actor, message);
  if (all.oldest_of(actor) == nullptr) actor.flags &= static_cast<std::uint8_t>(~cell::guards);
}

// A message whose predicate throws counts as ready: when it is handled its predicate throws again,
// and that is treated as a failure of the handler.
conditional_message* ready_guard(cell& actor) noexcept {
  const void* const object = object_of(actor);
  for (conditional_message* message = actor_system::of(actor).guards.oldest_of(actor);
       message != nullptr; message = message->next_waiting) {
    try {
      if (message->holds(*message, object)) return message;
    } catch (...) {
      return message;
    }
  }
  return nullptr;
}

}  // namespace

void look_at_guards(tasks::running_state& state, actor_system& system, activation& active,
                    turn_limit& limit) noexcept {
  turn_state& turn = turn_here();
  // the last message was only set aside: nothing has changed
  if (std::exchange(turn.set_aside, false)) return;
  cell& actor = *active.actor;
  constexpr unsigned looked_at = cell::guards | cell::constructed | cell::stopped | cell::ends_soon;
  while ((actor.flags & looked_at) == (cell::guards | cell::constructed) &&
         active.suspended == nullptr && !system.discarding()) {
    conditional_message* message = ready_guard(actor);
    if (message == nullptr) return;
    if (limit.handled == limit.look_after && limit.over(state, actor)) {
      limit.end();
      turn.guard_ready = true;
      return;
    }
    ++limit.handled;
    take_from_guards(actor, *message);
    const unsigned uncounted = turn.uncounted;
    handle_unusual(state, system, actor, *message);
    turn.uncounted = uncounted + 1;  // it was counted when it was set aside
    turn.set_aside = false;
  }
  if ((actor.flags & cell::guards) == 0) call_consumer_in(actor);
}

void make_dead_letters_of_guarded(cell& actor) noexcept {
  actor_system& system = actor_system::of(actor);
  while ((actor.flags & cell::guards) != 0) {
    conditional_message& message = *system.guards.oldest_of(actor);
    take_from_guards(actor, message);
    make_uncounted_dead_letter(system, actor, message);
  }
}

}  // namespace troupe::actor
