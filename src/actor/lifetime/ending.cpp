// How an actor ends, and the messages that make it end.
#include "actor/lifetime/ending.hpp"

#include <new>
#include <utility>

#include "actor/mailbox/own_mail.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

const char* unreferenced_by_message(message* mail, void*, message_act act) {
  if (act == message_act::describe) return "unreferenced";
  message_guard<message> guard{mail};
  if (act == message_act::handle) active_here().set_unreferenced(true);
  return nullptr;
}

void destroy_object(cell& actor) noexcept {
  if (observe::tracing()) [[unlikely]]
    observe::record(observe::event::ended, actor.type->name, id_of(actor));
  actor_heap* const heap = heap_of(actor);
  if (heap != nullptr) heap->close();
  actor.type->destroy(object_of(actor));
  if (heap != nullptr) heap->end();
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
  system.supervised.end(actor, own == nullptr ? nullptr : own->parent, std::move(how),
                        &send_stop_now);
  leave_parent(actor);
}

void leave_parent(cell& actor) noexcept {
  if (!has_optional_state(actor) || optional_state::of(actor).supervision == nullptr) return;
  if (cell* parent = std::exchange(optional_state::of(actor).supervision->parent, nullptr))
    drop_ref(*parent);
}

namespace {

// The actor ends now, or when its last suspended call has ended that could not be cancelled at
// once.
void end_when_over(activation& active) noexcept {
  if (supervision_state* own = supervision_of(*active.actor)) own->failure_after_calls = {};
  active.actor->flags |= cell::ends_soon;
  cancel_turns(active);
  if (!suspends(active)) end_object(*active.actor);
}

}  // namespace

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

void send_stop_now(cell& actor) noexcept try {
  deliver_urgent(actor, *make_message<message>(&stop_now_by_message));
} catch (const std::bad_alloc&) {
}

void notify_unreferenced(cell& to) noexcept try {
  actor_system& system = actor_system::of(to);
  // order: relaxed  set before the last threads ended
  if (system.closing.load(std::memory_order_relaxed)) return;
  deliver(to, *make_message<message>(&unreferenced_by_message));
} catch (const std::bad_alloc&) {
  // The actor cannot be notified, and no ref to it is left: it ends with its runtime.
}

namespace {

// Nothing is queued any longer: only an actor with suspended calls still has its activation.
void end_activation(cell& actor) noexcept {
  const std::uintptr_t seen = mailbox(actor.word).read();
  if (!mailbox::is_parked(seen)) return;
  activation& active = mailbox::activation_under(seen);
  if (active.suspended != nullptr) end_call(active);
  // Parked until here: a thread that ends the call's wait finds the actor closed, and reports it.
  // order: relaxed  no thread wakes it any longer
  actor.word.fetch_and(~mailbox::parked_tag, std::memory_order_relaxed);
  turn_type.discard(active);
}

}  // namespace

void destroy_actor(cell& actor) noexcept {
  const bool alive = actor.alive();
  actor.flags |= cell::stopped;
  end_activation(actor);  // also the activation of an actor that waits to be constructed anew
  end_reentrant(actor);
  refuse_consumer(actor);
  if (alive) {
    inside_actor inside(actor);
    destroy_object(actor);
  }
  make_dead_letters_of_guarded(actor);
}

}  // namespace troupe::actor
