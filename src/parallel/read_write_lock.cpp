// Invariants
//   G1  inside are readers or one writer.
//   G2  nobody waits who could be inside, but behind one who came earlier.
#include "troupe/parallel/read_write_lock.hpp"

#include "base/invariant.hpp"

namespace troupe::sharing {

bool read_write_lock::enter_locked(access how) noexcept {
  if (writer_ || (how == access::write && readers_ != 0)) return false;
  if (how == access::write) {
    writer_ = true;
  } else {
    ++readers_;
  }
  return true;
}

bool read_write_lock::try_enter(access how) noexcept {
  std::lock_guard lock(mutex_);
  return waiting_.empty() && enter_locked(how);
}

bool read_write_lock::enter(access how, std::unique_ptr<waiter>& waiting) {
  std::lock_guard lock(mutex_);
  if (waiting_.empty() && enter_locked(how)) return true;
  waiting_.push_back({how, nullptr});
  waiting_.back().who = std::move(waiting);
  return false;
}

void read_write_lock::leave(access how) noexcept {
  std::unique_lock lock(mutex_);
  TROUPE_INVARIANT(how == access::write ? writer_ && readers_ == 0 : !writer_ && readers_ != 0, "G1");
  if (how == access::write) {
    writer_ = false;
  } else {
    --readers_;
  }
  while (!waiting_.empty()) {
    // Those who gave up are passed over; one who does after this look leaves again at once.
    const bool gave_up = waiting_.front().who->gave_up();
    if (!gave_up && !enter_locked(waiting_.front().how)) return;
    const std::unique_ptr<waiter> next = std::move(waiting_.front().who);
    waiting_.pop_front();
    lock.unlock();
    if (!gave_up) next->enter();
    lock.lock();
  }
}

}  // namespace troupe::sharing
