// permits: a count from which parties take, and wait in order when there are not enough: the base
// of locks and semaphores. For the library's own use.
// Threads: any.
// Invariants
//   S1  the permits that are taken and the permits that are free always add up to the same number.
//   S2  while parties wait, a later party waits behind them, however few permits it asks for: a
//       party that asks for many gets them in the end.
//   S3  a party that takes permits sees the earlier writes of those that gave them back.
//   S4  while the mark `waited` is set, only the holder of the mutex changes the word; the mark is
//       set while a party is in the list.
//
// Rejected: only the small mutex around a plain count (twice the atomic operations when no party
// waits); permits that a waking party takes itself (a party that comes just then overtakes it).
// Model: tests/models/sync/permits.cpp.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

#include "troupe/base/small_mutex.hpp"
#include "troupe/sync/channels/waiter.hpp"

namespace troupe::sync {

struct permit_waiter : waiter {
  std::uint64_t wants = 1;
};

template <class Atomics = base::mutex_atomics, class Mutex = base::small_mutex>
class basic_permits {
 public:
  static constexpr std::uint64_t most = UINT64_MAX >> 2;

  explicit basic_permits(std::uint64_t free) noexcept : word_(free << 1) {}
  basic_permits(const basic_permits&) = delete;
  basic_permits& operator=(const basic_permits&) = delete;

  // Takes permits if there are enough and no party waits.
  bool try_take(std::uint64_t wants) noexcept {
    // order: relaxed  only compared
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & waited) == 0 && seen >> 1 >= wants) {
      // order: acquire  sees the writes of the givers (S3); pairs with give/release
      if (word_.compare_exchange_weak(seen, seen - (wants << 1), std::memory_order_acquire,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // The same, or else puts the waiter into the list and returns true.
  bool take_or_wait(permit_waiter& party) noexcept {
    if (try_take(party.wants)) return false;
    std::lock_guard lock(mutex_);
    if (!mark_waited(party.wants)) return false;
    list_.push(party);
    return true;
  }

  void give(std::uint64_t count) noexcept {
    if (give_at_once(count)) return;
    woken_waiters ready;
    {
      std::lock_guard lock(mutex_);
      if (give_at_once(count)) return;
      grant(free_of_waited() + count, ready);
    }
    ready.wake();
  }

  // Ends the wait. False: it has been given its permits.
  bool withdraw(permit_waiter& party) noexcept {
    woken_waiters ready;
    {
      std::lock_guard lock(mutex_);
      if (!list_.withdraw(party)) return false;
      grant(free_of_waited(), ready);  // those behind it may need fewer
    }
    ready.wake();
    return true;
  }

  // Calls `look` while the waiter cannot be given its permits. False: it has been given them.
  template <class Look>
  bool while_waiting(const permit_waiter& party, Look look) noexcept {
    std::lock_guard lock(mutex_);
    if (!party.listed()) return false;
    look();
    return true;
  }

  // How many are free now; only a hint.
  // order: relaxed  a hint
  std::uint64_t free() const noexcept { return word_.load(std::memory_order_relaxed) >> 1; }

 private:
  static constexpr std::uint64_t waited = 1;

  // Under the mutex. False: the permits were taken after all.
  bool mark_waited(std::uint64_t wants) noexcept {
    for (;;) {
      if (try_take(wants)) return false;
      // order: relaxed  only compared
      std::uint64_t seen = word_.load(std::memory_order_relaxed);
      if ((seen & waited) != 0) return true;
      // order: relaxed  whoever sees the mark takes the mutex
      if (seen >> 1 < wants &&
          word_.compare_exchange_weak(seen, seen | waited, std::memory_order_relaxed,
                                      std::memory_order_relaxed))
        return true;
    }
  }
  // False while a party waits.
  bool give_at_once(std::uint64_t count) noexcept {
    // order: relaxed  only compared
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & waited) == 0) {
      // order: release  publishes the giver's writes (S3); pairs with try_take/acquire
      if (word_.compare_exchange_weak(seen, seen + (count << 1), std::memory_order_release,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  // Under the mutex, while the mark is set (S4).
  std::uint64_t free_of_waited() const noexcept {
    // order: acquire  sees the writes of those that gave permits before the mark was set, and
    // passes them on (S3); pairs with give_at_once/release
    return word_.load(std::memory_order_acquire) >> 1;
  }
  // The same: hands out the free permits, oldest waiter first (S2).
  void grant(std::uint64_t free, woken_waiters& ready) noexcept {
    for (waiter* first = list_.first(); first != nullptr; first = list_.first()) {
      const std::uint64_t wants = static_cast<permit_waiter*>(first)->wants;
      if (wants > free) break;
      free -= wants;
      ready.push(*list_.pop());
    }
    // order: release  publishes the givers' writes (S3); pairs with try_take/acquire
    word_.store(free << 1 | (list_.empty() ? 0 : waited), std::memory_order_release);
  }

  typename Atomics::template atomic<std::uint64_t> word_;
  Mutex mutex_;
  waiter_list list_;
};

using permits = basic_permits<>;

}  // namespace troupe::sync
