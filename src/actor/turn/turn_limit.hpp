// turn_limit: the end of an actor's turn, and the causes that take its mail off the fast path.
#pragma once

#include <algorithm>
#include <cstdint>

#include "actor/system/actor_system.hpp"
#include "actor/turn/turn_state.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::actor {

// Whether this actor's mail must be handled off the fast path: the actor is not constructed yet, or
// has stopped; its turn is suspended or it has urgent mail; its mailbox is bounded; it has a
// context of its own; guarded messages wait; a trace is taken; or a stop discards all mail.
inline bool unusual(const actor_system& system, const activation& active) noexcept {
  return (active.actor->flags & (cell::constructed | cell::stopped | cell::ends_soon |
                                 cell::guards)) != cell::constructed ||
         (active.marks & (activation::waits | activation::has_urgent)) != 0 ||
         active.actor->is_bounded() || heap_of(*active.actor) != nullptr || observe::tracing() ||
         system.discarding();
}

inline void update_slow_path(tasks::running_state& state, const actor_system& system) noexcept {
  // order: relaxed  a stop may be seen a turn late
  state.unusual.store(unusual(system, static_cast<const activation&>(*state.active)),
                      std::memory_order_relaxed);
}

// When a turn is over. The mail that waited at the turn's start is handled up to the turn's limits.
// Of the mail that arrives during the turn only the first few messages are handled; the next turn
// has the rest. Else an actor that sends messages to itself and feeds another actor would run ahead
// until its output no longer fits the cache. A limit of one message for each turn would be slow.
inline constexpr unsigned arrivals_max = 16;

// When the clock is read. While the actor's handlers are quick: after 9, 36, 144 … messages, and
// more often towards the end of the turn's time. While they are slow: after each message. Before
// the first reading: after the first message.
inline constexpr std::int64_t slow_ns = 5'000;  // a handler that takes longer is slow

// Turns of several messages can be too short for a look at the clock. After this many of them
// check_clock reads the clock, once for all, and finds whether they were slow on average. If they
// were, the actors of the next turns start again as not measured.
inline constexpr unsigned turns_between_clock_checks = 16;
void check_clock(turn_state& turn, cell& actor) noexcept;

// How many messages a turn handles before its first look at the clock, by the actor's flags.
TROUPE_INLINE unsigned first_look(unsigned flags) noexcept {
  static_assert(cell::quick == 8);
  return (flags & cell::quick) | 1u;  // at most turns_are_short_below
}

inline limits limits_of(const actor_system& system, const cell& actor) noexcept {
  return has_optional_state(actor) && optional_state::of(actor).turn.messages != 0
             ? optional_state::of(actor).turn
             : system.turn;
}

// How many messages this turn may handle.
TROUPE_INLINE unsigned message_limit(const actor_system& system, const cell& actor) noexcept {
  if (!has_optional_state(actor) && !system.is_simulated) [[likely]]
    return system.turn.messages;
  const unsigned most = limits_of(system, actor).messages;
  return system.is_simulated ? system.runtime.choose_limit(most) : most;
}

// Reads the clock. Returns the number of handled messages after which to read it again; 0 when the
// turn's time is over.
unsigned look_at_clock(tasks::running_state& state, cell& actor, unsigned handled) noexcept;

struct turn_limit {
  turn_limit(unsigned most, unsigned first_look) noexcept
      : messages(most), look_after(std::min(most, first_look)) {}

  bool over(tasks::running_state& state, cell& actor) noexcept;

  // The next batch arrived after the turn's start.
  bool arrivals_over() noexcept {
    messages = std::min(messages, std::max(handled, arrivals_max));
    look_after = std::min(look_after, messages);
    return handled >= messages;
  }

  // Ends the turn before the next message.
  void end() noexcept { messages = look_after = handled; }

  unsigned messages;
  unsigned look_after;
  unsigned handled = 0;
};

}  // namespace troupe::actor
