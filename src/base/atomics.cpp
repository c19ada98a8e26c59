#include "base/atomics.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "troupe/base/brief_lock.hpp"

namespace troupe::base::asymmetric {
namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

constinit std::atomic<std::uint64_t> refused{0};

// Some sandboxes answer ENOSYS or EPERM. Then the frequent side pays for a fence of its own.
bool register_with_kernel() noexcept {
  const long offered = membarrier(MEMBARRIER_CMD_QUERY);
  return offered > 0 && (offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

bool kernel_fences() noexcept {
  static const bool offered = register_with_kernel();
  return offered;
}

bool heavy() noexcept {
  const bool done = !kernel_fences() || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  // order: seq_cst  orders a store before a load on the rare side; pairs with light()
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // order: relaxed  a statistic
  if (!done) [[unlikely]]
    refused.fetch_add(1, std::memory_order_relaxed);
  return done;
}

// order: relaxed  a statistic
std::uint64_t refusals() noexcept { return refused.load(std::memory_order_relaxed); }

}  // namespace troupe::base::asymmetric

namespace troupe::base {

namespace {

// The other side needs some nanoseconds, unless the kernel has preempted it. The pauses are for the
// first case. A yield lets a thread run that waits for this processor, and a sleep one that the
// yield does not reach, since its priority is lower.
constexpr unsigned pauses_max = 100, spins = 120;
constexpr long first_sleep_ns = 10'000, sleep_max_ns = 160'000;

constexpr unsigned pauses_a_look = 8;  // at the clock

}  // namespace

void std_atomics::wait_a_little(int spin) noexcept {
  if (static_cast<unsigned>(spin) < pauses_max) {
    pause_cpu();
  } else {
    ::sched_yield();
  }
}

void std_atomics::wait_or_sleep(unsigned attempt) noexcept {
  if (attempt < spins) return wait_a_little(static_cast<int>(attempt));
  const unsigned doubled = std::min(attempt - spins, 4u);
  static_assert(first_sleep_ns << 4 == sleep_max_ns);
  const timespec span{0, first_sleep_ns << doubled};
  ::nanosleep(&span, nullptr);  // sleeps: no thread wakes one that waits for a preempted thread
}

std_atomics::patience::patience(std::int64_t span_ns) noexcept : end_ns_(now_ns() + span_ns) {}

bool std_atomics::patience::is_over() noexcept {
  pause_cpu();
  return ++pauses_ % pauses_a_look == 0 && now_ns() >= end_ns_;
}

void brief_lock_parts::wait(unsigned attempt) noexcept { std_atomics::wait_or_sleep(attempt); }

}  // namespace troupe::base
