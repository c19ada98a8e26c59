// metrics: what a runtime has done so far, and what it is doing, in numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

// Of one worker, or of several threads together.
struct worker_metrics {
  // of actors and tasks, posted procedures and slices of lazies; on the pool only
  std::uint64_t turns = 0;
  std::uint64_t messages = 0;  // handled, and the parts of coroutines that went on
  std::uint64_t spawned = 0;   // actors and tasks
  std::uint64_t ended = 0;     // of these
  std::uint64_t lazies = 0;    // that it ran
  std::uint64_t steals = 0;    // times that it took work from another one
  std::uint64_t stolen = 0;    // actors and procedures moved by that
  std::uint64_t parks = 0;     // times that it slept
  std::uint64_t woken = 0;     // times that it was woken
  // runnables in its queue now; under policy::shared_queue the first one has them all
  std::uint64_t queued = 0;
};

// From runtime::metrics(). Sums are exact when the program is at rest; what counts up never goes
// back. Numbers of things, unless another unit is said.
//
// Example:
//     troupe::runtime rt;
//     rt.post([] {});
//     rt.run();
//     const troupe::runtime_metrics so_far = rt.metrics();
//     std::cout << so_far.total.turns << " turns on " << so_far.workers.size() << " workers\n";
struct runtime_metrics {
  worker_metrics total;
  std::vector<worker_metrics> workers;  // of the pool
  worker_metrics others;                // the main thread, pinned threads, and threads of yours

  std::uint64_t dead_letters = 0;  // messages that nobody handled
  std::uint64_t failures = 0;      // exceptions that left handlers, tasks and procedures
  // of these: not kept, by runtime_options::failures_kept and failure_bytes
  std::uint64_t failures_dropped = 0;
  std::uint64_t lazies_dropped = 0;       // that nobody wanted
  std::uint64_t resource_bytes_peak = 0;  // that resources took at most
  std::uint64_t io_waits = 0;             // operations that could not be done at once

  // Now.
  std::uint64_t failures_kept = 0;  // that no run() has thrown and nobody has taken
  std::uint64_t failure_bytes = 0;  // that these take, with the contexts that they refer to
  std::uint64_t actors = 0;         // that have not ended; tasks count, too
  // turns and tasks that wait for something, or have done so and go on just now
  std::uint64_t suspended = 0;
  std::uint64_t timers_armed = 0;
  std::uint64_t io_in_flight = 0;  // operations
  std::uint64_t io_open = 0;       // descriptors that operations were begun on
  std::uint64_t lazies_queued = 0;
  std::uint64_t resource_bytes = 0;  // that resources take
  std::uint64_t blocking_calls = 0;  // that run, or wait for a thread
  // nanoseconds since the runtime was made; virtual under policy::simulated
  std::int64_t up_ns = 0;
};

}  // namespace troupe
