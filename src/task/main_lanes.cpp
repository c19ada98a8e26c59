#include "task/main_lanes.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::tasks {
namespace {

// A lane's word: the number of the thread, and two bits. 0 is a free lane.
constexpr std::uint64_t in_run = 1, has_run = 2;
constexpr unsigned thread_shift = 2;

constinit std::array<std::atomic<std::uint64_t>, 256> lanes{};  // the first is nobody's

// From 1 on; never the same for two threads.
std::uint64_t own_thread() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  // order: relaxed  a number; publishes nothing
  thread_local const std::uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

constexpr auto to_call_run = std::chrono::seconds(1);
constexpr auto between_looks = std::chrono::milliseconds(1);

}  // namespace

std::uint8_t main_lanes::claim() noexcept {
  for (unsigned lane = 1; lane < lanes.size(); ++lane) {
    std::uint64_t expected = 0;
    // order: relaxed (both)  who carries the number has it from the runtime, which is published later
    if (lanes[lane].compare_exchange_strong(expected, own_thread() << thread_shift, std::memory_order_relaxed, std::memory_order_relaxed)) {
      return static_cast<std::uint8_t>(lane);
    }
  }
  return 0;
}

// order: relaxed  nobody carries the number any more (L1)
void main_lanes::give_back(std::uint8_t lane) noexcept {
  if (lane != 0) lanes[lane].store(0, std::memory_order_relaxed);
}

void main_lanes::enter(std::uint8_t lane) noexcept {
  // order: relaxed  a time; the runtime orders its runs
  if (lane != 0) lanes[lane].store((own_thread() << thread_shift) | has_run | in_run, std::memory_order_relaxed);
}

void main_lanes::leave(std::uint8_t lane) noexcept {
  // order: release  what was handled in run() is seen by who finds nobody in it; pairs with waits_for_itself/acquire
  if (lane != 0) lanes[lane].store((own_thread() << thread_shift) | has_run, std::memory_order_release);
}

bool main_lanes::waits_for_itself(std::uint8_t lane, bool (*over)(const void* context), const void* context) noexcept {
  if (lane == 0) return false;
  const auto last = std::chrono::steady_clock::now() + to_call_run;
  for (;;) {
    // order: acquire  pairs with leave/release
    const std::uint64_t seen = lanes[lane].load(std::memory_order_acquire);
    if (seen >> thread_shift != own_thread() || over(context)) return false;
    if ((seen & has_run) != 0 || std::chrono::steady_clock::now() >= last) return true;
    std::this_thread::sleep_for(between_looks);  // sleeps: run() tells nobody that it begins
  }
}

}  // namespace troupe::tasks
