// clock: cheap monotonic time for the scheduler's own decisions.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::base {

// Nanoseconds of the monotonic clock. A call takes about 20 ns.
inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace troupe::base
