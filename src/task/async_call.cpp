#include "troupe/task/async_call.hpp"

#include <utility>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "troupe/task/side_call.hpp"

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

namespace {
TROUPE_INLINE const char* resume_after(suspension& over) noexcept {
  async_call& call = *over.waiter->call;
  over.end();
  return call.at->resume(call);
}
}  // namespace

const char* suspension::arrive(suspension& self, sched::message_act act) noexcept {
  if (act == sched::message_act::handle) [[likely]] {
    async_call& call = *self.waiter->call;
    if (call.at->is_aside) [[unlikely]]
      return side_call::run_for_user(self, call, &resume_after);
    return resume_after(self);
  }
  // Apart, so that no registers are saved for it above.
  const auto end_without_turn =
      [](suspension & over, sched::message_act how) __attribute__((noinline)) {
    if (how == sched::message_act::discard) {
      if (side_call::end_discarded(over)) return;
      // order: release  the last touch of a wait that the actor's end then takes; pairs with the
      // acquire below
      over.reclaimable.store(true, std::memory_order_release);
    } else if (how == sched::message_act::reclaim) {
      // order: acquire  the thread that ended the wait is done with it; pairs with the release
      // above
      for (int spin = 0; !over.reclaimable.load(std::memory_order_acquire); ++spin)
        base::std_atomics::wait_a_little(spin);
      over.end();
    }
  };
  end_without_turn(self, act);
  return nullptr;
}

}  // namespace troupe::tasks
