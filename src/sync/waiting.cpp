#include "troupe/sync/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "troupe/base/futex.hpp"

namespace troupe::sync {

bool thread_sleep::wait_for(time_span at_most) noexcept {
  using std::chrono::steady_clock;
  const bool limited = at_most != std::chrono::nanoseconds::max();
  const auto began = steady_clock::now();
  // order: acquire  sees the writes of the thread that ended the wait; pairs with notify/release
  while (woken_.load(std::memory_order_acquire) == 0) {
    if (!limited) {
      base::kernel_futex::wait(woken_, 0, nullptr);
      continue;
    }
    const std::chrono::nanoseconds left = at_most - (steady_clock::now() - began);
    if (left.count() <= 0) return false;
    base::kernel_futex::wait(woken_, 0, &left);
  }
  return true;
}

// The sleeper may have returned when the wake comes: then the wake finds no sleeper at that
// address, or lets one check again for no reason.
void thread_sleep::notify() noexcept {
  // order: release  publishes how the wait ended; pairs with wait_for/acquire
  woken_.store(1, std::memory_order_release);
  base::kernel_futex::wake_one(woken_);
}

void throw_ended(const tasks::suspension& ended_wait, const char* name) {
  if (ended_wait.ended == tasks::outcome::deadlock) tasks::throw_refused(ended_wait);
  if (ended_wait.ended == tasks::outcome::timed_out)
    throw timed_out(std::string("troupe: ") + name + ": it did not come in time");
  throw cancelled(std::string("troupe: ") + name + ": the wait was cancelled");
}

}  // namespace troupe::sync
