// turn: the work between the moment when a thread takes an active actor and the moment when it
// leaves that actor.
#pragma once

#include <cstdint>

#include "actor/mailbox/activation.hpp"
#include "actor/state/optional_state.hpp"
#include "sched/runnable.hpp"
#include "task/running/actor_functions.hpp"
#include "task/running/running.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

class construction;

// The part of the calling thread's turn that only the actors themselves need. The rest is in
// tasks::running_state.
struct turn_state {
  bool set_aside = false;    // the last message was set aside (guards.cpp), not handled
  bool guard_ready = false;  // the turn's limit came before a guarded message that may be handled
  bool saw_slow_turns = false;  // the turns before `clock_checked_at_ns` were slow on average
  unsigned uncounted = 0;  // messages of the turn that were not handled, or were counted earlier
  construction* building = nullptr;  // the innermost construction
  // the state that the future resolves which an ordinary method may return (call.hpp)
  tasks::shared_state* answers = nullptr;
  // The turn's clock (turn_limit.cpp).
  unsigned looks = 0, looked_after = 0;
  // turns of several messages without a look at the clock, since check_clock last read it
  unsigned unlooked = 0;
  std::int64_t clock_checked_at_ns = 0;
  std::int64_t looked_at_ns = 0, began_ns = 0;
};
extern constinit thread_local turn_state turn_of_thread [[gnu::tls_model("initial-exec")]];
// Not for the body of a coroutine: it may resume on another thread.
TROUPE_INLINE turn_state& turn_here() noexcept { return turn_of_thread; }

// The actor whose turn the calling thread runs; the thread must be in a turn.
TROUPE_INLINE activation& active_here() noexcept {
  return static_cast<activation&>(*tasks::running_here().active);
}

TROUPE_INLINE sched::after_turn leave_turn(tasks::running_state& state,
                                           sched::after_turn after) noexcept {
  // order: relaxed  for running_handlers, a snapshot
  state.actor.store(nullptr, std::memory_order_relaxed);
  return after;
}

// Whether the turn is suspended, and has nothing to do until that wait ends.
TROUPE_INLINE bool is_suspended(const tasks::running_state& state, activation& active) noexcept {
  return active.marks == activation::waits && state.yielded == nullptr &&
         !mailbox(active.actor->word).has_mail(active);
}

// The turn of an actor off the fast path, or the rest of a turn that left the fast path or is long.
// `handled` is how many messages the turn has handled so far. `batch_done`: the turn has handled
// the whole list that was there at its start.
sched::after_turn run_on(tasks::running_state& state, activation& active, unsigned handled,
                         bool batch_done) noexcept;

// A turn looks at the clock before it handles this many messages.
inline constexpr unsigned turns_are_short_below = cell::quick + 1;

// For a new actor that no other thread can see yet. On a worker of its pool the actor starts
// active, with its deactivation deferred there: its creator is likely to send it something soon.
void start_at_home(cell& actor);

// Whether the message is the runtime's own: an unreferenced notice, a stop, a request to consume
// the actor, or the call of drop_by_message.
bool is_ours(const message& mail) noexcept;

// Whether the message counts towards the limit of a bounded mailbox.
inline bool is_counted(const message& mail) noexcept {
  return !is_ours(mail) && !sched::is_owed(mail.act(nullptr, nullptr, message_act::describe));
}

// Notifies the actor that its last ref was dropped. Any thread.
void notify_unreferenced(cell& to) noexcept;

// Drops the only ref to an actor that is active on the calling worker, and tells the actor. False
// when the actor is elsewhere or has other refs: then nothing was done.
bool drop_at_home(cell& actor) noexcept;

// In a turn: drops a ref to the actor; the fastest way when the turn is that actor's own.
void drop_in_turn(cell& actor) noexcept;

struct turn_limit;
// Handles a message of an actor that is off the fast path (turn_limit.hpp: unusual).
void handle_unusual(tasks::running_state& state, actor_system& system, cell& actor,
                    message& mail) noexcept;
// After a message was handled: handles the guarded messages whose predicates hold by now, oldest
// first (guards.cpp).
void look_at_guards(tasks::running_state& state, actor_system& system, activation& active,
                    turn_limit& limit) noexcept;
// The actor's guarded messages become dead letters.
void make_dead_letters_of_guarded(cell& actor) noexcept;

// In the actor's turn: the actor ends. Messages sent to it from now on become dead letters.
void end_object(cell& actor, ended how = ended(ended::why::stopped)) noexcept;
void end_when_over(activation& active) noexcept;
// The actor has ended, or the runtime has: the actor does not keep its parent any longer.
void leave_parent(cell& actor) noexcept;
// Whether some of the actor's calls are suspended.
inline bool suspends(const activation& active) noexcept {
  return active.suspended != nullptr || (has_optional_state(*active.actor) &&
                                         !optional_state::of(*active.actor).async_calls.empty());
}
const char* stop_now_by_message(message* mail, void* object, message_act act);
// Under drop_old: makes the actor drop surplus mail although its turn is suspended.
const char* drop_by_message(message* mail, void* object, message_act act);
// Under drop_old: turns the oldest messages above the limit into dead letters, if they wait behind
// a suspended turn.
void drop_old(actor_system& system, activation& active) noexcept;
void deliver_urgent(cell& to, message& mail);
// In the actor's turn: cancels its suspended calls and runs each as far as it can. Calls that would
// suspend later are cancelled as well.
void cancel_turns(activation& active) noexcept;

// Adds to the count of suspended turns. A thread's own count is the turns that were suspended here
// less those that ended here: it may be negative.
void count_suspended(int change) noexcept;
// In the actor's turn: the call for which the actor was suspended is done.
void end_resumed(tasks::async_call& done) noexcept;
// At the runtime's end: cancels the suspended turn and ends it here and now.
void end_call(activation& active) noexcept;
// The same for the suspended calls of a reentrant actor.
void end_reentrant(cell& actor) noexcept;

// A message has left the actor's mailbox.
inline void leave_mailbox(cell& actor) noexcept {
  if (mail_bound* bound = bound_of(actor)) [[unlikely]]
    bound->leave();
}

// The functions of actors that the task layer calls.
extern const tasks::actor_functions functions_of_actors;

// Sets the system's three `host`s: the services of actors that async calls need (async_calls.cpp).
void make_call_hosts(actor_system& system, tasks::timers* clock, sched::io_driver_slot* io,
                     std::uint8_t ready_units,
                     std::uint32_t (*choose_case)(void*, std::uint32_t) noexcept) noexcept;

}  // namespace troupe::actor
