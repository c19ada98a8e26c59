// ticks: the cheapest monotonic counter available.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace troupe::observe {

// Reads a counter that all processors agree on, in about 8 ns; elsewhere the system's clock.
inline std::uint64_t now_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(base::now_ns());
#endif
}

// A reading of both clocks. Two of them, some time apart, give the scale.
struct tick_scale {
  std::uint64_t ticks = now_ticks();
  std::int64_t ns = base::now_ns();

  // Returns nanoseconds since `from`. `this` must be a later reading than `from`.
  std::int64_t ns_since(const tick_scale& from, std::uint64_t at) const noexcept {
    if (ticks <= from.ticks || at <= from.ticks) return 0;
    const double rate = static_cast<double>(ns - from.ns) / static_cast<double>(ticks - from.ticks);
    return static_cast<std::int64_t>(static_cast<double>(at - from.ticks) * rate);
  }
};

}  // namespace troupe::observe
