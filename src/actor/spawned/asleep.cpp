#include "actor/spawned/asleep.hpp"

#include <new>

#include "actor/actor_system.hpp"
#include "actor/turn/turn.hpp"
#include "task/timers.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {
namespace {

using tasks::coroutine;
using tasks::sleep_suspension;

// The last of the coroutines from the sleeping one upwards, each of which awaits the one before:
// the root. Null when the chain is longer than `deepest`, or when it is not made of plain awaits:
// such a task keeps its actor.
coroutine* root_above(tasks::suspension& sleep) noexcept {
  constexpr int deepest = 16;
  coroutine* at = sleep.who;
  for (int depth = 0; coroutine* const above = at->waiting_parent(); ++depth) {
    if (depth == deepest) return nullptr;
    at = above;
  }
  return at;
}

void move_to(tasks::async_call& call, tasks::suspension& sleep, coroutine& root) noexcept {
  for (coroutine* at = sleep.who; at != &root; at = at->waiting_parent()) at->in = &call;
  root.in = &call;
}

// What is kept of a sleeping task: in its wait's link, since the wait is no mail yet, and in its
// root's `parent`, since the root has no parent.
struct kept {
  message::handler act;
  tasks::shared_state* result;
};
void keep(tasks::suspension& sleep, coroutine& root, const kept& what) noexcept {
  // order: relaxed  the clock's lock publishes it
  sleep.next.store(reinterpret_cast<std::uintptr_t>(what.act), std::memory_order_relaxed);
  root.parent = reinterpret_cast<std::uintptr_t>(what.result) | coroutine::result;
}
kept kept_by(const tasks::suspension& sleep, const coroutine& root) noexcept {
  // order: relaxed  as above
  return {reinterpret_cast<message::handler>(sleep.next.load(std::memory_order_relaxed)),
          reinterpret_cast<tasks::shared_state*>(root.parent & ~coroutine::result)};
}

// Whether only the actor itself and its suspended call refer to it, and it has nothing to do.
bool is_unknown(activation& active) noexcept {
  cell& actor = *active.actor;
  constexpr unsigned usual = cell::quick | cell::slow;
  return (actor.flags & ~usual) == cell::constructed && actor.executor == 0 &&
         actor.refs.is_only_own_and_call() && active.marks == activation::waits && active.empty() &&
         !mailbox(actor.word).has_mail(active);
}

// Makes the sleeping task an actor again, suspended, to which nobody else refers. Throws
// std::bad_alloc; then nothing was done.
activation& make_actor(actor_system& system, tasks::suspension& sleep) {
  coroutine& root = *root_above(sleep);
  const kept what = kept_by(sleep, root);
  spawned_task& object = make_spawned(system, what.act, root, what.result);
  cell& made = *static_cast<cell*>(object.own_call.actor);
  activation* active = nullptr;
  try {
    active = &make_activation(made);
  } catch (...) {
    system.slots.free(&made, own_magazines(system));
    throw;
  }
  // order: relaxed  a statistic
  system.sleepers.fetch_sub(1, std::memory_order_relaxed);
  root.parent = 0;
  object.own_call.at = &system.host;
  move_to(object.own_call, sleep, root);
  sleep.enlist(*sleep.who);
  add_ref(made);  // for the async call
  active->suspend(object.own_call);
  return *active;
}

sleep_suspension& as_sleep(tasks::suspension& of) noexcept {
  return static_cast<sleep_suspension&>(of);
}

// The timer has expired. When memory is out the task sleeps 1 ms longer; at the runtime's end it
// sleeps until end_asleep takes it.
void wake(void* of, tasks::suspension& over) noexcept {
  constexpr std::int64_t while_memory_is_out_ns = 1'000'000;
  auto& system = *static_cast<actor_system*>(of);
  tasks::timers& clock = *system.host.clock;
  const actor_system::gate_guard here(system);
  if (!here.let_in()) return clock.arm(as_sleep(over), tasks::timers::last_ns);
  try {
    activation& active = make_actor(system, over);
    active.append_urgent(over);
    // order: relaxed  no other thread knows it yet; the queue publishes it
    active.actor->word.store(mailbox::tagged(active), std::memory_order_relaxed);
    system.executor_of(*active.actor).submit(active);
  } catch (const std::bad_alloc&) {
    clock.arm(as_sleep(over), clock.now_ns() + while_memory_is_out_ns);
  }
}

void end(actor_system& system, tasks::suspension& sleep) noexcept try {
  activation& active = make_actor(system, sleep);
  cell& actor = *active.actor;
  // order: relaxed  no thread sends any longer
  actor.word.store(mailbox::tagged(active) | mailbox::parked_tag, std::memory_order_relaxed);
  sleep.ended = tasks::outcome::cancelled;
  sleep.end();
  system.destroy_actor(actor);
  // Otherwise the slot is freed with the system.
  if (!actor.refs.revive()) system.slots.free(&actor, own_magazines(system));
} catch (const std::bad_alloc&) {
  // Memory is out: its frames are destroyed unfinished.
  coroutine& root = *root_above(sleep);
  const kept what = kept_by(sleep, root);
  spawned_task not_begun(nullptr, what.act, root, what.result);
  what.act(&not_begun, &system, message_act::discard);
}

}  // namespace

void make_host_asleep(actor_system& of) noexcept {
  of.host_asleep.go_on = &wake;
  of.asleep.at = &of.host_asleep;
  of.asleep.actor = &of;
}

bool fall_asleep(activation& active) noexcept {
  cell& actor = *active.actor;
  tasks::async_call& call = *active.suspended;
  sleep_suspension* const sleep =
      call.awaited == nullptr ? nullptr : sleep_suspension::of(*call.awaited);
  if (sleep == nullptr || call.cancelled || !is_unknown(active) || observe::tracing()) return false;
  actor_system& system = actor_system::of(actor);
  auto& object = *static_cast<spawned_task*>(actor.object());
  coroutine& root = object.root;
  if (root_above(*sleep) != &root) return false;
  const bool sleeps = system.host.clock->while_armed(*sleep, [&] {
    keep(*sleep, root, {object.act, object.result});
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
    actor_system& of,
    const std::function<bool(tasks::suspension& sleep, message::handler act)>& look) {
  // order: relaxed  a snapshot
  const std::size_t count = of.sleepers.load(std::memory_order_relaxed);
  if (count == 0) return 0;
  of.host.clock->for_each([&](tasks::timer& one) {
    sleep_suspension* const sleep = sleep_suspension::of(one);
    return sleep == nullptr || sleep->who->in != &of.asleep ||
           look(*sleep, kept_by(*sleep, *root_above(*sleep)).act);
  });
  return count;
}

void end_asleep(actor_system& of) noexcept {
  tasks::timer* next = of.host.clock->take_back_all([&](tasks::timer& one) {
    const sleep_suspension* const sleep = sleep_suspension::of(one);
    return sleep != nullptr && sleep->who->in == &of.asleep;
  });
  while (next != nullptr) {
    sleep_suspension& sleep = *sleep_suspension::of(*next);
    next = next->next;
    end(of, sleep);
  }
}

}  // namespace troupe::actor
