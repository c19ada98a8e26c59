// ticks: the cheapest monotonic counter there is.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace troupe::observe {

// A counter that all processors agree on, some 8 ns; else the system's clock.
inline std::uint64_t now_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(base::now_ns());
#endif
}

// Two readings of both clocks, taken apart.
struct tick_scale {
  std::uint64_t ticks = now_ticks();
  std::int64_t ns = base::now_ns();

  // Nanoseconds since `from`, of which this is a later reading.
  std::int64_t ns_since(const tick_scale& from, std::uint64_t at) const noexcept {
    if (ticks <= from.ticks || at <= from.ticks) return 0;
    const double rate = static_cast<double>(ns - from.ns) / static_cast<double>(ticks - from.ticks);
    return static_cast<std::int64_t>(static_cast<double>(at - from.ticks) * rate);
  }
};

}  // namespace troupe::observe
