#include "actor/system/guard_table.hpp"

#include <utility>

#include "actor/system/actor_system.hpp"
#include "actor/system/consumer_table.hpp"
#include "actor/turn/turn.hpp"
#include "actor/turn/turn_limit.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

conditional_message* guard_table::walk::take() noexcept {
  TROUPE_INVARIANT(next == nullptr || (oldest != nullptr && next->of == oldest->of), "G1");
  if (next == nullptr) {
    if (oldest == nullptr) return nullptr;
    next = oldest = oldest->next_in_table;
    if (next == nullptr) return nullptr;
  }
  return std::exchange(next, next->next_waiting);
}

void guard_table::walk::leaves(const conditional_message& message) noexcept {
  if (next == &message) next = message.next_waiting;
  if (oldest != &message) return;
  oldest = message.next_waiting != nullptr ? message.next_waiting : message.next_in_table;
  // the actor has no more
  if (message.next_waiting == nullptr) next = oldest;
}

void guard_table::add(cell& actor, conditional_message& message) noexcept {
  // order: relaxed (all)  a count and numbers; the tables' locks publish the messages
  waiting_.fetch_add(1, std::memory_order_relaxed);
  if (message.number == 0) message.number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  message.of = &actor;
  table_.with(actor, [&](conditional_message*& head) {
    conditional_message* const first = head;
    if (first == nullptr || message.number < first->number) {
      message.next_waiting = first;
      message.newest = first == nullptr ? &message : first->newest;
      message.next_in_table = first == nullptr ? nullptr : first->next_in_table;
      head = &message;
      walk& on = walks_[table::bucket_of(actor)];
      if (first != nullptr && on.oldest == first) on.oldest = &message;
      return;
    }
    conditional_message* behind = first->newest->number < message.number ? first->newest : first;
    while (behind->next_waiting != nullptr && behind->next_waiting->number < message.number)
      behind = behind->next_waiting;
    message.next_waiting = behind->next_waiting;
    behind->next_waiting = &message;
    if (first->newest == behind) first->newest = &message;
  });
}

void guard_table::remove(cell& actor, conditional_message& message) noexcept {
  // order: relaxed  a count
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  table_.with(actor, [&](conditional_message*& head) {
    conditional_message* const first = head;
    walk& on = walks_[table::bucket_of(actor)];
    on.leaves(message);
    TROUPE_INVARIANT(on.next != &message && on.oldest != &message, "G1");
    if (first == &message) {
      if (conditional_message* next = message.next_waiting) {
        next->newest = message.newest;
        next->next_in_table = message.next_in_table;
        head = next;
      } else {
        head = message.next_in_table;
      }
      return;
    }
    conditional_message* before = first;
    while (before->next_waiting != &message) before = before->next_waiting;
    before->next_waiting = message.next_waiting;
    if (first->newest == &message) first->newest = before;
  });
}

conditional_message* guard_table::oldest_of(cell& actor) noexcept {
  return table_.with(actor, [](conditional_message* head) { return head; });
}

void set_aside(conditional_message& one) noexcept {
  cell& actor = *active_here().actor;
  actor.flags |= cell::guards;
  actor_system::of(actor).guards.add(actor, one);
  turn_here().set_aside = true;
  tasks::running_here().unusual.store(
      true, std::memory_order_relaxed);  // order: relaxed  the thread's own
}

namespace {

void take_from_guards(cell& actor, conditional_message& one) noexcept {
  guard_table& all = actor_system::of(actor).guards;
  all.remove(actor, one);
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
    conditional_message* one = ready_guard(actor);
    if (one == nullptr) return;
    if (limit.handled == limit.look_after && limit.over(state, actor)) {
      limit.end();
      turn.guard_ready = true;
      return;
    }
    ++limit.handled;
    take_from_guards(actor, *one);
    const unsigned uncounted = turn.uncounted;
    handle_unusual(state, system, actor, *one);
    turn.uncounted = uncounted + 1;  // it was counted when it was set aside
    turn.set_aside = false;
  }
  if ((actor.flags & cell::guards) == 0) call_consumer_in(actor);
}

void make_dead_letters_of_guarded(cell& actor) noexcept {
  actor_system& system = actor_system::of(actor);
  while ((actor.flags & cell::guards) != 0) {
    conditional_message& one = *system.guards.oldest_of(actor);
    take_from_guards(actor, one);
    system.make_uncounted_dead_letter(actor, one);
  }
}

}  // namespace troupe::actor
