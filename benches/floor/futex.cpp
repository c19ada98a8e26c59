// The floor under sched/wake_latency, without a runtime: one thread sleeps in FUTEX_WAIT on CPU 0
// (where the driver starts the process), and another one, on CPU 1, wakes it once a millisecond.
#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "../measure.hpp"

namespace {

// Rejected: std::atomic::wait, which spins for a while before it sleeps.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

measure::result wake_latency(unsigned, std::uint64_t posts) {
  std::atomic<std::uint32_t> posted{0};
  std::atomic<std::uint32_t> received{0};
  std::atomic<std::int64_t> posted_at{0};

  std::vector<std::int64_t> latencies(posts, 0);
  std::thread waiter([&] {
    for (std::uint32_t i = 0; i < posts; ++i) {
      // order: acquire  sees `posted_at`; pairs with the poster's release
      while (posted.load(std::memory_order_acquire) == i) futex(posted, FUTEX_WAIT, i);
      // order: relaxed  ordered by `posted`
      latencies[i] = measure::now_ns() - posted_at.load(std::memory_order_relaxed);
      // order: release  lets the poster overwrite `posted_at`; pairs with its acquire
      received.store(i + 1, std::memory_order_release);
    }
  });

  measure::pin_this_thread(1);  // the waiter has the mask it inherited: CPU 0
  for (std::uint32_t i = 1; i <= posts; ++i) {
    measure::sleep_ms(1);
    // order: relaxed  ordered by `posted`
    posted_at.store(measure::now_ns(), std::memory_order_relaxed);
    // order: release  publishes `posted_at`; pairs with the waiter's acquire
    posted.store(i, std::memory_order_release);
    futex(posted, FUTEX_WAKE, INT_MAX);
    // order: acquire  pairs with the waiter's release
    while (received.load(std::memory_order_acquire) != i) std::this_thread::yield();
  }
  waiter.join();
  return measure::latency_result(std::move(latencies));
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {{"wake_latency", 2'000, wake_latency}};
  measure::run_program(argc, argv, table);
}
