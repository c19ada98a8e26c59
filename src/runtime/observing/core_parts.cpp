#include "runtime/observing/core_parts.hpp"

#include <atomic>
#include <cstdint>

#include "io/reactor/reactor.hpp"
#include "observe/ticks.hpp"
#include "runtime/core/runtime_core.hpp"

namespace troupe::observing {

// Fixed by the first look that is late enough to know it: sums of ticks must not fall when they are
// scaled again. Observers of two runtimes may fix it at the same time, to about the same.
double ns_per_tick_of(const runtime_core& core) noexcept {
  constexpr std::int64_t known_after_ns = 100'000'000;
  static constinit std::atomic<double> fixed{0};
  // order: relaxed  publishes nothing
  if (const double known = fixed.load(std::memory_order_relaxed); known != 0) return known;
  const observe::tick_scale now;
  const double ticks = static_cast<double>(now.ticks - core.observed_since.ticks);
  const std::int64_t ns = now.ns - core.observed_since.ns;
  const double scale = ticks <= 0 ? 1 : static_cast<double>(ns) / ticks;
  // order: relaxed  as above
  if (ns >= known_after_ns) fixed.store(scale, std::memory_order_relaxed);
  return scale;
}

const io::reactor* reactor_of(const runtime_core& core) noexcept {
  return static_cast<const io::reactor*>(core.io.taken());
}

}  // namespace troupe::observing
