// Supervision: the effects of an actor's failure on it and on its parent, and its watchers.
#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "actor/lifetime/ending.hpp"
#include "actor/system/actor_system.hpp"
#include "actor/turn/features.hpp"
#include "actor/turn/turn.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::actor {
namespace {

struct watch_message final : message {
  explicit watch_message(promise<ended> receiver)
      : message(&act_on), watcher(std::move(receiver)) {}
  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return "watch";
    message_guard<watch_message> guard{static_cast<watch_message*>(base)};
    if (act == message_act::discard) guard.self->watcher.set_value(ended{});
    if (act != message_act::handle) return nullptr;
    cell& actor = *current_cell();
    if ((actor.flags & cell::stopped) != 0) {
      guard.self->watcher.set_value(ended(ended::why::before));
    } else {
      actor_system::of(actor).supervised.add_watch(actor, std::move(guard.self->watcher));
    }
    return nullptr;
  }
  promise<ended> watcher;
};

// Notifies the parent that it has a child.
struct join_message final : message {
  explicit join_message(cell& joined) noexcept : message(&act_on), child(joined) { add_ref(child); }
  ~join_message() { drop_ref(child); }
  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return "spawn";
    message_guard<join_message> guard{static_cast<join_message*>(base)};
    if (act != message_act::handle) return nullptr;
    join(*current_cell(), guard.self->child);
    return nullptr;
  }
  // In the parent's turn.
  static void join(cell& parent, cell& joined) noexcept {
    if ((parent.flags & cell::stopped) != 0) return send_stop_now(joined);
    try {
      actor_system::of(parent).supervised.add_child(parent, joined);
    } catch (const std::bad_alloc&) {
      // The child continues, but is not stopped with its parent.
      actor_system::of(parent).report(&parent, &act_on, std::current_exception());
    }
  }
  cell& child;
};

// A child's failure, which becomes its parent's.
struct escalated_message final : message {
  explicit escalated_message(kept_failure failure) : message(&act_on), failed(std::move(failure)) {}
  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return "escalate";
    message_guard<escalated_message> guard{static_cast<escalated_message*>(base)};
    if (act == message_act::handle)
      apply_error_policy(*current_cell(), std::move(guard.self->failed));
    return nullptr;
  }
  kept_failure failed;
};

const char* describe_constructor(message*, void*, message_act) {
  return sched::described_as_constructor;
}

void restart(cell& actor, supervision_state& own, kept_failure failed) noexcept;

void end_failed(cell& actor, kept_failure failed) noexcept {
  end_object(actor,
             ended(ended::why::failed, std::move(failed.exception), std::move(failed.memory)));
}

// Returns the exception of the constructor; null when it succeeded.
kept_failure construct_anew(cell& actor, supervision_state& own) noexcept {
  std::exception_ptr failure;
  try {
    own.make(actor.object());
    actor.flags |= cell::constructed;
    if (actor_heap* heap = heap_of(actor)) heap->begin();
    return {};
  } catch (...) {
    failure = std::current_exception();
  }
  kept_failure failed = report_own(actor, &describe_constructor, std::move(failure));
  if (actor_heap* heap = heap_of(actor)) heap->end();
  return failed;
}

// Whether the actor's object will not be constructed anew.
bool is_over(const cell& actor) noexcept {
  const actor_system& system = actor_system::of(actor);
  // order: relaxed  set before the last threads ended
  return (actor.flags & (cell::stopped | cell::ends_soon)) != 0 || system.discarding() ||
         system.closing.load(std::memory_order_relaxed);
}

// The time until the reconstruction, as a suspended call: messages queue behind it. A stop ends it
// early, since messages that were sent before the stop must be handled.
struct reconstruction final : message {
  explicit reconstruction(std::chrono::nanoseconds backoff)
      : message(&act_on), waiting(wait(backoff)), own_call(*this) {}
  static task<> wait(std::chrono::nanoseconds backoff) { co_await sleep_for(backoff); }
  static const char* act_on(message* base, void*, message_act act) {
    if (act == message_act::describe) return "restart";
    auto* self = static_cast<reconstruction*>(base);
    std::destroy_at(self);
    memory::deallocate(self, sizeof(reconstruction));
    cell& actor = *current_cell();
    if (act != message_act::complete) return nullptr;
    if (is_over(actor)) {
      // the actor has no object, and a later message must not be taken for its constructor
      end_object(actor);
      return nullptr;
    }
    supervision_state& own = *optional_state::of(actor).supervision;
    restart(actor, own, construct_anew(actor, own));
    return nullptr;
  }
  task<> waiting;
  tasks::async_call own_call;
};

std::chrono::nanoseconds backoff_of(const supervision_state& own) noexcept {
  const auto& limit = own.restart;
  const std::chrono::nanoseconds longest = std::max(limit.backoff, limit.backoff_max);
  std::chrono::nanoseconds wait = limit.backoff;
  for (unsigned i = 1; i < own.failures && wait < longest; ++i)
    wait = wait > longest / 2 ? longest : wait * 2;
  return wait;
}

void restart(cell& actor, supervision_state& own, kept_failure failed) noexcept {
  while (failed.exception != nullptr) {
    const std::int64_t now = tasks::now_ns(*actor_system::of(actor).host.clock);
    if (own.failures == 0 || now - own.failed_since_ns > own.restart.per.count()) {
      own.failed_since_ns = now;
      own.failures = 0;
    }
    const bool stops = (actor.flags & cell::cancels) != 0,
               constructed = (actor.flags & cell::constructed) != 0;
    if (++own.failures > own.restart.times || (stops && !constructed))
      return end_failed(actor, std::move(failed));
    if (constructed) {
      actor.flags &= static_cast<std::uint8_t>(~cell::constructed);
      destroy_object(actor);
    }
    const std::chrono::nanoseconds backoff = stops ? std::chrono::nanoseconds(0) : backoff_of(own);
    if (backoff.count() != 0) {
      try {
        auto& later = *make_message<reconstruction>(backoff);
        return begin(later.own_call, tasks::task_access::root(later.waiting));
      } catch (const std::bad_alloc&) {
        return end_failed(actor, std::move(failed));
      }
    }
    // Failures further apart than the period do not add up: this loop may try without end.
    if (is_over(actor)) return end_failed(actor, std::move(failed));
    failed = construct_anew(actor, own);
  }
}

}  // namespace

// When a child's failure comes while the turn is suspended, the turn is cancelled first.
void apply_error_policy(cell& actor, kept_failure failed) noexcept {
  supervision_state* const supervision = supervision_of(actor);
  if (supervision == nullptr || (actor.flags & cell::stopped) != 0) return;
  supervision_state& own = *supervision;
  if (own.on_error == error_policy::resume) return;
  // it is being constructed anew already
  if (own.on_error == error_policy::restart && (actor.flags & cell::constructed) == 0) return;
  actor_system& system = actor_system::of(actor);
  // Escalate once: the exceptions of the actor's other calls, when they are cancelled for this
  // failure, are no failure of the parent's.
  if (own.on_error == error_policy::escalate && !std::exchange(own.escalated, true)) {
    if (own.parent == nullptr) {
      system.owner.escalated();
    } else {
      try {
        deliver_urgent(*own.parent, *make_message<escalated_message>(failed));
      } catch (const std::bad_alloc&) {
        // The parent gets no message; the failure is still reported.
      }
    }
  }
  // An outer call of this function is at it, and ends the actor or constructs it anew.
  if (own.applies_error_policy || (actor.flags & cell::ends_soon) != 0) return;
  activation& active = active_here();
  const std::uint8_t cancelled_before = actor.flags & cell::cancels;
  own.applies_error_policy = true;
  cancel_turns(active);
  own.applies_error_policy = false;
  if ((actor.flags & cell::stopped) != 0) return;
  if (suspends(active)) {
    // do not wait for those calls here: end_with_call does the rest
    actor.flags |= cell::ends_soon;
    own.failure_after_calls = std::move(failed);
    own.cancels_then = cancelled_before;
    // order: relaxed  the thread's own
    tasks::running_here().unusual.store(true, std::memory_order_relaxed);
  } else if (own.on_error != error_policy::restart) {
    end_failed(actor, std::move(failed));
  } else {
    actor.flags = static_cast<std::uint8_t>((actor.flags & ~cell::cancels) | cancelled_before);
    restart(actor, own, std::move(failed));
  }
}

void end_with_call(cell& actor) noexcept {
  supervision_state* const own = supervision_of(actor);
  kept_failure failed =
      own == nullptr ? kept_failure() : std::exchange(own->failure_after_calls, {});
  if (failed.exception == nullptr) return end_object(actor);
  if (own->on_error != error_policy::restart) return end_failed(actor, std::move(failed));
  actor.flags = static_cast<std::uint8_t>((actor.flags & ~(cell::ends_soon | cell::cancels)) |
                                          own->cancels_then);
  restart(actor, *own, std::move(failed));
}

void set_factory(cell& actor, unique_function<void(void*)> make) {
  optional_state::of(actor).supervision->make = std::move(make);
}

// A handler may make very many children of its own actor: each such message would walk along those
// before it.
void join_parent(cell& parent, cell& child) {
  const auto* const active = static_cast<activation*>(tasks::running_here().active);
  if (current_cell() == &parent && active != nullptr && active->actor == &parent)
    return join_message::join(parent, child);
  deliver_urgent(parent, *make_message<join_message>(child));
}

void refuse_no_object() {
  throw usage_error("troupe: activate: there is no object; give a std::unique_ptr that has one");
}

void refuse_restart(const char* why) {
  throw option_error(std::string("troupe: spawn_options::on_error = restart: ") + why);
}

future<ended> watch(cell& actor) {
  promise<ended> watcher;
  future<ended> later = watcher.get_future();
  const actor_system& system = actor_system::of(actor);
  if (system.is_simulated || system.needs_run(actor.lives_on()))
    tasks::future_access::state(later).main_lane = system.main_lane;
  deliver_urgent(actor, *make_message<watch_message>(std::move(watcher)));
  return later;
}

}  // namespace troupe::actor
