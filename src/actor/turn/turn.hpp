// turn: one visit of a thread to an active actor.
#pragma once

#include <atomic>

#include "actor/lifetime/extras.hpp"
#include "actor/mailbox/activation.hpp"
#include "actor/turn/counts.hpp"
#include "sched/runnable.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::actor {

class construction;

// What the calling thread is in the middle of. Others read it for running.hpp, as a snapshot.
struct thread_turn_state {
  std::atomic<cell*> actor{nullptr};  // null outside of turns
  std::atomic<const actor_system*> system{nullptr};
  std::atomic<message::handler> method{nullptr};
  std::atomic<bool> in_procedure{false};   // a posted one
  std::atomic<const char*> what{nullptr};  // what that runs, where its kind does not say it all
  bool set_aside = false;                  // the message that was handled last
  unsigned uncounted = 0;    // messages of the turn that were not handled, or counted before
  bool guard_ready = false;  // the turn's limit came before a guarded message
  activation* active = nullptr;
  construction* building = nullptr;           // the innermost
  tasks::async_call* running_call = nullptr;  // whose coroutine runs
  // what an ordinary method will return the future of (call.hpp)
  tasks::shared_state* answers = nullptr;
  message* yielded = nullptr;  // waits that go on after this turn
  // The turn's clock (turn.cpp).
  unsigned turn_looks = 0, looked_after = 0;
  // turns of several messages without a look, since the last check of the clock
  unsigned unlooked = 0;
  bool saw_slow_turns = false;  // some of them were slow
  std::int64_t clock_checked_at_ns = 0;
  std::int64_t looked_at_ns = 0, turn_began_ns = 0;
  // this actor's mail needs a second look (turn.cpp); a stop sets it, too
  std::atomic<bool> unusual{false};
  counts own;           // of `home`
  unsigned worker = 0;  // which one of its pool the thread is, from 1 on; 0: none
  bool listed = false;  // in the list of all threads that run turns
  thread_turn_state* next_listed = nullptr;
};
extern constinit thread_local thread_turn_state turn_state_of_thread
    [[gnu::tls_model("initial-exec")]];
// Not for the body of a coroutine, which may go on on another thread.
TROUPE_INLINE thread_turn_state& current_turn() noexcept { return turn_state_of_thread; }

TROUPE_INLINE sched::after_turn leave_turn(thread_turn_state& state,
                                           sched::after_turn after) noexcept {
  // order: relaxed  for running_handlers, a snapshot
  state.actor.store(nullptr, std::memory_order_relaxed);
  return after;
}

// Nothing is left to do but to wait for the end of what the turn is suspended for, if it is.
TROUPE_INLINE bool is_suspended(const thread_turn_state& state, activation& active) noexcept {
  return active.marks == activation::waits && state.yielded == nullptr &&
         !mailbox(active.actor->word).has_mail(active);
}

// The turn of an actor that is unlike most, or the rest of one that has become so, or is long.
// `handled` messages were by then; `batch_done`: the list that was there at its start is.
sched::after_turn run_on(thread_turn_state& state, activation& active, unsigned handled,
                         bool batch_done) noexcept;

// A turn handles that many messages at most before it looks at the clock.
inline constexpr unsigned turns_are_short_below = cell::quick + 1;

// A new actor that nobody else knows yet: on a worker of its pool it starts as active, and defers
// its deactivation there, since whoever made it is likely to send it something.
void start_at_home(cell& made);

// Whether the runtime itself sent it: an unreferenced notice or a stop.
bool is_ours(const message& mail) noexcept;

// Whether it has a part in the limit of a bounded mailbox.
inline bool is_counted(const message& mail) noexcept {
  return !is_ours(mail) && !sched::is_owed(mail.act(nullptr, nullptr, message_act::describe));
}

// Tells the actor that its last ref has gone.
void notify_unreferenced(cell& to) noexcept;

// Drops the only ref to an actor that is active on the calling worker, and tells it so. False when
// it is not so: then nothing was done.
bool drop_at_home(cell& to) noexcept;

// In the actor's turn: drops a ref to it.
void drop_in_turn(cell& of) noexcept;

struct turn_limit;
// Handles a message of an actor whose mail needs a second look (turn_limit.hpp).
void handle_unusual(thread_turn_state& state, actor_system& system, cell& actor,
                    message& mail) noexcept;
// After a message was handled: guarded ones that hold by now, oldest first (guards.cpp).
void look_at_guards(thread_turn_state& state, actor_system& system, activation& active,
                    turn_limit& limit) noexcept;
// Those that wait become dead letters.
void make_dead_letters_of_guarded(cell& actor) noexcept;

// In its turn: the actor ends. What is sent to it from now on is dead letters.
void end_object(cell& actor, ended how = ended(ended::why::stopped)) noexcept;
void end_when_over(activation& active) noexcept;
// It has ended, or the runtime has: it does not keep its parent any more.
void leave_parent(cell& actor) noexcept;
// Whether some of its calls wait.
inline bool suspends(const activation& active) noexcept {
  return active.suspended != nullptr ||
         (has_extras(*active.actor) && cell_extras::of(*active.actor).async_calls != nullptr);
}
const char* stop_now_by_message(message* mail, void* object, message_act act);
// Under drop_old: it is to look at its mail, though its turn is suspended.
const char* drop_by_message(message* mail, void* object, message_act act);
// Of the mail that waits behind a suspended turn: under drop_old the oldest that are too many go.
void drop_old(actor_system& system, activation& active) noexcept;
void deliver_urgent(cell& to, message& mail);
// In its turn: what is suspended is cancelled, and runs as far as it can; what would suspend later
// is, too.
void cancel_turns(activation& active) noexcept;

// How many turns of this thread's actors are suspended: those that began here less those that ended
// here.
void count_suspended(int change) noexcept;
// At the runtime's end: a suspended turn is cancelled and comes to its end here and now.
void end_call(activation& active) noexcept;
// The same of a reentrant actor's.
void end_reentrant(cell& actor) noexcept;

// A message has left its mailbox.
inline void leave_mailbox(cell& actor) noexcept {
  if (mail_bound* bound = bound_of(actor)) [[unlikely]]
    bound->leave();
}

// The actor's part in an async call (async_calls.cpp).
void make_homes(actor_system& of, tasks::timers* clock, sched::io_driver_slot* io) noexcept;

}  // namespace troupe::actor
