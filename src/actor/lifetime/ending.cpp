// How an actor ends, and the messages that make it end.
#include <utility>

#include "actor/system/actor_system.hpp"
#include "actor/turn/turn.hpp"
#include "troupe/actor/call.hpp"

namespace troupe::actor {
namespace {

const char* unreferenced(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "unreferenced";
  message_guard<message> guard{mail};
  if (act == message_act::handle) active_here().set_unreferenced(true);
  return nullptr;
}

}  // namespace

bool is_ours(const message& mail) noexcept {
  return mail.act == &unreferenced || mail.act == &stop_by_message ||
         mail.act == &consume_by_message || mail.act == &drop_by_message;
}

void end_object(cell& actor, ended how) noexcept {
  const bool was_stopped = (actor.flags & cell::stopped) != 0, alive = actor.alive();
  actor.flags |= cell::stopped;
  // order: relaxed  the thread's own
  tasks::running_here().unusual.store(true, std::memory_order_relaxed);
  if (was_stopped) return;
  tasks::count(actor_system::of(actor), tasks::counted::ended);
  if (thread_counts* const counts = actor_system::of(actor).counts_here()) [[unlikely]]
    counts->of_class(*actor.type).ended.add(1);
  if (alive) destroy_object(actor);
  if (mail_bound* bound = bound_of(actor)) bound->open();
  make_dead_letters_of_guarded(actor);
  refuse_consumer(actor);
  actor_system& system = actor_system::of(actor);
  supervision_state* const own = supervision_of(actor);
  // The join message of a child may still be on its way to the parent: also check `own->parent`.
  if (!system.supervised.in_use() && (own == nullptr || own->parent == nullptr)) return;
  system.supervised.end(actor, own == nullptr ? nullptr : own->parent, std::move(how));
  leave_parent(actor);
}

void leave_parent(cell& actor) noexcept {
  if (!has_optional_state(actor) || optional_state::of(actor).supervision == nullptr) return;
  if (cell* parent = std::exchange(optional_state::of(actor).supervision->parent, nullptr))
    drop_ref(*parent);
}

// The actor ends now, or when its last suspended call has ended that could not be cancelled at
// once.
void end_when_over(activation& active) noexcept {
  if (supervision_state* own = supervision_of(*active.actor)) own->failure_after_calls = {};
  active.actor->flags |= cell::ends_soon;
  cancel_turns(active);
  if (!suspends(active)) end_object(*active.actor);
}

const char* stop_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "stop";
  message_guard<message> guard{mail};
  if (act == message_act::handle) {
    end_when_over(active_here());
  }
  return nullptr;
}

const char* cancel_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "stop";
  message_guard<message> guard{mail};
  if (act != message_act::handle) return nullptr;
  activation& active = active_here();
  if (supervision_state* own = supervision_of(*active.actor)) own->cancels_then = cell::cancels;
  cancel_turns(active);
  return nullptr;
}

const char* stop_now_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "stop_now";
  message_guard<message> guard{mail};
  if (act != message_act::handle) return nullptr;
  end_when_over(active_here());
  return nullptr;
}

void notify_unreferenced(cell& to) noexcept try {
  actor_system& system = actor_system::of(to);
  // order: relaxed  set before the last threads ended
  if (system.closing.load(std::memory_order_relaxed)) return;
  deliver(to, *make_message<message>(&unreferenced));
} catch (const std::bad_alloc&) {
  // The actor cannot be notified, and no ref to it is left: it ends with its runtime.
}

}  // namespace troupe::actor
