#include "kit/clock_and_random.hpp"

#include <ctime>

#include "base/clock.hpp"
#include "base/mix_bits.hpp"
#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::kit {
namespace {

// splitmix64: one addition and two multiplications, good enough for delays and choices.
std::uint64_t next_of(std::uint64_t& state) noexcept {
  state += base::golden_step;
  return base::mix_bits(state);
}

}  // namespace

bool object_clock::is_frozen() const noexcept { return virtual_ns_ >= 0 && !tasks::is_running(); }

std::int64_t object_clock::now_ns() noexcept {
  if (const tasks::runtime_state* const simulated = tasks::simulation_here())
    return virtual_ns_ = simulated->runtime.now_ns();
  if (is_frozen()) return virtual_ns_;
  return base::now_ns();
}

std::int64_t wall_now() noexcept {
  if (is_simulated()) return tasks::wall_now_ns() / 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec;
}

bool is_simulated() noexcept { return tasks::simulation_here() != nullptr; }

TROUPE_NOINLINE std::uint64_t random_number() noexcept {
  if (const tasks::runtime_state* const simulated = tasks::simulation_here())
    return simulated->runtime.choose_number();
  // Two threads may read the same time, but have their states at different addresses.
  thread_local std::uint64_t state = 0;
  if (state == 0) {
    state = static_cast<std::uint64_t>(base::now_ns()) ^
            (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&state)) << 20);
  }
  return next_of(state);
}

double random_part() noexcept { return static_cast<double>(random_number() >> 11) * 0x1.0p-53; }

}  // namespace troupe::kit
