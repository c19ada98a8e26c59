// A spawned task's way: a place in a queue until its first turn; in that an actor, whose memory the next one takes over at once
// when it waits for nothing, as most; an actor that is suspended when it does.
// What is unlike most, as all are of a runtime that traces or simulates, is an actor from the beginning.
#include "actor/running.hpp"
#include "actor/system.hpp"
#include "actor/turn.hpp"
#include "sched/worker.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn_task.hpp"

namespace troupe::actor {
namespace {

constexpr cell_type spawned_type{sizeof(spawned_task), alignof(spawned_task),
                                 [](void* object) noexcept { std::destroy_at(static_cast<spawned_task*>(object)); }, "a spawned task",
                                 false};

// What the first turn needs, in the block that then is the actor's activation.
struct queued_task : sched::runnable {
  message::handler act;
  tasks::coroutine* root;
  tasks::shared_state* result;
  system* home;
};

spawned_task& make_object(cell& made, const queued_task& what) noexcept {
  made.flags |= cell::born;
  return *::new (made.object()) spawned_task(&made, what.act, *what.root, *what.result);
}

// Nothing counts it: spawn has. Throws std::bad_alloc.
TROUPE_INLINE spawned_task& make_actor(const queued_task& what) {
  system& home = *what.home;
  void* slot = home.slots.allocate(spawned_type.slot_bytes, own_magazines(home));
  return make_object(*::new (slot) cell(spawned_type, 0, static_cast<std::uint8_t>(spawned_type.offset / 8)), what);
}

// There is no memory for an actor: that is the result, and a failure when nobody is left to take it.
TROUPE_NOINLINE void end_unborn(const queued_task& what) noexcept {
  system& home = *what.home;
  count(home, counted::ended);
  if (what.result->left()) home.report(nullptr, what.act, std::make_exception_ptr(std::bad_alloc()));
  spawned_task unborn(nullptr, what.act, *what.root, *what.result);
  what.act(&unborn, nullptr, message_act::discard);
}

// A stop discards what is sent: a dead letter, without an actor. One that came into the pool would keep the stop from its end, as long
// as somebody goes on spawning.
TROUPE_NOINLINE void turn_away(system& home, const queued_task& what) noexcept {
  const bool open = home.visit();
  home.count_dead_letter();
  spawned_task unborn(nullptr, what.act, *what.root, *what.result);
  what.act(&unborn, &home, message_act::discard);
  home.observe_dead_letter({spawned_type.name, what.act(nullptr, nullptr, message_act::describe), 0, {}}, open);
  home.leave();
}

// What the block held has been read: from now on it is the activation of that actor, of which nobody else knows yet, or null.
TROUPE_INLINE activation& become_activation(sched::runnable& item, cell* made) noexcept {
  // order: none  keeps the compiler from writing before the reading: the types differ
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto& active = static_cast<activation&>(item);
  begin_activation(active, made);
  // order: relaxed  how a ref travels publishes it
  if (made != nullptr) made->word.store(mailbox::tagged(active), std::memory_order_relaxed);
  return active;
}

// With its start as its first message. Null without memory, when all is over.
activation* become_actor(sched::runnable& item) noexcept try {
  auto& what = static_cast<queued_task&>(item);
  spawned_task& object = make_actor(what);
  activation& active = become_activation(item, static_cast<cell*>(object.flow.actor));
  active.type = &turn_type;
  active.append(object);
  return &active;
} catch (const std::bad_alloc&) {
  end_unborn(static_cast<queued_task&>(item));
  become_activation(item, nullptr);
  return nullptr;
}

sched::after_turn run_unlike_most(sched::runnable& item) {
  activation* const active = become_actor(item);
  return active == nullptr ? sched::after_turn::gone : turn_type.run(*active);
}

// It goes on as an actor, which others know, or which waits.
TROUPE_NOINLINE sched::after_turn go_on_as_actor(turn_place& place, activation& active, tasks::flow& of) noexcept {
  cell& made = *active.actor;
  active.type = &turn_type;
  if (of.done) {
    end_spawned(made);
  } else {
    auto& object = *static_cast<spawned_task*>(made.object());
    // It outlives its first turn, and nobody is left who could take the result: that goes, and the root is the object's own.
    if (object.result->left()) object.act(&object, nullptr, message_act::detach);
    add_ref(made);
    count_suspended(1);
    active.suspend(of);
    if (is_suspended(place, active)) {
      place.own.add(counted::messages, 1);
      return leave_turn(place, sched::after_turn::waits);
    }
  }
  return run_on(place, active, 1, true);
}

sched::after_turn run(sched::runnable& item) {
  auto& what = static_cast<queued_task&>(item);
  system& home = *what.home;
  turn_place& place = current_turn();
  // order: relaxed (both)  as is_like_most (turn.cpp)
  if (home.oddities.load(std::memory_order_relaxed) != 0 || place.home.load(std::memory_order_relaxed) != &home) [[unlikely]] {
    return run_unlike_most(item);
  }
  spawned_task* made = nullptr;
  try {
    made = &make_actor(what);
  } catch (const std::bad_alloc&) {
    return run_unlike_most(item);
  }
  spawned_task& object = *made;
  cell& actor = *static_cast<cell*>(object.flow.actor);
  activation& active = become_activation(item, &actor);
  place.active = &active;
  // order: relaxed (both)  for running_handlers, a snapshot
  place.actor.store(&actor, std::memory_order_relaxed);
  place.method.store(object.act, std::memory_order_relaxed);
  object.flow.at = &home.home;
  place.flow = &object.flow;
  object.flow.start(object.root);
  place.flow = nullptr;
  if (!object.flow.done) return go_on_as_actor(place, active, object.flow);
  object.act(&object, &actor, message_act::complete);
  if (!actor.refs.is_only() || mailbox(actor.word).has_mail(active) || !active.empty() || active.marks != 0 ||
      actor.flags != cell::born || place.yielded != nullptr || home.kins.in_use()) [[unlikely]] {
    return go_on_as_actor(place, active, object.flow);
  }
  place.own.add(counted::messages, 1);
  place.own.add(counted::ended, 1);
  home.slots.free(&actor, own_magazines(home));
  active.actor = nullptr;
  return leave_turn(place, sched::after_turn::gone);
}

// Those executors ask it that did so before its first turn: by now it is an actor, or nothing.
bool settle(sched::runnable& item) { return turn_type.settle(item); }
bool pending(const sched::runnable&) { return true; }
void dispose(sched::runnable& item) noexcept {
  auto& active = static_cast<activation&>(item);
  active.actor == nullptr ? free_activation(active) : turn_type.dispose(active);
}

// As an actor that has not handled its message.
void discard(sched::runnable& item) noexcept {
  activation* const active = become_actor(item);
  active == nullptr ? dispose(item) : turn_type.discard(*active);
}

const sched::runnable_type queued_type{&run, &settle, &pending, &dispose, &discard};

// The end has begun, and others may be done with it: nobody hears of the dead letter.
void refuse(sched::runnable& item) noexcept {
  activation* const active = item.type == &queued_type ? become_actor(item) : &static_cast<activation&>(item);
  if (active == nullptr) return dispose(item);
  cell& actor = *active->actor;
  message& mail = *activation::as_message(active->take_all().oldest);
  // order: relaxed  still nobody else's
  actor.word.store(mailbox::dormant, std::memory_order_relaxed);
  free_activation(*active);
  system::of(actor).bury(actor, mail, false);
}

// A worker of the pool ends before the pool; others ask whether it still takes anything.
TROUPE_NOINLINE void submit_patiently(system& home, sched::executor& pool, sched::runnable& item) noexcept {
  const sched::worker* const self = sched::worker::current();
  if (self != nullptr && self->executor == &pool) return pool.submit(item);
  const bool open = home.visit();
  if (open) pool.submit(item);
  home.leave();
  if (!open) refuse(item);
}

TROUPE_INLINE void submit(system& home, sched::runnable& item) noexcept {
  // order: relaxed  there from the beginning
  sched::executor& pool = *home.executors[0].load(std::memory_order_relaxed);
  sched::worker* const self = sched::worker::current();
  if (self == nullptr || self->executor != &pool || !self->submit(item)) submit_patiently(home, pool, item);
}

// An actor from the beginning.
TROUPE_NOINLINE void start_unlike_most(const placement& where, const queued_task& what) {
  cell& made = make_cell(where, spawned_type);
  activation* active = nullptr;
  try {
    active = &make_activation(made);
  } catch (...) {
    count(where.home, counted::ended);
    free_cell(made);
    throw;
  }
  active->append(make_object(made, what));
  // order: relaxed  nobody else knows it yet; how a ref travels publishes it
  made.word.store(mailbox::tagged(*active), std::memory_order_relaxed);
  submit(where.home, *active);
}

}  // namespace

void start_spawned(const placement& where, message::handler act, tasks::coroutine& root, tasks::shared_state& result) {
  system& home = where.home;
  // order: relaxed (both)  as is_like_most (turn.cpp); the ending thread's own, or a handler's that may see it late
  if (where.unlike_most || home.oddities.load(std::memory_order_relaxed) != 0 || home.closing.load(std::memory_order_relaxed)) [[unlikely]] {
    queued_task what;
    what.act = act, what.root = &root, what.result = &result;
    return home.discarding() ? turn_away(home, what) : start_unlike_most(where, what);
  }
  auto& item = make_runnable<queued_task>(queued_type);
  item.act = act;
  item.root = &root;
  item.result = &result;
  item.home = &home;
  count(home, counted::spawned);
  submit(home, item);
}

}  // namespace troupe::actor
