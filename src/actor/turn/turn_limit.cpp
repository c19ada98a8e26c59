#include "actor/turn/turn_limit.hpp"

#include "base/clock.hpp"

namespace troupe::actor {

unsigned look_at_clock(thread_turn_state& state, cell& actor, unsigned handled) noexcept {
  const std::int64_t now = base::now_ns();
  const std::int64_t mean_ns = (now - state.looked_at_ns) / (handled - state.looked_after) + 1;
  const bool slow = mean_ns > slow_ns;
  const bool first = state.turn_looks++ == 0;
  // The reading before a turn's first one is from an earlier turn, maybe from long ago. So "slow"
  // by that reading proves nothing: the next message decides. "Quick" by that reading is certain.
  if (first) state.turn_began_ns = slow ? now : state.looked_at_ns;
  if (!first || !slow) {
    constexpr unsigned pace = cell::quick | cell::slow;
    actor.flags =
        static_cast<std::uint8_t>((actor.flags & ~pace) | (slow ? cell::slow : cell::quick));
  }
  state.looked_at_ns = now;
  state.looked_after = handled;
  update_slow_path(state, actor_system::of(actor));
  const std::int64_t left =
      limits_of(actor_system::of(actor), actor).ns - (now - state.turn_began_ns);
  if (left < 0) return 0;
  if (slow) return handled + 1;
  // As many messages as should fit into half of the time that is left, and at most three times
  // those handled so far: the next handlers may be slower.
  const auto fit = static_cast<unsigned>(std::min<std::int64_t>(left / (2 * mean_ns), 3 * handled));
  return handled + std::max(fit, 1u);
}

void check_clock(thread_turn_state& state, cell& actor) noexcept {
  if (state.saw_slow_turns) {
    actor.flags &= static_cast<std::uint8_t>(~cell::quick);
    ++state.unlooked;
  }
  if (state.unlooked < turns_between_clock_checks) return;
  const std::int64_t now = base::now_ns();
  state.saw_slow_turns = now - state.clock_checked_at_ns > turns_between_clock_checks * slow_ns;
  state.clock_checked_at_ns = now;
  state.unlooked = 0;
}

bool turn_limit::over(thread_turn_state& state, cell& actor) noexcept {
  if (handled >= messages) return true;
  if (actor_system::of(actor).is_simulated) {  // simulated: the seed alone ends turns
    look_after = messages;
    return false;
  }
  look_after = look_at_clock(state, actor, handled);
  if (look_after == 0) return true;
  look_after = std::min(look_after, messages);
  return false;
}

}  // namespace troupe::actor
