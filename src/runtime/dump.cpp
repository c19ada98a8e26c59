// Describes in words what a running program is doing and waiting for.
#include "actor/turn/running_handlers.hpp"
#include "actor/waits/suspended.hpp"
#include "runtime/runtime_core.hpp"

namespace troupe {
namespace {

constexpr std::size_t dumped_lines_max = 1'000;

std::string counted(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

// The handlers that run, and the blocking calls, which run or wait for a thread.
std::string runtime_core::running() const {
  // order: relaxed  a snapshot
  const std::size_t calls = blocking_calls_.load(std::memory_order_relaxed);
  const std::string names = actor::running_handlers(*system);
  if (calls == 0) return names;
  const std::string side_calls =
      calls == 1 ? "a blocking call" : std::to_string(calls) + " blocking calls";
  return names == "none" ? side_calls : names + "; " + side_calls;
}

std::string runtime_core::dump() {
  const actor::actor_system::gate_guard here(*system);
  if (!here.let_in()) return "troupe: dump: the runtime is ending\n";
  const tasks::timers::counts timers = clock->count(&system->deadlocks.own_timer());
  std::size_t holds = 0;
  {
    std::lock_guard lock(holds_mutex_);
    holds = static_cast<std::size_t>(holds_);
  }
  if (timers.strong != 0 && holds != 0) --holds;  // the strong timers' own hold
  std::string text = "troupe: dump: " + counted(pool->workers(), "worker") + ", " +
                     counted(pool->queued(), "turn") + " queued, " +
                     counted(timers.armed, "timer") + " armed, " + counted(holds, "hold") + ", " +
                     // order: relaxed  a statistic
                     counted(system->dead_letters.load(std::memory_order_relaxed), "dead letter") +
                     "\n  running: " + running();
  const actor::suspended_text waiting = actor::describe_suspended(*system, dumped_lines_max, true);
  text += "\n  suspended: " + std::to_string(waiting.count) + waiting.lines;
  return text + actor::describe(waiting.missed) + "\n";
}

}  // namespace troupe
