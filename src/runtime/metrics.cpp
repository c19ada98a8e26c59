#include "troupe/runtime/metrics.hpp"

#include <algorithm>

#include "runtime/runtime_core.hpp"
#include "sched/poller.hpp"
#include "task/running/running.hpp"

namespace troupe {
namespace {

using tasks::counted;

// A count that other threads lower may be read before the one that they raise: so a difference may
// be negative for an instant.
std::uint64_t not_negative(std::int64_t n) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
}

void add(worker_metrics& to, const worker_metrics& more) noexcept {
  for (const auto part : {&worker_metrics::turns, &worker_metrics::messages,
                          &worker_metrics::spawned, &worker_metrics::ended, &worker_metrics::lazies,
                          &worker_metrics::steals, &worker_metrics::stolen, &worker_metrics::parks,
                          &worker_metrics::woken, &worker_metrics::queued}) {
    to.*part += more.*part;
  }
}

}  // namespace

runtime_metrics runtime_core::metrics() {
  runtime_metrics now;
  for (const auto& of : pool->count()) {
    now.workers.push_back({.turns = of.turns,
                           .steals = of.steals,
                           .stolen = of.stolen,
                           .parks = of.parks,
                           .woken = of.wakes,
                           .queued = of.queued});
  }
  std::int64_t suspended = 0, alive = 0;
  tasks::for_each_count(*system, [&](unsigned number, const tasks::counts& of) {
    worker_metrics& to = number != 0 && number <= now.workers.size() ? now.workers[number - 1]
                         : simulated_ != nullptr                     ? now.workers.front()
                                                                     : now.others;
    add(to, {.messages = not_negative(of[counted::messages]),
             .spawned = not_negative(of[counted::spawned]),
             .ended = not_negative(of[counted::ended]),
             .lazies = not_negative(of[counted::lazies])});
    suspended += of[counted::suspended];
    alive += of[counted::spawned] - of[counted::ended];
  });
  for (const worker_metrics& one : now.workers) add(now.total, one);
  add(now.total, now.others);

  // order: relaxed  a statistic
  now.dead_letters = system->dead_letters.load(std::memory_order_relaxed);
  const failure_log::counts failed = failures.count();
  now.failures = failed.added;
  now.failures_dropped = failed.dropped;
  now.failures_kept = failed.kept;
  now.failure_bytes = failed.bytes;
  now.lazies_dropped = jobs->dropped();
  now.actors = not_negative(alive - internal_actors);
  now.suspended = not_negative(suspended);
  now.timers_armed = clock->count(&system->deadlocks.own_timer()).armed;
  if (const sched::poller* there = io.taken()) {
    const auto of = there->count();
    now.io_waits = of.waits;
    now.io_in_flight = of.in_flight;
    now.io_open = of.open;
  }
  now.lazies_queued = jobs->queued();
  now.resource_bytes = jobs->memory().used();
  now.resource_bytes_peak = jobs->memory().peak();
  now.blocking_calls = aside.count();
  now.up_ns = this->now().count();
  return now;
}

}  // namespace troupe
