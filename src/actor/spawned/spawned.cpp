#include "actor/spawned/spawned.hpp"

#include <cstddef>
#include <new>
#include <string>

#include "actor/counting/last_handler.hpp"
#include "actor/lifetime/ending.hpp"
#include "actor/mailbox/activation.hpp"
#include "actor/mailbox/dead_letters.hpp"
#include "actor/spawned/queued_result.hpp"
#include "actor/state/optional_state.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/turn.hpp"
#include "sched/stealing/worker.hpp"
#include "task/timers/timers.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

constinit const cell_type spawned_type{
    sizeof(spawned_task),
    alignof(spawned_task),
    [](void* object) noexcept { std::destroy_at(static_cast<spawned_task*>(object)); },
    "a spawned task",
    false,
    false};

namespace {

// The part of a task that is the same in all of its states.
struct spawned {
  message::handler act;
  tasks::coroutine* root;
  tasks::shared_state* result;  // null: the result is dropped
  actor_system* system;

  // The queued task. Call it once: from then on no taker can give the result up.
  static spawned take(queued_task& from) noexcept;
  // The sleeping task. Caller: the holder of the clock's lock, or the taker of the task's timer.
  void keep_in(tasks::suspension& sleep) const noexcept;
  static spawned kept_in(const tasks::suspension& sleep, tasks::coroutine& root,
                         actor_system& actors) noexcept;

  TROUPE_INLINE spawned_task& make_object(cell& actor) const noexcept {
    actor.flags |= cell::constructed;
    return *::new (actor.object()) spawned_task(&actor, act, *root, result);
  }
  // The task's actor, which no other thread can see. Does not count it. Throws std::bad_alloc. For
  // a runtime that is not observed.
  TROUPE_INLINE spawned_task& make_actor(memory::slot_space::magazines* mine) const {
    void* const slot = system->slots.allocate(spawned_type.slot_bytes, mine);
    const auto offset = static_cast<std::uint8_t>(spawned_type.offset / 8);
    return make_object(*::new (slot) cell(spawned_type, 0, offset));
  }
  // The same for any runtime.
  spawned_task& make_actor_again() const {
    if (system->counts == nullptr) return make_actor(own_magazines(*system));
    const std::size_t offset = spawned_type.offset_behind(last_bytes);
    void* const slot =
        system->slots.allocate(spawned_type.slot_bytes_behind(last_bytes), own_magazines(*system));
    cell& actor = *::new (slot) cell(spawned_type, 0, static_cast<std::uint8_t>(offset / 8));
    begin_last(actor);
    set_last(actor, act);
    return make_object(actor);
  }
  // Ends it without an actor: its frames are destroyed unfinished. `refused_by` is null when memory
  // is out, which then is its result.
  TROUPE_NOINLINE void discard(actor_system* refused_by) const noexcept {
    spawned_task not_begun(nullptr, act, *root, result);
    act(&not_begun, refused_by, message_act::discard);
  }
};

}  // namespace

// Queued.

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

bool give_up_result(queued_task& task, tasks::shared_state& result) noexcept {
  return queued_task::result_word(task.result).give_up(result);
}

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(queued_task, result) == offsetof(activation, oldest));
#pragma GCC diagnostic pop

extern const sched::runnable_vtable queued_type, queued_from_outside_type;

TROUPE_INLINE spawned spawned::take(queued_task& from) noexcept {
  queued_task::result_word result(from.result);
  return {from.act, from.root,
          from.type == &queued_from_outside_type ? result.take() : result.peek(), from.system};
}

// There is no memory for the task's actor: std::bad_alloc becomes the task's result, or a failure
// when no taker is left.
TROUPE_NOINLINE void end_not_begun(const spawned& start) noexcept {
  actor_system& system = *start.system;
  tasks::count(system, tasks::counted::ended);
  if (start.result == nullptr || start.result->left())
    system.report(nullptr, start.act, std::make_exception_ptr(std::bad_alloc()));
  start.discard(nullptr);
}

// While a stop discards, a new task becomes a dead letter without an actor. If it went to the pool,
// the stop could not finish for as long as other threads spawn.
TROUPE_NOINLINE void turn_away(actor_system& system, const spawned& start) noexcept {
  const bool open = system.enter_gate();
  system.count_dead_letter();
  start.discard(&system);
  system.observe_dead_letter(
      {spawned_type.name, start.act(nullptr, nullptr, message_act::describe), 0, {}}, open);
  system.leave();
}

// All that the block held has been read: from now on it is the activation of the actor `actor`, or
// of none when that is null. No other thread can see that actor yet.
TROUPE_INLINE activation& become_activation(sched::runnable& item, cell* actor) noexcept {
  // order: none  keeps the compiler from writing before the reads: the types differ
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto& active = static_cast<activation&>(item);
  begin_activation(active, actor);
  // order: relaxed  how a ref travels publishes it
  if (actor != nullptr) actor->word.store(mailbox::tagged(active), std::memory_order_relaxed);
  return active;
}

// Makes the task an actor with its start as the first message. Null when memory was out: then the
// task has ended.
activation* become_actor(sched::runnable& item, const spawned& start) noexcept try {
  spawned_task& object = start.make_actor(own_magazines(*start.system));
  activation& active = become_activation(item, static_cast<cell*>(object.own_call.actor));
  active.type = start.system->turns;
  active.append(object);
  return &active;
} catch (const std::bad_alloc&) {
  end_not_begun(start);
  become_activation(item, nullptr);
  return nullptr;
}

// The result has been taken from the item.
TROUPE_NOINLINE sched::after_turn run_as_actor(queued_task& item, tasks::shared_state* result) {
  activation* const active = become_actor(item, {item.act, item.root, result, item.system});
  return active == nullptr ? sched::after_turn::gone : active->type->run(*active);
}

// The task remains an actor: other threads know it, or it waits.
TROUPE_NOINLINE sched::after_turn go_on_as_actor(tasks::running_state& state, activation& active,
                                                 tasks::async_call& call) noexcept {
  cell& actor = *active.actor;
  active.type = actor_system::of(actor).turns;
  if (call.done) {
    end_spawned(actor);
  } else {
    auto& object = *static_cast<spawned_task*>(actor.object());
    // The task outlives its first turn, and no taker is left: frees the result, and hands the root
    // to the object.
    if (object.result != nullptr && object.result->left())
      object.act(&object, nullptr, message_act::detach);
    add_ref(actor);
    count_suspended(1);
    active.suspend(call);
    if (is_suspended(state, active)) {
      state.own.add(tasks::counted::messages, 1);
      return leave_turn(state, sched::after_turn::waits);
    }
  }
  return run_on(state, active, 1, true);
}

sched::after_turn run(sched::runnable& item) {
  auto& queued = static_cast<queued_task&>(item);
  actor_system& system = *queued.system;
  tasks::running_state& state = tasks::running_here();
  // order: relaxed (both)  as in takes_fast_path (turn.cpp)
  if (system.slow_path_flags.load(std::memory_order_relaxed) != 0 ||
      state.runtime.load(std::memory_order_relaxed) != &system) [[unlikely]] {
    return run_as_actor(queued, spawned::take(queued).result);
  }
  const spawned start = spawned::take(queued);
  // The thread stays the same during this turn, and with it its magazines.
  memory::slot_space::magazines* const mine = own_magazines(system);
  spawned_task* task = nullptr;
  try {
    task = &start.make_actor(mine);
  } catch (const std::bad_alloc&) {
    return run_as_actor(queued, start.result);
  }
  spawned_task& object = *task;
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
  state.own.add(tasks::counted::messages, 1);
  state.own.add(tasks::counted::ended, 1);
  system.slots.free(&actor, mine);
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
  activation* const active = become_actor(item, spawned::take(static_cast<queued_task&>(item)));
  active == nullptr ? dispose(item) : turn_type.discard(*active);
}

const sched::runnable_vtable queued_type{&run, &deactivate, &pending, &dispose, &discard};
// For tasks that a thread outside of the pool spawned. Such a thread may spawn many before the
// first of them begins: the state is therefore freed at once when the taker leaves.
const sched::runnable_vtable queued_from_outside_type{&run, &deactivate, &pending, &dispose,
                                                      &discard};
bool is_queued(const sched::runnable& item) noexcept {
  return item.type == &queued_type || item.type == &queued_from_outside_type;
}

// The end has begun, and the observer of dead letters may be gone: this letter is not observed.
void refuse(sched::runnable& item) noexcept {
  activation* const active =
      is_queued(item) ? become_actor(item, spawned::take(static_cast<queued_task&>(item)))
                      : &static_cast<activation&>(item);
  if (active == nullptr) return dispose(item);
  cell& actor = *active->actor;
  message& mail = *activation::as_message(active->take_all().oldest);
  // order: relaxed  no other thread can see it yet
  actor.word.store(mailbox::inactive, std::memory_order_relaxed);
  free_activation(*active);
  make_dead_letter(actor_system::of(actor), actor, mail, false);
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
TROUPE_NOINLINE void start_slow(const placement& where, const spawned& start) {
  cell& actor = make_cell(where, spawned_type);
  activation* active = nullptr;
  try {
    active = &make_activation(actor);
  } catch (...) {
    tasks::count(where.system, tasks::counted::ended);
    if (thread_counts* const counts = where.system.counts_here())
      counts->of_class(spawned_type).ended.add(1);
    free_cell(actor);
    throw;
  }
  active->append(start.make_object(actor));
  // order: relaxed  no other thread can see it yet; how a ref travels publishes it
  actor.word.store(mailbox::tagged(*active), std::memory_order_relaxed);
  submit(where.system, *active);
}

// Throws std::bad_alloc.
TROUPE_INLINE queued_task& make_queued(const sched::runnable_vtable& type, message::handler act,
                                       tasks::coroutine& root, tasks::shared_state& result,
                                       actor_system& system) {
  auto& item = make_runnable<queued_task>(type);
  item.act = act;
  item.root = &root;
  queued_task::result_word(item.result).set(result);
  item.system = &system;
  return item;
}

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

namespace {

// Off the fast path of start_spawned.
TROUPE_NOINLINE queued_task* start_unusual(const placement& where, message::handler act,
                                           tasks::coroutine& root, tasks::shared_state& result) {
  actor_system& system = where.system;
  if (system.is_simulated || system.needs_run(where.executor)) result.main_lane = system.main_lane;
  if (const void* const object = root.object_before_start()) {
    if (cell* const running = current_cell()) refuse_part_of(*running, object);
  }
  // order: relaxed (both)  as in start_spawned
  if (where.has_options || system.slow_path_flags.load(std::memory_order_relaxed) != 0 ||
      system.closing.load(std::memory_order_relaxed)) {
    const spawned start{act, &root, &result, &system};
    system.discarding() ? turn_away(system, start) : start_slow(where, start);
    return nullptr;
  }
  const bool outside = own_worker(system) == nullptr;
  auto& item =
      make_queued(outside ? queued_from_outside_type : queued_type, act, root, result, system);
  tasks::count(system, tasks::counted::spawned);
  submit(system, item);
  return outside ? &item : nullptr;
}

}  // namespace

queued_task* start_spawned(const placement& where, message::handler act, tasks::coroutine& root,
                           tasks::shared_state& result) {
  actor_system& system = where.system;
  sched::worker* const self = own_worker(system);
  // order: relaxed (both)  as takes_fast_path (turn.cpp); the ending thread's own, or a handler's
  // that may see it late
  const unsigned unusual = unsigned{system.slow_path_flags.load(std::memory_order_relaxed)} |
                           unsigned{system.closing.load(std::memory_order_relaxed)} |
                           unsigned{where.has_options} | unsigned{system.is_simulated} |
                           unsigned{system.pool_needs_run};
  if (unusual != 0 || self == nullptr || root.object_before_start() != nullptr) [[unlikely]]
    return start_unusual(where, act, root, result);
  auto& item = make_queued(queued_type, act, root, result, system);
  tasks::count(system, tasks::counted::spawned);
  if (!self->submit(item)) [[unlikely]]
    submit_patiently(system, item);
  return nullptr;
}

// Asleep.

namespace {

using tasks::coroutine;
using tasks::sleep_suspension;

// The last of the coroutines from the sleeping one upwards, each of which awaits the one before:
// the root. Null when the chain is longer than `deepest`, or when it is not made of plain awaits:
// such a task keeps its actor.
coroutine* root_above(tasks::suspension& sleep) noexcept {
  constexpr int deepest = 16;
  coroutine* at = sleep.waiter;
  for (int depth = 0; coroutine* const above = at->waiting_parent(); ++depth) {
    if (depth == deepest) return nullptr;
    at = above;
  }
  return at;
}

void move_to(tasks::async_call& call, tasks::suspension& sleep, coroutine& root) noexcept {
  for (coroutine* at = sleep.waiter; at != &root; at = at->waiting_parent()) at->call = &call;
  root.call = &call;
}

// The wait's link keeps `act`, since the wait is no mail yet, and `parent` of the root keeps the
// result, since the root has no parent.
void spawned::keep_in(tasks::suspension& sleep) const noexcept {
  // order: relaxed  the clock's lock publishes it
  sleep.next.store(reinterpret_cast<std::uintptr_t>(act), std::memory_order_relaxed);
  root->parent = reinterpret_cast<std::uintptr_t>(result) | coroutine::result;
}
spawned spawned::kept_in(const tasks::suspension& sleep, coroutine& root,
                         actor_system& actors) noexcept {
  // order: relaxed  as above
  return {reinterpret_cast<message::handler>(sleep.next.load(std::memory_order_relaxed)), &root,
          reinterpret_cast<tasks::shared_state*>(root.parent & ~coroutine::result), &actors};
}

// Whether only the actor itself and its suspended call refer to it, and it has nothing to do.
bool is_unknown(activation& active) noexcept {
  cell& actor = *active.actor;
  constexpr unsigned usual = cell::quick | cell::slow;
  return (actor.flags & ~usual) == cell::constructed && actor.executor == 0 &&
         actor.refs.is_only_own_and_call() && active.marks == activation::waits && active.empty() &&
         !mailbox(actor.word).has_mail(active);
}

// Makes the sleeping task an actor again, suspended, to which there is no other ref. Throws
// std::bad_alloc; then nothing was done.
activation& leave_sleep(actor_system& system, tasks::suspension& sleep) {
  coroutine& root = *root_above(sleep);
  spawned_task& object = spawned::kept_in(sleep, root, system).make_actor_again();
  cell& actor = *static_cast<cell*>(object.own_call.actor);
  activation* active = nullptr;
  try {
    active = &make_activation(actor);
  } catch (...) {
    system.slots.free(&actor, own_magazines(system));
    throw;
  }
  // order: relaxed  a statistic
  system.sleepers.fetch_sub(1, std::memory_order_relaxed);
  root.parent = 0;
  object.own_call.at = &system.host;
  move_to(object.own_call, sleep, root);
  sleep.enlist(*sleep.waiter);
  add_ref(actor);  // for the async call
  active->suspend(object.own_call);
  return *active;
}

sleep_suspension& as_sleep(tasks::suspension& wait) noexcept {
  return static_cast<sleep_suspension&>(wait);
}

// The timer has expired. When memory is out the task sleeps 1 ms longer; at the runtime's end it
// sleeps until end_asleep takes it.
void wake(void* target, tasks::suspension& over) noexcept {
  constexpr std::int64_t while_memory_is_out_ns = 1'000'000;
  auto& system = *static_cast<actor_system*>(target);
  tasks::timers& clock = *system.host.clock;
  const actor_system::gate_guard gate(system);
  if (!gate.let_in()) return clock.arm(as_sleep(over), tasks::timers::last_ns);
  try {
    activation& active = leave_sleep(system, over);
    active.append_urgent(over);
    // order: relaxed  no other thread can see it yet; the queue publishes it
    active.actor->word.store(mailbox::tagged(active), std::memory_order_relaxed);
    system.executor_of(*active.actor).submit(active);
  } catch (const std::bad_alloc&) {
    clock.arm(as_sleep(over), clock.now_ns() + while_memory_is_out_ns);
  }
}

void end(actor_system& system, tasks::suspension& sleep) noexcept try {
  activation& active = leave_sleep(system, sleep);
  cell& actor = *active.actor;
  // order: relaxed  no thread sends any longer
  actor.word.store(mailbox::tagged(active) | mailbox::parked_tag, std::memory_order_relaxed);
  sleep.ended = tasks::outcome::cancelled;
  sleep.end();
  destroy_actor(actor);
  // Otherwise the slot is freed with the system.
  if (!actor.refs.revive()) system.slots.free(&actor, own_magazines(system));
} catch (const std::bad_alloc&) {
  // Memory is out: its frames are destroyed unfinished.
  spawned::kept_in(sleep, *root_above(sleep), system).discard(&system);
}

}  // namespace

void make_host_asleep(actor_system& system) noexcept {
  system.host_asleep.go_on = &wake;
  system.asleep.at = &system.host_asleep;
  system.asleep.actor = &system;
}

bool fall_asleep(activation& active) noexcept {
  cell& actor = *active.actor;
  tasks::async_call& call = *active.suspended;
  sleep_suspension* const sleep =
      call.awaited == nullptr ? nullptr : sleep_suspension::of(*call.awaited);
  actor_system& system = actor_system::of(actor);
  // a trace follows the actor; a simulation makes the same choices with it and without it
  const bool is_followed = observe::tracing() && !system.is_simulated;
  if (sleep == nullptr || call.cancelled || !is_unknown(active) || is_followed) return false;
  auto& object = *static_cast<spawned_task*>(actor.object());
  coroutine& root = object.root;
  if (root_above(*sleep) != &root) return false;
  const bool sleeps = system.host.clock->while_armed(*sleep, [&] {
    spawned{object.act, &root, object.result, &system}.keep_in(*sleep);
    move_to(system.asleep, *sleep, root);
    // order: relaxed  a statistic
    system.sleepers.fetch_add(1, std::memory_order_relaxed);
  });
  if (!sleeps) return false;
  free_activation(active);
  actor.type->destroy(&object);
  system.slots.free(&actor, own_magazines(system));
  return true;
}

std::size_t look_at_asleep(
    actor_system& system,
    const std::function<void(tasks::suspension& sleep, message::handler act)>& look,
    const std::function<bool()>& before) {
  // order: relaxed  a snapshot
  const std::size_t count = system.sleepers.load(std::memory_order_relaxed);
  if (count == 0) return 0;
  system.host.clock->for_each(
      [&](tasks::timer& entry) {
        sleep_suspension* const sleep = sleep_suspension::of(entry);
        if (sleep != nullptr && sleep->waiter->call == &system.asleep)
          look(*sleep, spawned::kept_in(*sleep, *root_above(*sleep), system).act);
      },
      before);
  return count;
}

void end_asleep(actor_system& system) noexcept {
  tasks::timer_list all = system.host.clock->take_back_all([&](tasks::timer& entry) {
    const sleep_suspension* const sleep = sleep_suspension::of(entry);
    return sleep != nullptr && sleep->waiter->call == &system.asleep;
  });
  while (tasks::timer* const entry = all.pop_front()) end(system, *sleep_suspension::of(*entry));
}

}  // namespace troupe::actor
