#include "task/turn_of_others.hpp"

#include <memory>
#include <new>

#include "base/atomics.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/side_call.hpp"

namespace troupe::tasks {

turn_of_others& turn_of_others::make(bool starts) {
  return *::new (memory::allocate(sizeof(turn_of_others))) turn_of_others(starts);
}

void turn_of_others::end_turn() noexcept {
  // a stop that discards cancels the call as it is resumed
  if (!starts_ || !(waiter->call->cancelled || is_discarding(waiter->call->actor))) {
    end();
  } else {
    forget();
    waiter->end();
  }
}

void turn_of_others::free() noexcept {
  std::destroy_at(this);
  memory::deallocate(this, sizeof(turn_of_others));
}

const char* turn_of_others::resume_after(suspension& base) noexcept {
  auto& self = static_cast<turn_of_others&>(base);
  async_call& call = *self.waiter->call;
  self.end_turn();
  self.free();
  return call.at->resume(call);
}

// As suspension::arrive, but that it frees itself. It cannot be detached: the coroutine continues
// after this turn in any case.
const char* turn_of_others::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "a turn of others";
  auto& self = static_cast<turn_of_others&>(*static_cast<suspension*>(base));
  switch (act) {
    case sched::message_act::handle: {
      async_call& call = *self.waiter->call;
      return call.at->is_aside ? side_call::run_for_user(self, call, &resume_after)
                               : resume_after(self);
    }
    case sched::message_act::discard:
      // that has reclaimed it, if it was the wait of a side call that was given up
      if (side_call::end_discarded(self)) return nullptr;
      // order: release  the last touch before reclaim, which frees it; pairs with the acquire below
      self.reclaimable.store(true, std::memory_order_release);
      return nullptr;
    case sched::message_act::reclaim:
      // order: acquire  the thread that discarded it is done with it; pairs with the release above
      for (int spin = 0; !self.reclaimable.load(std::memory_order_acquire); ++spin)
        base::std_atomics::wait_a_little(spin);
      self.end_turn();
      self.free();
      return nullptr;
    default:
      return nullptr;
  }
}

namespace {

bool wait(coroutine& awaiting, bool starts) noexcept {
  async_call& call = *awaiting.call;
  call.refill();
  if (call.cancelled) return false;
  try {
    turn_of_others& turn = turn_of_others::make(starts);
    turn.begin(awaiting);
    call.at->go_on_later(turn);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

bool let_others_run(coroutine& awaiting) noexcept { return wait(awaiting, false); }
bool start_behind_others(coroutine& awaiting) noexcept { return wait(awaiting, true); }

}  // namespace troupe::tasks
