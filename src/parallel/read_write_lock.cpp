// Invariants
//   G1  inside are readers, or one writer.
//   G2  a waiter that could enter waits only behind an earlier waiter.
#include "troupe/parallel/read_write_lock.hpp"

#include <utility>

#include "base/invariant.hpp"

namespace troupe::sharing {

bool read_write_lock::may_enter(access how) const noexcept {
  return !writer_ && (how == access::read || readers_ == 0);
}

bool read_write_lock::enter_locked(access how) noexcept {
  if (!may_enter(how)) return false;
  if (how == access::write) {
    writer_ = true;
  } else {
    ++readers_;
  }
  return true;
}

bool read_write_lock::try_enter(access how) noexcept {
  std::lock_guard lock(mutex_);
  return first_ == nullptr && enter_locked(how);
}

void read_write_lock::enter(std::unique_ptr<waiter> waiting) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (first_ != nullptr || !enter_locked(waiting->how_)) {
      waiter* const newest = waiting.get();
      (first_ == nullptr ? first_ : last_->next_) = std::move(waiting);
      last_ = newest;
      TROUPE_INVARIANT(first_.get() != newest || !may_enter(newest->how_), "G2");
      return;
    }
  }
  waiting->enter();
}

void read_write_lock::leave(access how) noexcept {
  std::unique_lock lock(mutex_);
  TROUPE_INVARIANT(how == access::write ? writer_ && readers_ == 0 : !writer_ && readers_ != 0,
                   "G1");
  if (how == access::write) {
    writer_ = false;
  } else {
    --readers_;
  }
  while (first_ != nullptr) {
    // Waiters that gave up are skipped; a waiter that gives up after this look enters, and leaves
    // at once.
    const bool gave_up = first_->gave_up();
    if (!gave_up && !enter_locked(first_->how_)) return;
    const std::unique_ptr<waiter> next = std::exchange(first_, std::move(first_->next_));
    lock.unlock();
    if (!gave_up) next->enter();
    lock.lock();
  }
}

}  // namespace troupe::sharing
