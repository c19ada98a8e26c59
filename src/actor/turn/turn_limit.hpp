// turn_limit: when an actor's turn is over, and what makes its mail need a second look.
#pragma once

#include <algorithm>
#include <cstdint>

#include "actor/actor_system.hpp"
#include "actor/turn/turn.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

// Whether this actor's mail needs a second look: it is not constructed yet, or stopped; its turn is
// suspended; its mailbox is bounded; it has a context of its own; a trace is taken; a stop discards
// all; messages wait for predicates.
inline bool unusual(const actor_system& system, const activation& active) noexcept {
  return (active.actor->flags & (cell::constructed | cell::stopped | cell::ends_soon |
                                 cell::guards)) != cell::constructed ||
         (active.marks & (activation::waits | activation::has_urgent)) != 0 ||
         active.actor->is_bounded() || heap_of(*active.actor) != nullptr || observe::tracing() ||
         system.discarding();
}

inline void update_slow_path(thread_turn_state& state, const actor_system& system) noexcept {
  // order: relaxed  a stop may be seen a turn late
  state.unusual.store(unusual(system, *state.active), std::memory_order_relaxed);
}

// When a turn is over. What was there at its start is handled up to the limits; of what comes
// meanwhile only the first few, for the next turn has the rest: an actor that feeds another one by
// messages to itself would else run ahead until what it made no longer fits the cache, and one
// message a turn is slow.
inline constexpr unsigned arrivals_max = 16;  // messages of a turn when some came after its start

// The clock is looked at after 9, 36, 144 … messages while the actor's handlers are quick, more
// often towards the end of the turn's time; after the first message until there was a look, and
// after each one while they are slow.
inline constexpr std::int64_t slow_ns = 5'000;  // a handler that takes longer is slow

// After so many turns of several messages, but too few for a look, a check of the clock at the
// clock tells whether they were slow; if so, the actors of the next ones are looked at as if nobody
// had done so yet.
inline constexpr unsigned turns_between_clock_checks = 16;
void check_clock(thread_turn_state& state, cell& actor) noexcept;

// Messages of a turn before the first look, by the actor's flags.
TROUPE_INLINE unsigned first_look(unsigned flags) noexcept {
  static_assert(cell::quick == 8);
  return (flags & cell::quick) | 1u;  // at most turns_are_short_below
}

inline limits limits_of(const actor_system& system, const cell& actor) noexcept {
  return has_extras(actor) && cell_extras::of(actor).turn.messages != 0
             ? cell_extras::of(actor).turn
             : system.turn;
}

// How many messages this turn may handle.
TROUPE_INLINE unsigned message_limit(const actor_system& system, const cell& actor) noexcept {
  if (!has_extras(actor) && !system.choose_messages) [[likely]]
    return system.turn.messages;
  const unsigned most = limits_of(system, actor).messages;
  return system.choose_messages ? system.choose_messages(most) : most;
}

// Looks at the clock. After how many messages of the turn to look again; 0 when its time is over.
unsigned look_at_clock(thread_turn_state& state, cell& actor, unsigned handled) noexcept;

struct turn_limit {
  turn_limit(unsigned most, unsigned first_look) noexcept
      : messages(most), look_after(std::min(most, first_look)) {}

  bool over(thread_turn_state& state, cell& actor) noexcept;

  // The next batch came after the turn's start.
  bool arrivals_over() noexcept {
    messages = std::min(messages, std::max(handled, arrivals_max));
    look_after = std::min(look_after, messages);
    return handled >= messages;
  }

  // Nothing more in this turn.
  void end() noexcept { messages = look_after = handled; }

  unsigned messages;
  unsigned look_after;
  unsigned handled = 0;
};

}  // namespace troupe::actor
