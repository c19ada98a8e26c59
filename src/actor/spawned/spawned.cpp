// The life of a spawned task. Until its first turn it is a block in a queue (queued_task). For its
// first turn it gets an actor. Most tasks wait for nothing: they end in that turn, and the next
// task takes over the actor's memory at once. A task that waits becomes a suspended actor. Off the
// fast path (with options, or in a runtime that traces or simulates) a task is an actor from the
// beginning.
#include <cstddef>
#include <string>

#include "actor/actor_system.hpp"
#include "actor/lifetime/extras.hpp"
#include "actor/spawned/queued_result.hpp"
#include "actor/spawned/spawned.hpp"
#include "actor/turn/running.hpp"
#include "actor/turn/turn.hpp"
#include "sched/stealing/worker.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn_task.hpp"

namespace troupe::actor {

constinit const cell_type spawned_type{
    sizeof(spawned_task), alignof(spawned_task),
    [](void* object) noexcept { std::destroy_at(static_cast<spawned_task*>(object)); },
    "a spawned task", false};

namespace {

// What the first turn needs.
struct task_start {
  message::handler act;
  tasks::coroutine* root;
  tasks::shared_state* result;  // null: nobody takes the result
  actor_system* system;
};

}  // namespace

// A task in the queue, in the block of memory that becomes its actor's activation. `result` lies
// where the activation has the head of its mail list: a taker that leaves may look at this word
// when the block already serves another purpose (queued_result.hpp).
struct queued_task : sched::runnable {
  using result_word = queued_result<tasks::shared_state, std::atomic<std::uintptr_t>>;
  message::handler act;
  std::atomic<std::uintptr_t> result;
  tasks::coroutine* root;
  actor_system* system;
};

bool give_up_result(queued_task& of, tasks::shared_state& result) noexcept {
  return queued_task::result_word(of.result).give_up(result);
}

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(queued_task, result) == offsetof(activation, oldest));
#pragma GCC diagnostic pop

extern const sched::runnable_vtable queued_type, queued_from_outside_type;

// Call it once: from then on no taker can give the result up.
TROUPE_INLINE task_start take_start(queued_task& from) noexcept {
  queued_task::result_word result(from.result);
  return {from.act, from.root,
          from.type == &queued_from_outside_type ? result.take() : result.look(), from.system};
}

// Does not count the actor: spawn has. Throws std::bad_alloc.
TROUPE_INLINE spawned_task& make_actor(const task_start& what) {
  return make_spawned(*what.system, what.act, *what.root, what.result);
}

// There is no memory for the task's actor: std::bad_alloc becomes the task's result, or a failure
// when no taker is left.
TROUPE_NOINLINE void end_not_begun(const task_start& what) noexcept {
  actor_system& system = *what.system;
  count(system, counted::ended);
  if (what.result == nullptr || what.result->left())
    system.report(nullptr, what.act, std::make_exception_ptr(std::bad_alloc()));
  spawned_task not_begun(nullptr, what.act, *what.root, what.result);
  what.act(&not_begun, nullptr, message_act::discard);
}

// While a stop discards, a new task becomes a dead letter without an actor. If it went to the pool,
// the stop could not finish for as long as other threads spawn.
TROUPE_NOINLINE void turn_away(actor_system& system, const task_start& what) noexcept {
  const bool open = system.enter_gate();
  system.count_dead_letter();
  spawned_task not_begun(nullptr, what.act, *what.root, what.result);
  what.act(&not_begun, &system, message_act::discard);
  system.observe_dead_letter(
      {spawned_type.name, what.act(nullptr, nullptr, message_act::describe), 0, {}}, open);
  system.leave();
}

// All that the block held has been read: from now on it is the activation of the actor `made`, or
// of none when that is null. No other thread knows that actor yet.
TROUPE_INLINE activation& become_activation(sched::runnable& item, cell* made) noexcept {
  // order: none  keeps the compiler from writing before the reads: the types differ
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto& active = static_cast<activation&>(item);
  begin_activation(active, made);
  // order: relaxed  how a ref travels publishes it
  if (made != nullptr) made->word.store(mailbox::tagged(active), std::memory_order_relaxed);
  return active;
}

// Makes the task an actor with its start as the first message. Null when memory was out: then the
// task has ended.
activation* become_actor(sched::runnable& item, const task_start& what) noexcept try {
  spawned_task& object = make_actor(what);
  activation& active = become_activation(item, static_cast<cell*>(object.own_call.actor));
  active.type = &turn_type;
  active.append(object);
  return &active;
} catch (const std::bad_alloc&) {
  end_not_begun(what);
  become_activation(item, nullptr);
  return nullptr;
}

sched::after_turn run_slow_path(sched::runnable& item, const task_start& what) {
  activation* const active = become_actor(item, what);
  return active == nullptr ? sched::after_turn::gone : turn_type.run(*active);
}

// The task remains an actor: other threads know it, or it waits.
TROUPE_NOINLINE sched::after_turn go_on_as_actor(thread_turn_state& state, activation& active,
                                                 tasks::async_call& of) noexcept {
  cell& made = *active.actor;
  active.type = &turn_type;
  if (of.done) {
    end_spawned(made);
  } else {
    auto& object = *static_cast<spawned_task*>(made.object());
    // The task outlives its first turn, and no taker is left: frees the result, and hands the root
    // to the object.
    if (object.result != nullptr && object.result->left())
      object.act(&object, nullptr, message_act::detach);
    add_ref(made);
    count_suspended(1);
    active.suspend(of);
    if (is_suspended(state, active)) {
      state.own.add(counted::messages, 1);
      return leave_turn(state, sched::after_turn::waits);
    }
  }
  return run_on(state, active, 1, true);
}

sched::after_turn run(sched::runnable& item) {
  const task_start what = take_start(static_cast<queued_task&>(item));
  actor_system& system = *what.system;
  thread_turn_state& state = current_turn();
  // order: relaxed (both)  as in takes_fast_path (turn.cpp)
  if (system.slow_path_flags.load(std::memory_order_relaxed) != 0 ||
      state.system.load(std::memory_order_relaxed) != &system) [[unlikely]] {
    return run_slow_path(item, what);
  }
  spawned_task* made = nullptr;
  try {
    made = &make_actor(what);
  } catch (const std::bad_alloc&) {
    return run_slow_path(item, what);
  }
  spawned_task& object = *made;
  cell& actor = *static_cast<cell*>(object.own_call.actor);
  activation& active = become_activation(item, &actor);
  state.active = &active;
  // order: relaxed (both)  for running_handlers, a snapshot
  state.actor.store(&actor, std::memory_order_relaxed);
  state.method.store(object.act, std::memory_order_relaxed);
  object.own_call.at = &system.host;
  state.running_call = &object.own_call;
  object.own_call.start(object.root);
  state.running_call = nullptr;
  if (!object.own_call.done) return go_on_as_actor(state, active, object.own_call);
  object.act(&object, &actor, message_act::complete);
  if (!actor.refs.is_only() || mailbox(actor.word).has_mail(active) || !active.empty() ||
      active.marks != 0 || actor.flags != cell::constructed || state.yielded != nullptr ||
      system.supervised.in_use()) [[unlikely]] {
    return go_on_as_actor(state, active, object.own_call);
  }
  state.own.add(counted::messages, 1);
  state.own.add(counted::ended, 1);
  system.slots.free(&actor, own_magazines(system));
  active.actor = nullptr;
  return leave_turn(state, sched::after_turn::gone);
}

// Executors call these for a queued task that has had its first turn: by then it is an actor, or
// nothing.
bool deactivate(sched::runnable& item) { return turn_type.deactivate(item); }
bool pending(const sched::runnable&) { return true; }
void dispose(sched::runnable& item) noexcept {
  auto& active = static_cast<activation&>(item);
  active.actor == nullptr ? free_activation(active) : turn_type.dispose(active);
}

// As for an actor that has not handled its first message.
void discard(sched::runnable& item) noexcept {
  activation* const active = become_actor(item, take_start(static_cast<queued_task&>(item)));
  active == nullptr ? dispose(item) : turn_type.discard(*active);
}

const sched::runnable_vtable queued_type{&run, &deactivate, &pending, &dispose, &discard};
// For tasks that a thread outside of the pool spawned. Such a thread may spawn many before the
// first of them begins: so the state is freed at once when the taker leaves.
const sched::runnable_vtable queued_from_outside_type{&run, &deactivate, &pending, &dispose,
                                                      &discard};
bool is_queued(const sched::runnable& item) noexcept {
  return item.type == &queued_type || item.type == &queued_from_outside_type;
}

// The end has begun, and what observes dead letters may be gone: so this one is not observed.
void refuse(sched::runnable& item) noexcept {
  activation* const active = is_queued(item)
                                 ? become_actor(item, take_start(static_cast<queued_task&>(item)))
                                 : &static_cast<activation&>(item);
  if (active == nullptr) return dispose(item);
  cell& actor = *active->actor;
  message& mail = *activation::as_message(active->take_all().oldest);
  // order: relaxed  no other thread knows it yet
  actor.word.store(mailbox::inactive, std::memory_order_relaxed);
  free_activation(*active);
  actor_system::of(actor).make_dead_letter(actor, mail, false);
}

// The pool's own workers end before the pool; other threads must pass the gate.
TROUPE_NOINLINE void submit_patiently(actor_system& system, sched::runnable& item) noexcept {
  // order: relaxed  set at the runtime's start
  sched::executor& pool = *system.executors[0].load(std::memory_order_relaxed);
  if (own_worker(system) != nullptr) return pool.submit(item);
  const bool open = system.enter_gate();
  if (open) pool.submit(item);
  system.leave();
  if (!open) refuse(item);
}

TROUPE_INLINE void submit(actor_system& system, sched::runnable& item) noexcept {
  sched::worker* const self = own_worker(system);
  if (self == nullptr || !self->submit(item)) submit_patiently(system, item);
}

// Makes the task an actor from the beginning.
TROUPE_NOINLINE void start_slow(const placement& where, const task_start& what) {
  cell& made = make_cell(where, spawned_type);
  activation* active = nullptr;
  try {
    active = &make_activation(made);
  } catch (...) {
    count(where.system, counted::ended);
    free_cell(made);
    throw;
  }
  active->append(make_object(made, what.act, *what.root, what.result));
  // order: relaxed  no other thread knows it yet; how a ref travels publishes it
  made.word.store(mailbox::tagged(*active), std::memory_order_relaxed);
  submit(where.system, *active);
}

}  // namespace

namespace {

// Such a task would run beside the actor's turns, and the actor may be gone before the task ends.
TROUPE_NOINLINE void refuse_part_of(cell& running, const void* object) {
  if (offset_in(running, object) == SIZE_MAX) return;
  throw usage_error(std::string("troupe: spawn: the task is a method of ") + running.type->name +
                    " #" + std::to_string(id_of(running)) +
                    ", whose handler is running, or refers to a part of it: it would run beside "
                    "the actor's turns. Send it to the actor, "
                    "troupe::self(this).tell<&T::method>(...), or co_await it; or give the task "
                    "values of its own");
}

}  // namespace

queued_task* start_spawned(const placement& where, message::handler act, tasks::coroutine& root,
                           tasks::shared_state& result) {
  actor_system& system = where.system;
  if (system.is_simulated) [[unlikely]]
    result.main_lane = system.main_lane;
  if (const void* const object = root.object_before_start()) {
    if (cell* const running = current_cell()) refuse_part_of(*running, object);
  }
  // order: relaxed (both)  as takes_fast_path (turn.cpp); the ending thread's own, or a handler's
  // that may see it late
  if (where.has_options || system.slow_path_flags.load(std::memory_order_relaxed) != 0 ||
      system.closing.load(std::memory_order_relaxed)) [[unlikely]] {
    const task_start what{act, &root, &result, &system};
    system.discarding() ? turn_away(system, what) : start_slow(where, what);
    return nullptr;
  }
  const bool outside = own_worker(system) == nullptr;
  auto& item = make_runnable<queued_task>(outside ? queued_from_outside_type : queued_type);
  item.act = act;
  item.root = &root;
  queued_task::result_word(item.result).set(result);
  item.system = &system;
  count(system, counted::spawned);
  submit(system, item);
  return outside ? &item : nullptr;
}

}  // namespace troupe::actor
