// turn_state: the state of the turn that the calling thread runs.
#pragma once

#include <cstdint>

#include "actor/mailbox/activation.hpp"
#include "actor/state/optional_state.hpp"
#include "sched/runnable.hpp"
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

// Whether some of the actor's calls are suspended.
inline bool suspends(const activation& active) noexcept {
  return active.suspended != nullptr || (has_optional_state(*active.actor) &&
                                         !optional_state::of(*active.actor).async_calls.empty());
}

}  // namespace troupe::actor
