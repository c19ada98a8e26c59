// deliver: a message's way from its sender into the mailbox, and the woken actor's way into a
// queue.
//
// Read from `deliver`, near the end, upwards: first the sender's own worker (deliver_inside), then
// an inactive actor that wakes on the sender's worker (deliver_to_inactive), then every other case
// (deliver_from_afar; sending.hpp).
#include "actor/mailbox/deliver.hpp"

#include "actor/mailbox/activation.hpp"
#include "actor/mailbox/dead_letters.hpp"
#include "actor/mailbox/own_mail.hpp"
#include "actor/mailbox/sending.hpp"
#include "actor/mailbox/watched_message.hpp"
#include "actor/system/actor_system.hpp"
#include "base/invariant.hpp"
#include "observe/ring.hpp"
#include "sched/stealing/worker.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {
namespace {

// Makes the activation of an inactive actor, with its first message. Frees the message when memory
// is out.
activation& activate(cell& to, message& mail, bool urgent) {
  try {
    activation& active = make_activation(to);
    urgent ? active.begin_urgent(mail) : active.append(mail);
    if (!urgent && actor_system::of(to).counts != nullptr) active.length.add(1);
    return active;
  } catch (...) {
    mail.act(&mail, nullptr, message_act::discard);
    throw;
  }
}

// The data of the actor that send_from_afar needs, all read before the message is in the mailbox
// (sending.hpp).
struct actor_side {
  actor_side(cell& actor, bool urgent) noexcept
      : actor(actor),
        system(actor_system::of(actor)),
        executor(system.executor_of(actor)),
        urgent(urgent),
        ends(own_worker(system) != nullptr ? gate::ends::with_pool : gate::ends::by_leave) {}

  void refuse(message& mail) {
    if (urgent) {
      mail.act(&mail, nullptr, message_act::discard);
    } else {
      make_dead_letter(system, actor, mail, false);
    }
  }
  // Makes a dead letter that is observed, unless the end has begun.
  void turn_away(message& mail) {
    if (closing()) return refuse(mail);
    const bool open = enter_gate();
    make_dead_letter(system, actor, mail, open);
    leave();
  }
  // order: relaxed  a hint; the gate decides
  bool closing() const noexcept { return system.closing.load(std::memory_order_relaxed); }
  bool wakes_always() const noexcept { return actor.type->reentrant; }
  bool enter_gate() noexcept { return system.entrance.enter(system.closing, ends); }
  void leave() noexcept { system.entrance.leave(ends); }
  activation& activate(message& mail) { return actor::activate(actor, mail, urgent); }
  static void discard(activation& active) noexcept {
    active.clear();
    free_activation(active);
  }
  void wake(activation& activated) noexcept { executor.submit(activated); }

  // The first new message of an active actor went into its mailbox. If the actor's deactivation is
  // deferred on a worker, only a hint makes that worker look. By now the actor may have moved on,
  // and its activation may be another actor's: the worker that takes the hint therefore checks.
  void wake_hint(std::uintptr_t seen) noexcept {
    if (!mailbox::is_activation(seen) || mailbox::is_parked(seen)) return;
    activation& active = mailbox::as_activation(seen);
    // order: relaxed  a wake hint for the wrong worker is passed on (worker.cpp)
    sched::worker* deferred_at = active.home_worker.load(std::memory_order_relaxed);
    if (deferred_at == nullptr) return;
    deferred_at->wake_hints.push(active);
    if (enter_gate()) executor.attend();  // that worker may be in a long handler (P11)
    leave();
  }

  cell& actor;
  actor_system& system;
  sched::executor& executor;
  const bool urgent;
  const gate::ends ends;
};

// A thread that ends a wait has no ref to the waiting actor. The actor may resume and end its whole
// program before this sender is done here: the gate keeps the runtime alive until then.
TROUPE_NOINLINE void deliver_as_stranger(cell& actor, message& mail) {
  actor_side side(actor, true);
  const actor_system::gate_guard entered(side.system);
  send_from_afar(mailbox(actor.word), mail, true, side);
}

TROUPE_NOINLINE void deliver_from_afar(cell& actor, message& mail, bool urgent = false) {
  actor_side side(actor, urgent);
  if (urgent && side.ends == gate::ends::by_leave) [[unlikely]]
    return deliver_as_stranger(actor, mail);
  // Senders that never pause would keep the receiver busy with dead letters, and a stop or the
  // runtime's end would never finish: the sender therefore makes the dead letter itself.
  if (!urgent && side.system.discarding() && !is_ours(mail)) [[unlikely]]
    return side.turn_away(mail);
  send_from_afar(mailbox(actor.word), mail, urgent, side);
}

}  // namespace

namespace {

// The sender is a worker inside its own lock, and the actor is inactive. An actor of this worker's
// pool wakes here.
TROUPE_NOINLINE void deliver_to_inactive(sched::worker& self, cell& actor, message& mail) {
  actor_system& system = actor_system::of(actor);
  // order: relaxed  set when no other thread sends any longer
  if (actor.executor == 0 && &system.executor_of(actor) == self.executor &&
      !system.closing.load(std::memory_order_relaxed) && self.make_room(1)) {
    activation* active = nullptr;
    try {
      active = &make_activation(actor);
    } catch (...) {
      self.lock.leave();
      mail.act(&mail, nullptr, message_act::discard);
      throw;
    }
    active->append(mail);
    if (system.counts != nullptr) active->length.add(1);
    if (mailbox(actor.word).claim(*active)) {
      self.adopt(*active);
      self.push(*active);
      self.lock.leave();
      if (self.unwatched()) self.ask_for_watch();
      return;
    }
    active->clear();
    free_activation(*active);
  }
  self.lock.leave();
  deliver_from_afar(actor, mail);
}

// Urgent mail for an actor of this worker that has mail. Leaves the worker's lock.
TROUPE_NOINLINE void deliver_among(sched::worker& self, activation& active,
                                   message& mail) noexcept {
  active.append_urgent(mail);
  self.wake_if_idle(active);
  self.lock.leave();
  if (self.unwatched()) self.ask_for_watch();  // the running handler may take long (P11)
}

// The sender is a worker inside its own lock; this function leaves the lock.
template <bool Urgent, bool Counted = false>
TROUPE_INLINE void deliver_inside(sched::worker& self, cell& actor, message& mail) {
  const std::uintptr_t seen = mailbox(actor.word).read();
  if (mailbox::is_activation(seen)) {
    activation& active = mailbox::as_activation(seen);
    // The activation may be another worker's, or just freed by it. Its `home_worker` never equals
    // `self` by accident: only this worker writes that value (worker.hpp).
    // order: relaxed  ours is written inside our lock only
    if (active.home_worker.load(std::memory_order_relaxed) == &self) [[likely]] {
      if constexpr (Urgent) {
        if (!active.empty()) [[unlikely]]
          return deliver_among(self, active, mail);
        active.begin_urgent(mail);
        // A branch, since an actor without mail whose wait ends is nearly always idle.
        if (sched::is_idle(active)) [[likely]]
          self.push(active);
      } else {
        active.append(mail);
        if constexpr (Counted) active.length.add_one();
        self.wake_if_deferred(active);
      }
      self.lock.leave();
      if (self.unwatched()) [[unlikely]]
        self.ask_for_watch();  // the running handler may take long (P11)
      return;
    }
  }
  if (!Urgent && seen == mailbox::inactive) return deliver_to_inactive(self, actor, mail);
  self.lock.leave();
  deliver_from_afar(actor, mail, Urgent);
}

// A searcher is inside the worker's lock, or the lock needs a full fence here.
template <bool Urgent, bool Counted = false>
TROUPE_NOINLINE void deliver_patiently(cell& to, message& mail) {
  sched::worker* self = sched::worker::current();
  if constexpr (Counted) {
    if (self == nullptr) return deliver_from_afar(to, as_sent_from_outside(to, mail), false);
  }
  if (self == nullptr || !self->lock.try_enter()) return deliver_from_afar(to, mail, Urgent);
  deliver_inside<Urgent, Counted>(*self, to, mail);
}

template <bool Urgent, bool Counted = false>
TROUPE_INLINE void deliver_at_once(cell& to, message& mail) {
  sched::worker* self = sched::worker::current();
  if (self == nullptr || !self->lock.enter_at_once()) [[unlikely]]
    return deliver_patiently<Urgent, Counted>(to, mail);
  deliver_inside<Urgent, Counted>(*self, to, mail);
}

}  // namespace

TROUPE_NOINLINE void trace_sent(const cell& to, const message& mail) noexcept {
  const message& sent = as_sent(mail);
  observe::record_message(observe::event::sent, sent.act(nullptr, nullptr, message_act::describe),
                          id_of(to), &sent);
}

namespace {

TROUPE_NOINLINE void deliver_watched(cell& to, message& mail, bool told) {
  if (observe::tracing()) trace_sent(to, mail);
  deliver_at_once<false, true>(to, as_watched(to, mail, told));
}

TROUPE_INLINE void deliver_once(cell& to, message& mail, bool told) {
  const std::uint8_t watches = observe::all_watched();
  if (watches == 0) [[likely]]
    return deliver_at_once<false>(to, mail);
  // Only counted, and no thread has a sample: most messages of a runtime that is observed.
  if (watches == static_cast<std::uint8_t>(observe::watched::counts)) [[likely]]
    return deliver_at_once<false, true>(to, mail);
  deliver_watched(to, mail, told);
}

}  // namespace

// Most messages are sent to an actor that is active on the sender's own worker: then no cache line
// of another processor is touched.
void deliver(cell& to, message& mail) { deliver_once(to, mail, false); }
void deliver_told(cell& to, message& mail) { deliver_once(to, mail, true); }
void deliver_urgent(cell& to, message& mail) { deliver_at_once<true>(to, mail); }

void start_at_home(cell& actor) {
  sched::worker* self = sched::worker::current();
  actor_system& system = actor_system::of(actor);
  // order: relaxed  set when no other thread sends any longer
  if (self == nullptr || self->executor != &system.executor_of(actor) ||
      system.closing.load(std::memory_order_relaxed))
    return;
  if (!self->lock.try_enter()) return;
  try {
    if (self->make_room(1)) {
      activation& active = make_activation(actor);
      self->adopt(active);
      // order: relaxed  no other thread has a ref yet; how a ref travels publishes it
      actor.word.store(mailbox::tagged(active), std::memory_order_relaxed);
      self->defer_deactivation(active, sched::run_state::deactivation_deferred);
    }
  } catch (const std::bad_alloc&) {
    // Without an activation the actor starts inactive, which is correct too.
  }
  self->lock.leave();
}

// An actor that waits in this worker's queue, or whose deactivation is deferred here, runs nowhere.
// It therefore cannot make a ref to itself, and if the caller's ref is the only one, no other
// thread can reach the actor.
bool drop_at_home(cell& actor) noexcept {
  sched::worker* self = sched::worker::current();
  if (self == nullptr || !self->lock.try_enter()) return false;
  const std::uintptr_t seen = mailbox(actor.word).read();
  bool done = false;
  if (mailbox::is_activation(seen)) {
    activation& active = mailbox::as_activation(seen);
    // order: relaxed  ours is written inside our lock only
    if (active.home_worker.load(std::memory_order_relaxed) == self &&
        active.where != sched::run_state::running && actor.refs.drop_only()) {
      active.set_unreferenced(true);
      if (active.where == sched::run_state::deactivation_deferred) self->push(active);
      done = true;
    }
  }
  self->lock.leave();
  if (done && self->unwatched()) [[unlikely]]
    self->ask_for_watch();
  return done;
}

void deliver_with_its_ref(cell& to, message& mail) {
  if (own_worker(actor_system::of(to)) != nullptr) return deliver(to, mail);
  struct hold {
    explicit hold(cell& actor) noexcept : held(actor) { add_ref(held); }
    ~hold() { drop_ref(held); }
    cell& held;
  } const actor_hold(to);
  deliver(to, mail);
}

void give_permit_back(cell& to) noexcept { leave_mailbox(to); }

void deliver_with_permit(cell& to, message& mail) {
  try {
    deliver_told(to, mail);
  } catch (...) {
    leave_mailbox(to);
    throw;
  }
}

void deliver_constructor(cell& actor, message& birth) {
  // No dead letter is made of a constructor while a stop discards: a later message would be taken
  // for the constructor.
  actor_side side(actor, false);
  send_from_afar(mailbox(actor.word), birth, false, side);
}

}  // namespace troupe::actor
