// parker: where one thread sleeps until another thread notifies it.
// Owner: the thread that waits.
// Notifiers: any thread.
// Invariants
//   P1  a notify that comes before the wait is not lost: the wait returns at once.
//   P2  notifies do not add up: two of them before a wait count as a single notify.
//   P3  the owner sees the notifiers' earlier writes when a wait returns for them.
//   P4  a notify of an owner that sleeps elsewhere (in a poller) returns this, and the notifier
//       wakes the owner there.
//
// Rejected: condition_variable (it needs a mutex as well, and 64 bytes); eventfd (a system call
// even when the owner does not wait).
#pragma once

#include <chrono>
#include <cstdint>

#include "base/atomics.hpp"
#include "troupe/base/futex.hpp"

namespace troupe::base {

template <class Atomics = std_atomics, class Futex = kernel_futex>
class basic_parker {
 public:
  // Sleeps until notified. Returns at once when a notify came since the last wait.
  void wait() noexcept {
    if (prepare()) return;
    for (;;) {
      Futex::wait(state_, asleep, nullptr);
      std::uint32_t seen = notified;
      // order: acquire  sees the notifiers' writes (P3); pairs with notify/release
      if (state_.compare_exchange_strong(seen, idle, std::memory_order_acquire,
                                         std::memory_order_relaxed))
        return;
    }
  }

  // The same as wait(), but for at most `limit`. Returns true when notified.
  bool wait_for(std::chrono::nanoseconds limit) noexcept {
    if (prepare()) return true;
    // A spurious return counts as the end of the time: callers check again.
    Futex::wait(state_, asleep, &limit);
    // order: acquire  sees the notifiers' writes (P3); pairs with notify/release
    return state_.exchange(idle, std::memory_order_acquire) == notified;
  }

  // The owner is about to sleep elsewhere. Returns false when a notify came since its last wait;
  // this call consumes that notify.
  bool begin_wait_elsewhere() noexcept { return !prepare(elsewhere); }

  // The owner has returned from there. Returns true when it was notified.
  bool end_wait_elsewhere() noexcept {
    // order: acquire  sees the notifiers' writes (P3); pairs with notify/release
    return state_.exchange(idle, std::memory_order_acquire) == notified;
  }

  // Wakes the owner, or lets its next wait return at once. Costs a system call only if the owner
  // sleeps. Returns true when the owner sleeps elsewhere or is about to: the caller has to wake it
  // there (P4).
  bool notify() noexcept {
    // order: release  publishes the notifier's writes (P3); pairs with the owner's acquires, even
    // if another notify came in between
    const std::uint32_t seen = state_.exchange(notified, std::memory_order_release);
    if (seen == asleep) Futex::wake_one(state_);
    return seen == elsewhere;
  }

 private:
  enum : std::uint32_t { idle, notified, asleep, elsewhere };

  // Returns true when it consumed a notify (P1). Otherwise the state is now `sleeps`.
  bool prepare(std::uint32_t sleeps = asleep) noexcept {
    std::uint32_t seen = idle;
    // order: relaxed  takes and publishes nothing
    if (state_.compare_exchange_strong(seen, sleeps, std::memory_order_relaxed,
                                       std::memory_order_relaxed))
      return false;
    // order: acquire  sees the notifiers' writes (P3); pairs with notify/release
    state_.exchange(idle, std::memory_order_acquire);
    return true;
  }

  typename Atomics::template atomic<std::uint32_t> state_{idle};
};

using parker = basic_parker<>;

}  // namespace troupe::base
