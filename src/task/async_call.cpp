#include "troupe/task/async_call.hpp"

#include <utility>

#include "base/invariant.hpp"

namespace troupe::tasks {

// Called by the functions of a checked build alone.
void async_call::check_standing([[maybe_unused]] standing from,
                                [[maybe_unused]] standing to) noexcept {
  switch (to) {
    case standing::usual:
      TROUPE_INVARIANT(from == standing::listed, "S1");
      break;
    case standing::listed:
      TROUPE_INVARIANT(from == standing::usual, "S1");
      break;
    case standing::postponed:
      TROUPE_INVARIANT(from == standing::usual || from == standing::postponed, "S2");
      break;
    case standing::paused:
      TROUPE_INVARIANT(from == standing::begun || from == standing::paused, "S2");
      break;
    case standing::begun:
      TROUPE_INVARIANT(from != standing::listed, "S1");
      break;
  }
}

void async_call::cancel() noexcept {
  cancelled = true;
  const bool was_busy = std::exchange(busy, true);
  // If the detach fails, the awaited event has already arrived.
  if (suspension* wait = awaited;
      wait != nullptr && wait->act(wait, nullptr, sched::message_act::detach) != nullptr) {
    wait->ended = outcome::cancelled;
    wait->end();
  }
  busy = was_busy;
}

bool async_call::finish_now() noexcept {
  while (!done) {
    cancel();
    if (awaited != nullptr) awaited->act(awaited, nullptr, sched::message_act::reclaim);
    if (!loop()) return false;
  }
  return true;
}

}  // namespace troupe::tasks
