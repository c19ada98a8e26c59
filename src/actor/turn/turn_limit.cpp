#include "actor/turn/turn_limit.hpp"

#include "base/clock.hpp"

namespace troupe::actor {

unsigned look_at_clock(tasks::running_state& state, cell& actor, unsigned handled) noexcept {
  turn_state& turn = turn_here();
  const std::int64_t now = base::now_ns();
  const std::int64_t mean_ns = (now - turn.looked_at_ns) / (handled - turn.looked_after) + 1;
  const bool slow = mean_ns > slow_ns;
  const bool first = turn.looks++ == 0;
  // The reading before a turn's first one is from an earlier turn, maybe from long ago. "Slow" by
  // that reading therefore proves nothing: the next message decides. "Quick" by it is certain.
  if (first) turn.began_ns = slow ? now : turn.looked_at_ns;
  if (!first || !slow) {
    constexpr unsigned pace = cell::quick | cell::slow;
    actor.flags =
        static_cast<std::uint8_t>((actor.flags & ~pace) | (slow ? cell::slow : cell::quick));
  }
  turn.looked_at_ns = now;
  turn.looked_after = handled;
  update_slow_path(state, actor_system::of(actor));
  const std::int64_t left = limits_of(actor_system::of(actor), actor).ns - (now - turn.began_ns);
  if (left < 0) return 0;
  if (slow) return handled + 1;
  // As many messages as should fit into half of the time that is left, and at most three times
  // those handled so far: the next handlers may be slower.
  const auto fit = static_cast<unsigned>(std::min<std::int64_t>(left / (2 * mean_ns), 3 * handled));
  return handled + std::max(fit, 1u);
}

void check_clock(turn_state& turn, cell& actor) noexcept {
  if (turn.saw_slow_turns) {
    actor.flags &= static_cast<std::uint8_t>(~cell::quick);
    ++turn.unlooked;
  }
  if (turn.unlooked < turns_between_clock_checks) return;
  const std::int64_t now = base::now_ns();
  turn.saw_slow_turns = now - turn.clock_checked_at_ns > turns_between_clock_checks * slow_ns;
  turn.clock_checked_at_ns = now;
  turn.unlooked = 0;
}

bool turn_limit::over(tasks::running_state& state, cell& actor) noexcept {
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
