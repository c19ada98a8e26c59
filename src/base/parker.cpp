#include "base/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace troupe::base {
namespace {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* limit) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, limit, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

// True when a notify was taken (P1); else the state is `asleep`.
bool parker::prepare() noexcept {
  std::uint32_t seen = idle;
  // order: acq_rel  takes what notify/exchange released
  if (state_.compare_exchange_strong(seen, asleep, std::memory_order_acq_rel)) return false;
  // order: acq_rel  the same, for a notify that came first
  state_.exchange(idle, std::memory_order_acq_rel);
  return true;
}

void parker::wait() noexcept {
  if (prepare()) return;
  for (;;) {
    futex_wait(state_, asleep, nullptr);
    std::uint32_t seen = notified;
    // order: acq_rel  takes what notify/exchange released
    if (state_.compare_exchange_strong(seen, idle, std::memory_order_acq_rel)) return;
  }
}

bool parker::wait_for(std::chrono::nanoseconds limit) noexcept {
  if (prepare()) return true;
  const timespec span{static_cast<std::time_t>(limit.count() / 1'000'000'000),
                      static_cast<long>(limit.count() % 1'000'000'000)};
  futex_wait(state_, asleep, &span);  // a spurious return counts as the end of the time: callers look again
  // order: acq_rel  takes what notify/exchange released
  return state_.exchange(idle, std::memory_order_acq_rel) == notified;
}

void parker::notify() noexcept {
  // order: acq_rel  publishes what the notifier did; pairs with the owner's exchanges
  if (state_.exchange(notified, std::memory_order_acq_rel) == asleep) futex_wake(state_);
}

}  // namespace troupe::base
