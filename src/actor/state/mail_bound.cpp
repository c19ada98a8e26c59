#include "actor/state/mail_bound.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/invariant.hpp"
#include "sched/stealing/worker.hpp"
#include "troupe/actor/call.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/error.hpp"

namespace troupe::actor {

mail_bound::taken mail_bound::take() noexcept {
  constexpr std::size_t spare = 16;  // calling the owner costs as much as some messages
  std::lock_guard lock(mutex_);
  if (count_ >= limit_ && policy_ != when_full::drop_old && !open_) return taken::no;
  ++count_;
  TROUPE_INVARIANT(is_sound(), "L1");
  if (policy_ != when_full::drop_old || count_ / 2 < limit_ || count_ - limit_ < spare || open_ ||
      calls_)
    return taken::yes;
  calls_ = true;
  return taken::overflows;
}

void mail_bound::called() noexcept {
  std::lock_guard lock(mutex_);
  calls_ = false;
}

bool mail_bound::too_many() noexcept {
  if (policy_ != when_full::drop_old) return false;
  std::lock_guard lock(mutex_);
  return count_ > limit_;
}

mail_bound::waiting& mail_bound::waiting::operator=(waiting&& other) noexcept {
  waiting taken(std::move(other));
  std::swap(granted, taken.granted);
  std::swap(ask, taken.ask);
  std::swap(answer, taken.answer);
  std::swap(to, taken.to);
  return *this;
}

// An ask that was never delivered ends without an error: either its asker has given it up, or the
// runtime has ended.
mail_bound::waiting::~waiting() {
  if (ask != nullptr) ask->act(ask, nullptr, message_act::discard);
}

bool mail_bound::waiting::gave_up() const noexcept {
  // A hint: an ask that is given up at this very instant counts as delivered
  return ask == nullptr ? granted->abandoned() : answer->asked->is_given_up();
}

bool mail_bound::waiting::come_in() noexcept {
  if (ask == nullptr) {
    granted->set_value(permit(*to));
    if (sched::worker* const worker = sched::worker::current()) worker->expects_mail = true;
    return true;
  }
  try {
    deliver(*to, *std::exchange(ask, nullptr));
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // the ask was discarded
  }
}

void mail_bound::leave() noexcept {
  std::unique_lock lock(mutex_);
  // The waiter that came first gets the room, unless it gave up.
  for (;;) {
    // While a waiter that gave up was dropped, another thread may have begun to give.
    if (giving_) [[unlikely]] {
      ++freed_;
      return;
    }
    if (waiting_.empty() || count_ > limit_) break;
    if (waiting_.front().ask != nullptr) return give_room(lock);
    waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (!next.gave_up()) return static_cast<void>(next.come_in());
    next.granted.reset();
    lock.lock();
  }
  TROUPE_INVARIANT(count_ != 0, "L1");
  --count_;
  TROUPE_INVARIANT(none_waits_beside_room(), "L2");
}

// Both under the mutex.
bool mail_bound::is_sound() const noexcept {
  return count_ <= limit_ || policy_ == when_full::drop_old || open_;
}
bool mail_bound::none_waits_beside_room() const noexcept {
  return waiting_.empty() || giving_ || open_ || count_ >= limit_;
}

// One room is free, and the first waiter is an ask. Delivering it may make it a dead letter, which
// frees the room for the next waiter, and so on: hence a loop instead of recursion, and one thread
// at a time.
void mail_bound::give_room(std::unique_lock<std::mutex>& lock) noexcept {
  TROUPE_INVARIANT(!giving_ && freed_ == 0, "L3");
  giving_ = true;
  freed_ = 1;
  while (freed_ != 0) {
    --freed_;
    if (waiting_.empty() || count_ > limit_) {
      --count_;
      continue;
    }
    bool used = false;
    {
      waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      used = !next.gave_up() && next.come_in();
    }
    lock.lock();
    if (!used) ++freed_;
  }
  giving_ = false;
  TROUPE_INVARIANT(none_waits_beside_room(), "L2");
}

// True when the waiter was queued; else there was room, which is the caller's now.
template <class... What>
bool mail_bound::enqueue(cell& to, What&&... waiter) {
  // destroyed outside of the lock: the destructors of the waiters' objects are the user's
  std::list<waiting> gone;
  std::lock_guard lock(mutex_);
  if (count_ < limit_ || open_) {
    ++count_;
    TROUPE_INVARIANT(is_sound(), "L1");
    return false;
  }
  if (waiting_.size() >= prune_at_) {
    gone = take_abandoned();
    prune_at_ = std::max<std::size_t>(16, 2 * waiting_.size());
  }
  waiting_.emplace_back(std::forward<What>(waiter)..., to);
  return true;
}

void mail_bound::wait_for(promise<permit>&& waiter, cell& to) {
  if (!enqueue(to, std::move(waiter))) return waiter.set_value(permit(to));
  if (sched::worker* const worker = sched::worker::current()) worker->expects_mail = true;
}

void mail_bound::wait_for(message& ask, const tasks::shared_state& answer, cell& to) {
  bool waits = false;
  try {
    waits = enqueue(to, ask, answer);
  } catch (...) {
    ask.act(&ask, nullptr, message_act::discard);
    throw;
  }
  if (!waits) deliver_with_permit(to, ask);
}

// Under the mutex. Those that remain keep their order.
std::list<mail_bound::waiting> mail_bound::take_abandoned() noexcept {
  std::list<waiting> gone;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto current = at++;
    if (current->gave_up()) gone.splice(gone.end(), waiting_, current);
  }
  return gone;
}

void mail_bound::open() noexcept {
  std::unique_lock lock(mutex_);
  open_ = true;
  while (!waiting_.empty()) {
    waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    ++count_;
    lock.unlock();
    const bool used = next.come_in();
    lock.lock();
    if (!used) --count_;
  }
}

}  // namespace troupe::actor
