// What the model of many cores needs to know about this machine, measured on two of its processors.
// Prints a name and a number of nanoseconds a line. Each is the median of many rounds: in some of
// them one of the two threads has no processor.
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::size_t rounds = 1'001;

// The time of one of `steps` steps that `body` makes.
template <class Body>
double step_ns(int steps, const Body& body) {
  std::array<double, rounds> all;
  for (double& round : all) {
    const auto begin = clock_type::now();
    body();
    const std::chrono::duration<double, std::nano> span = clock_type::now() - begin;
    round = span.count() / steps;
  }
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[rounds / 2];
}

struct alignas(64) word {
  std::atomic<unsigned> value{0};
};

// A thread that works until the end of its scope.
template <class Body>
class beside {
 public:
  explicit beside(Body body)
      : thread_([this, body] {
          begun_ = true;
          while (!ended_.load(std::memory_order_relaxed)) body();
        }) {
    while (!begun_) std::this_thread::yield();
  }
  ~beside() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> begun_{false}, ended_{false};
  std::thread thread_;
};

double line_there_and_back() {
  word ping, pong;
  const beside other([&] {
    pong.value.store(ping.value.load(std::memory_order_acquire), std::memory_order_release);
  });
  constexpr int steps = 200;
  unsigned next = 0;
  return step_ns(steps, [&] {
    for (int i = 0; i < steps; ++i) {
      ping.value.store(++next, std::memory_order_release);
      while (pong.value.load(std::memory_order_acquire) != next) {
      }
    }
  });
}

double change_alone() {
  word own;
  constexpr int steps = 1'000;
  return step_ns(steps, [&] {
    for (int i = 0; i < steps; ++i) own.value.fetch_add(1);
  });
}

double membarrier() {
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  word own;
  const beside other([&] { own.value.store(1, std::memory_order_relaxed); });
  constexpr int steps = 50;
  return step_ns(steps, [] {
    for (int i = 0; i < steps; ++i)
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  });
}

}  // namespace

int main() {
  std::printf("change_alone %.1f\n", change_alone());
  std::printf("line_there_and_back %.1f\n", line_there_and_back());
  std::printf("membarrier %.1f\n", membarrier());
}
