#include "actor/system/actor_system.hpp"

#include <new>

#include "actor/mailbox/activation.hpp"
#include "actor/mailbox/watched_message.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/turn/turn.hpp"
#include "base/atomics.hpp"
#include "sched/stealing/worker.hpp"
#include "task/running/running.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

constinit thread_local thread_slots slots_of_thread{};

memory::slot_space::magazines* claim_magazines(actor_system& system) noexcept {
  if (slots_of_thread.system != nullptr || own_worker(system) == nullptr) return nullptr;
  try {
    std::lock_guard lock(system.making_magazines);
    slots_of_thread.magazines =
        system.magazines_of_workers.emplace_back(std::make_unique<memory::slot_space::magazines>())
            .get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  slots_of_thread.system = &system;
  return slots_of_thread.magazines;
}

constinit thread_local const kept_memory* failures_keep = nullptr;

actor_system::actor_system(limits turn, actor_host& of, bool observed)
    : runtime_state(of),
      turn(turn),
      owner(of),
      counts(observed ? std::make_unique<message_counts>() : nullptr),
      slots(static_cast<runtime_state*>(this)) {
  actors = &functions_of_actors;
  turns = observed ? &counted_turn_type : &turn_type;
  // order: relaxed  no other thread can see it yet
  if (turn.messages < turns_are_short_below)
    slow_path_flags.store(short_turns, std::memory_order_relaxed);
  // order: relaxed  as above
  if (observe::tracing()) slow_path_flags.fetch_or(traced, std::memory_order_relaxed);
  if (!observed) return;
  observe::count_spans_by(&count_span);
  observe::watch(observe::watched::counts);
  // order: relaxed  as above
  slow_path_flags.fetch_or(runtime_state::counts_messages, std::memory_order_relaxed);
}

actor_system::~actor_system() {
  if (slots_of_thread.system == this) slots_of_thread = {};
  slots.for_each([](void* slot) { end_optional_state(*static_cast<cell*>(slot)); });
}

void actor_system::report(const cell* actor, message::handler method,
                          std::exception_ptr what) noexcept {
  // A call that a stop cancelled is no failure.
  if (discarding() && is_cancelled(what)) return;
  failed_call where{
      "", method != nullptr ? method(nullptr, nullptr, message_act::describe) : "post", 0, {}};
  if (actor != nullptr) {
    where.actor = actor->type->name;
    where.id = id_of(*actor);
  }
  if (failures_keep != nullptr) where.keeps = *failures_keep;
  owner.failed(where, std::move(what));
}

failed_call place_of_dropped() noexcept {
  failed_call where;
  where.is_dropped = true;
  if (const cell* const actor = current_cell()) {
    where.actor = actor->type->name;
    where.id = id_of(*actor);
    // order: relaxed  the thread's own
    if (const auto method = tasks::running_here().method.load(std::memory_order_relaxed))
      where.method = method(nullptr, nullptr, message_act::describe);
  }
  return where;
}

gate::ends actor_system::how_thread_ends() const noexcept {
  return own_worker(*this) != nullptr ? gate::ends::with_pool : gate::ends::by_leave;
}
bool actor_system::enter_gate() noexcept { return entrance.enter(closing, how_thread_ends()); }
void actor_system::leave() noexcept { entrance.leave(how_thread_ends()); }
void actor_system::close() noexcept { entrance.close(closing); }

void actor_system::make_dead_letter(cell& actor, message& mail, bool observed) noexcept {
  if (is_counted(mail)) leave_mailbox(actor);
  make_uncounted_dead_letter(actor, mail, observed);
}

void actor_system::make_uncounted_dead_letter(const cell& actor, message& mail,
                                              bool observed) noexcept {
  if (is_ours(mail)) {
    mail.act(&mail, nullptr, message_act::discard);
    return;
  }
  count_dead_letter();
  // The message may hold the last ref to the actor, and to its runtime when that has ended: copy
  // the needed values first.
  const failed_call where{actor.type->name, name_of(mail), id_of(actor), {}};
  mail.act(&mail, nullptr, message_act::discard);
  observe_dead_letter(where, observed);
}

// order: relaxed  a statistic
void actor_system::count_dead_letter() noexcept {
  dead_letters.fetch_add(1, std::memory_order_relaxed);
}

// At the runtime's end a message that the observer sends may become a dead letter at once: it is
// counted, but not observed.
void actor_system::observe_dead_letter(const failed_call& where, bool observed) noexcept {
  thread_local bool observing = false;
  if (!observed || observing || !observes_dead_letters) return;
  observing = true;
  owner.dead_letter(where);
  observing = false;
}

namespace {

// Nothing is queued any longer: only an actor with suspended calls still has its activation.
void end_activation(cell& actor) noexcept {
  const std::uintptr_t seen = mailbox(actor.word).read();
  if (!mailbox::is_parked(seen)) return;
  activation& active = mailbox::activation_under(seen);
  if (active.suspended != nullptr) end_call(active);
  // Parked until here: a thread that ends the call's wait finds the actor closed, and says so.
  // order: relaxed  no thread wakes it any longer
  actor.word.fetch_and(~mailbox::parked_tag, std::memory_order_relaxed);
  turn_type.discard(active);
}

}  // namespace

void actor_system::destroy_actors(std::uint16_t executor) noexcept {
  if (executor == 0) end_asleep(*this);
  // Destructors may drop the last refs to other actors; they make no new actors any longer
  // (cell.cpp).
  slots.for_each([&](void* slot) {
    cell& actor = *static_cast<cell*>(slot);
    if (actor.lives_on() == executor) {
      supervised.forget(actor);
      leave_parent(actor);
    }
    if (actor.lives_on() == executor && (actor.flags & cell::stopped) == 0) destroy_actor(actor);
  });
}

void actor_system::destroy_actor(cell& actor) noexcept {
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

void actor_system::destroy(actor_system* self) noexcept {
  tasks::leave_runtime(*self);
  self->supervised.end_all();
  constexpr std::int64_t open = std::int64_t{1} << 40;
  // order: relaxed  meanwhile dropped refs count down from `open`
  self->orphan_refs.store(open, std::memory_order_relaxed);
  std::int64_t left = 0;
  self->slots.for_each([&](void* slot) {
    cell& actor = *static_cast<cell*>(slot);
    // order: release  a later sender sees a closed mailbox; pairs with append_always
    actor.word.store(mailbox::closed, std::memory_order_release);
    left += actor.refs.make_orphan();
  });
  // Waits for threads that dropped a last ref before it could be counted.
  self->entrance.wait();
  // order: acq_rel  as drop_orphan_ref
  if (self->orphan_refs.fetch_sub(open - left, std::memory_order_acq_rel) == open - left)
    delete self;
}

void actor_system::drop_orphan_ref() noexcept {
  // order: acq_rel  the thread that drops the last ref frees the memory that all have used
  if (orphan_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace troupe::actor
