// metrics: a runtime's counters since its start, and gauges of its present state.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

// Numbers of one worker, or of several threads together.
struct worker_metrics {
  // turns of actors and tasks, posted procedures, and slices of lazies; on the pool only
  std::uint64_t turns = 0;
  std::uint64_t messages = 0;  // messages handled, and coroutines resumed
  std::uint64_t spawned = 0;   // actors and tasks started
  std::uint64_t ended = 0;     // actors and tasks ended
  std::uint64_t lazies = 0;    // lazies run
  std::uint64_t steals = 0;    // how often the worker took work from another one
  std::uint64_t stolen = 0;    // actors and procedures that these steals moved
  std::uint64_t parks = 0;     // how often the worker parked
  std::uint64_t woken = 0;     // how often the worker was woken
  // runnables in its queue now; under policy::shared_queue the first worker has all of them
  std::uint64_t queued = 0;
};

// The result of runtime::metrics(). Sums are exact when the program is at rest. Counters never
// decrease. Each number is a count, unless its comment names a unit.
//
// Example:
//     troupe::runtime rt;
//     rt.post([] {});
//     rt.run();
//     const troupe::runtime_metrics so_far = rt.metrics();
//     std::cout << so_far.total.turns << " turns on " << so_far.workers.size() << " workers\n";
struct runtime_metrics {
  worker_metrics total;
  std::vector<worker_metrics> workers;  // the workers of the pool
  worker_metrics others;                // the main thread, pinned threads, and threads of yours

  std::uint64_t dead_letters = 0;  // messages that no actor handled
  std::uint64_t failures = 0;      // exceptions that left handlers, tasks and procedures
  // failures that were not kept, because of runtime_options::failures_kept and failure_bytes
  std::uint64_t failures_dropped = 0;
  // exceptions that were dropped with their result, for which no code waited any longer; an
  // exception that a thread outside of all runtimes drops counts in each runtime of the process
  std::uint64_t errors_dropped = 0;
  std::uint64_t lazies_dropped = 0;       // lazies that were dropped before a thread wanted them
  std::uint64_t resource_bytes_peak = 0;  // the most bytes that resources occupied at a time
  std::uint64_t io_waits = 0;             // I/O operations that had to wait

  // The state now.
  std::uint64_t failures_kept = 0;  // failures that neither run() nor take_errors() has given
  std::uint64_t failure_bytes = 0;  // their bytes, with the contexts to which they refer
  std::uint64_t actors = 0;         // actors and tasks that have not ended
  // turns and tasks that wait, or whose wait has just ended
  std::uint64_t suspended = 0;
  std::uint64_t timers_armed = 0;
  std::uint64_t io_in_flight = 0;  // I/O operations that are under way
  std::uint64_t io_open = 0;       // descriptors with at least one operation so far
  std::uint64_t lazies_queued = 0;
  std::uint64_t resource_bytes = 0;  // bytes that resources occupy
  std::uint64_t blocking_calls = 0;  // calls that run or wait for a thread
  // nanoseconds since the runtime was created; virtual under policy::simulated
  std::int64_t up_ns = 0;
};

}  // namespace troupe
