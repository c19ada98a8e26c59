#include "task/running/main_lanes.hpp"

#include <array>
#include <mutex>
#include <thread>

#include "base/invariant.hpp"

namespace troupe::tasks {
namespace {

// A lane's word: the number of the thread, and whether the thread is in run(). 0: the lane is free.
constexpr std::uint64_t in_run = 1;
constexpr unsigned thread_shift = 1;

constinit std::array<std::atomic<std::uint64_t>, 256> lanes{};  // lane 0 is never used

struct searches {
  std::mutex mutex;
  std::array<main_lanes::search, 256> all{};
  static searches& get() {
    static constinit searches instance;  // trivially destructible
    return instance;
  }
};

void call_all(void (*main_lanes::search::*which)(runtime_state& runtime) noexcept) noexcept {
  searches& known = searches::get();
  std::lock_guard lock(known.mutex);
  for (const main_lanes::search& search : known.all) {
    if (search.*which != nullptr) (search.*which)(*search.runtime);
  }
}

constinit std::atomic<std::int64_t> time_to_call_run_ns{1'000'000'000};
constexpr auto between_looks = std::chrono::milliseconds(1);

constinit thread_local std::uint64_t own_number = 0;

// The calling thread's number, from 1 on; no two threads have the same.
std::uint64_t own_thread() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  // order: relaxed  a number; publishes nothing
  if (own_number == 0) own_number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own_number;
}

}  // namespace

std::uint8_t main_lanes::claim() noexcept {
  for (unsigned lane = 1; lane < lanes.size(); ++lane) {
    std::uint64_t expected = 0;
    // order: relaxed (both)  a result's number comes from its runtime, which is published later
    if (lanes[lane].compare_exchange_strong(expected, own_thread() << thread_shift,
                                            std::memory_order_relaxed, std::memory_order_relaxed)) {
      return static_cast<std::uint8_t>(lane);
    }
  }
  return 0;
}

// order: relaxed  no result carries the number any longer (L1)
void main_lanes::give_back(std::uint8_t lane) noexcept {
  if (lane != 0) lanes[lane].store(0, std::memory_order_relaxed);
}

void main_lanes::set_search(std::uint8_t lane, const search& how) noexcept {
  searches& known = searches::get();
  std::lock_guard lock(known.mutex);
  if (lane != 0) known.all[lane] = how;
}

void main_lanes::search_all() noexcept { call_all(&search::now); }
void main_lanes::search_all_soon() noexcept { call_all(&search::soon); }

void main_lanes::enter(std::uint8_t lane) noexcept {
  // order: relaxed  the runtime orders its runs
  TROUPE_INVARIANT(lane == 0 || (lanes[lane].load(std::memory_order_relaxed) & in_run) == 0, "L2");
  // order: relaxed  a time; the runtime orders its runs
  if (lane != 0)
    lanes[lane].store((own_thread() << thread_shift) | in_run, std::memory_order_relaxed);
}

void main_lanes::leave(std::uint8_t lane) noexcept {
  TROUPE_INVARIANT(lane == 0 || is_run_by(lane, own_thread()), "L2");
  // order: release  a thread that finds no thread in run() sees the work done in it; pairs
  // with belongs_to/acquire
  if (lane != 0) lanes[lane].store(own_thread() << thread_shift, std::memory_order_release);
}

std::uint64_t main_lanes::this_thread() noexcept { return own_number; }

bool main_lanes::belongs_to(std::uint8_t lane, std::uint64_t thread) noexcept {
  // order: acquire  pairs with leave/release
  return lane != 0 && lanes[lane].load(std::memory_order_acquire) >> thread_shift == thread;
}

bool main_lanes::is_run_by(std::uint8_t lane, std::uint64_t thread) noexcept {
  // order: relaxed  the calling thread's own, or a hint
  return lane != 0 &&
         lanes[lane].load(std::memory_order_relaxed) == ((thread << thread_shift) | in_run);
}

const void* main_lanes::known_by(std::uint8_t lane) noexcept {
  return lane == 0 ? nullptr : &lanes[lane];
}

void main_lanes::for_each_of(std::uint64_t thread, void* context,
                             void (*look)(void* context, const void* lane)) {
  for (unsigned lane = 1; lane < lanes.size(); ++lane) {
    const auto number = static_cast<std::uint8_t>(lane);
    if (belongs_to(number, thread)) look(context, known_by(number));
  }
}

bool main_lanes::waits_for_itself(std::uint8_t lane) noexcept {
  const std::uint64_t self = own_thread();
  const auto last = std::chrono::steady_clock::now() + time_to_call_run();
  while (belongs_to(lane, self)) {
    if (is_run_by(lane, self) || std::chrono::steady_clock::now() >= last) return true;
    // sleeps: run() notifies no other thread of its begin
    std::this_thread::sleep_for(between_looks);
  }
  return false;
}

std::chrono::nanoseconds main_lanes::time_to_call_run() noexcept {
  // order: relaxed  a number; publishes nothing
  return std::chrono::nanoseconds(time_to_call_run_ns.load(std::memory_order_relaxed));
}

void main_lanes::set_time_to_call_run(std::chrono::nanoseconds time) noexcept {
  // order: relaxed  as above
  time_to_call_run_ns.store(time.count(), std::memory_order_relaxed);
}

}  // namespace troupe::tasks
