// How other threads are called to take part in forks and loops: not too often, and rather late than
// never.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>

#include "jobs/lazies/waiting.hpp"
#include "jobs/pool/job_pool.hpp"

namespace troupe::jobs {
namespace {

// The least time between two calls by one thread. It doubles with each call in vain, up to
// doublings_max times.
constexpr std::int64_t call_spacing_ns = 10'000;
constexpr std::uint32_t doublings_max = 7;
// An offer that came too soon is repeated after this time.
constexpr std::chrono::milliseconds late_offer_after(1);

}  // namespace

void job_pool::offer(fork_tree& of, std::int64_t now) noexcept {
  if (!shares()) return;
  // order: relaxed (all)  hints: a call too many or too late costs only time
  const std::int64_t spacing =
      call_spacing_ns << std::min(vain_calls_.load(std::memory_order_relaxed), doublings_max);
  std::int64_t& offered_at_ns = queue_here().offered_at_ns;
  if (!is_simulated() && now - offered_at_ns < spacing) return offer_later();
  const fork_tree* wants_work = &of;
  // order: seq_cst  after the push; pairs with help
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // order: relaxed  behind the fence
  while (wants_work != nullptr && !wants_work->wants_work.load(std::memory_order_relaxed))
    wants_work = wants_work->within;
  if (wants_work == nullptr && !runners_.wants_one()) return;
  offered_at_ns = now;
  if (wants_work != nullptr) wants_work->sleeper->parker.notify();
  call_runner();
}

void job_pool::offer_later() noexcept {
  // order: relaxed (both)  as in offer; the timers' lock publishes
  if (late_.armed.load(std::memory_order_relaxed) ||
      late_.armed.exchange(true, std::memory_order_relaxed))
    return;
  tasks::timers& clock = *runtime_.host.clock;
  try {
    tasks::arm(clock, late_, tasks::due_in(clock, late_offer_after));
  } catch (
      const std::exception&) {  // no thread for timers, or no memory: the next offer tries again
    late_.armed.store(false, std::memory_order_relaxed);  // order: relaxed  as above
  }
}

void job_pool::late_offer::make(timer& self) noexcept {
  auto& late = static_cast<late_offer&>(self);
  // order: relaxed  the timers' lock publishes it
  late.armed.store(false, std::memory_order_relaxed);
  if (!late.of.some_left()) return;
  wake_those_that_want_work(late.of);
  late.of.call_runner();
}

void job_pool::count_call(bool in_vain) noexcept {
  // order: relaxed (both)  as in offer
  vain_calls_.store(in_vain ? vain_calls_.load(std::memory_order_relaxed) + 1 : 0,
                    std::memory_order_relaxed);
}

}  // namespace troupe::jobs
