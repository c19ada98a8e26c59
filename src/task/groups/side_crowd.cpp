#include "troupe/task/groups/side_crowd.hpp"

#include "base/invariant.hpp"

namespace troupe::tasks {

bool side_crowd::advance(side_call& call, coroutine& user, bool later) {
  if (call.waiter_ == this) return false;  // it is here: it is pending (B1)
  if (later ? call.advance_later_and_keep(user) : call.advance(user)) {
    note_ready(call.place);
    return true;
  }
  call.hold();
  TROUPE_INVARIANT(call.holds_ && call.is_pending(), "B1");
  call.waiter_ = this;
  call.previous_waited_ = nullptr;
  call.next_waited_ = first_;
  if (first_ != nullptr) first_->previous_waited_ = &call;
  first_ = &call;
  refs_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  the owner has one
  return false;
}

void side_crowd::note_ready(std::size_t place) noexcept {
  if (place == side_call::no_place) return;
  next_[place] = side_call::no_place;
  (first_ready_ == side_call::no_place ? first_ready_ : next_[last_ready_]) = place;
  last_ready_ = place;
}

void side_crowd::pop_ready() noexcept { first_ready_ = next_[first_ready_]; }

void side_crowd::leave(side_call& call) noexcept {
  call.waiter_ = nullptr;
  // order: acquire  pairs with abandon/release (B2)
  if (abandoned_.load(std::memory_order_acquire)) return;
  (call.previous_waited_ == nullptr ? first_ : call.previous_waited_->next_waited_) =
      call.next_waited_;
  if (call.next_waited_ != nullptr) call.next_waited_->previous_waited_ = call.previous_waited_;
  call.previous_waited_ = call.next_waited_ = nullptr;
  note_ready(call.place);
}

async_call* side_crowd::ready() noexcept {
  if (waiter == nullptr) return nullptr;
  async_call& call = *waiter->call;
  TROUPE_INVARIANT(call.awaited == this, "B3");
  end();
  waiter = nullptr;
  return call.busy ? nullptr : &call;
}

void side_wait::let_leave(side_call& call) noexcept { static_cast<side_crowd*>(this)->leave(call); }
async_call* side_wait::crowd_ready() noexcept { return static_cast<side_crowd*>(this)->ready(); }
void side_wait::drop_crowd() noexcept { static_cast<side_crowd*>(this)->drop(); }
void side_wait::drop_abandoned() noexcept {
  auto* const crowd = static_cast<side_crowd*>(this);
  // order: relaxed  the owner's writes are seen in this turn
  TROUPE_INVARIANT(crowd->abandoned_.load(std::memory_order_relaxed), "B2");
  crowd->drop();
}

void side_crowd::abandon() noexcept {
  // order: release  seen in the turns that find a side call given up (B2); pairs with leave/acquire
  abandoned_.store(true, std::memory_order_release);
  drop();
}

void side_crowd::drop() noexcept {
  // order: acq_rel  the last holder sees the writes of the others, and frees it
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace troupe::tasks
