#include "runtime/observing/turns/turns.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "observe/flight/last_turns.hpp"
#include "observe/output.hpp"

namespace troupe::observing {
namespace {

void write_turn(json_text& text, const observe::last_turn& turn, std::uint64_t now_ticks,
                double ns_a_tick) {
  const std::uint64_t ticks = now_ticks - std::min(now_ticks, turn.ticks);
  std::string words;
  {
    observe::output out(words);
    observe::write_turn(out, turn);
  }
  text.open('{').member("thread", turn.thread->thread_name());
  text.member("before_ns", static_cast<std::int64_t>(static_cast<double>(ticks) * ns_a_tick));
  text.member("estimate", turn.is_estimate);
  if (turn.is_turn()) {
    text.member("actor", turn.number).member("messages", turn.messages);
    if (turn.is != nullptr) text.member("handler", turn.is->name);
  }
  text.member("text", std::string_view(words)).close('}');
}

}  // namespace

bool are_turns_recorded() noexcept { return observe::flight_recorder::first() != nullptr; }

void write_turns(json_text& text, std::size_t most) {
  const observe::tick_scale now;
  const double ns_a_tick = observe::flight_recorder::best_rate(now);
  const auto turns = std::make_unique<observe::last_turns>(now.ticks);
  text.open('{').key("turns").open('[');
  observe::last_turn turn;
  for (std::size_t written = 0; written < most && turns->next(turn); ++written)
    write_turn(text, turn, now.ticks, ns_a_tick);
  text.close(']').member("was_overtaken", turns->was_overtaken());
  text.member("threads_left_out", turns->left_out()).close('}');
}

}  // namespace troupe::observing
