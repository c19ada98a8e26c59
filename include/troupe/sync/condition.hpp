// condition: releases a mutex and waits until another party signals a change.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <mutex>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/sync/mutex.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// Thread: any. A wait never ends without a notify. Cost: as for the mutex. Errors: usage_error for
// a guard that holds nothing; a wait that throws leaves the guard without the lock. Lifetime: the
// condition must live as long as its waits. All waits at a time must use the same mutex.
//
// Example:
//     struct Box {
//       troupe::mutex busy;
//       troupe::condition filled;
//       int apples = 0;
//     };
//     troupe::task<> eat(std::shared_ptr<Box> box) {
//       auto held = co_await box->busy.lock();
//       co_await box->filled.wait(held, [&] { return box->apples > 0; });
//       --box->apples;
//     }
//     troupe::task<> fill(std::shared_ptr<Box> box) {
//       auto held = co_await box->busy.lock();
//       ++box->apples;
//       box->filled.notify_one();
//     }
//     int main() {
//       troupe::runtime rt;
//       auto box = std::make_shared<Box>();
//       rt.spawn(eat(box));
//       rt.spawn(fill(box));
//       rt.run();
//     }
class condition {
 public:
  // It waits first in the condition's list; a notify moves it to the mutex, and it continues with
  // the lock.
  struct waiting : sync::permit_waiter {
    static constexpr const char* name = "a condition";
    waiting(condition& on, mutex::guard& given) noexcept
        : owner(&on), held(&given), lock(given.lock_) {}
    waiting(waiting&& other) noexcept
        : owner(other.owner), held(other.held), lock(other.lock), by(other.by) {}
    void begin_in(tasks::coroutine& waits) noexcept { by = &waits; }
    bool start() noexcept {
      {
        std::lock_guard guard(owner->mutex_);
        owner->list_.push(*this);
      }
      held->unlock();
      return true;
    }
    bool withdraw() noexcept {
      {
        std::lock_guard guard(owner->mutex_);
        if (!notified) return owner->list_.withdraw(*this);
      }
      if (!lock->permits_.withdraw(*this)) return false;
      owner->notify_one();  // another party gets the notification
      return true;
    }
    bool put_back() noexcept {
      lock->permits_.give(wants);
      owner->notify_one();
      return true;
    }
    void finish() noexcept {
      held->lock_ = lock;
      if (by != nullptr) lock->holder_.begin(*by);
    }
    condition* owner;
    mutex::guard* held;
    mutex* lock;
    const tasks::coroutine* by = nullptr;
    bool notified = false;  // guarded by the condition's mutex
  };

  condition() = default;
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;

  // Releases the lock and waits for a notify; continues with the lock. co_await it, optionally with
  // timeout() or stop(), or block in get() on a plain thread. The guard must live meanwhile.
  sync::awaiting<waiting> wait(mutex::guard& held) {
    if (!held)
      throw usage_error("troupe: condition::wait: the guard holds no mutex; lock it first");
    return sync::awaiting<waiting>(std::in_place, *this, held);
  }
  // Waits as long as the predicate is false; it is called with the lock held. With GCC 12 the
  // predicate must capture only references and plain values, or have a name (task.hpp).
  template <std::predicate Predicate>
  task<> wait(mutex::guard& held, Predicate predicate) {
    for (;;) {
      const bool satisfied = predicate();
      if (satisfied) co_return;
      co_await wait(held);
    }
  }

  // The party that has waited longest continues when it gets the lock. The caller may hold the
  // lock, or not.
  void notify_one() noexcept { notify(1); }
  void notify_all() noexcept { notify(SIZE_MAX); }

 private:
  void notify(std::size_t most) noexcept {
    sync::woken_waiters ready;
    {
      std::lock_guard guard(mutex_);
      for (; most != 0; --most) {
        sync::waiter* const next = list_.pop();
        if (next == nullptr) break;
        auto& waiting_party = static_cast<waiting&>(*next);
        waiting_party.notified = true;
        if (!waiting_party.lock->permits_.take_or_wait(waiting_party)) ready.push(waiting_party);
      }
    }
    ready.wake();
  }

  base::small_mutex mutex_;
  sync::waiter_list list_;
};

}  // namespace troupe
