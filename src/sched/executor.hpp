// executor: where a runnable can be submitted. The one virtual seam between what runs and where.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sched/runnable.hpp"

namespace troupe::sched {

class executor {
 public:
  executor() = default;
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;
  virtual ~executor() = default;

  // Any thread. The runnable runs once on this executor, some time later. Needs no memory: whoever
  // has a runnable can get rid of it, also when memory is out.
  virtual void submit(runnable& item) noexcept = 0;

  // The same, for whichever of its threads is idle rather than the calling one.
  virtual void submit_to_any(runnable& item) noexcept { submit(item); }

  // The same, for a thread that sleeps, which is woken for it whoever else is awake and may take
  // something else first.
  virtual void submit_to_sleeper(runnable& item) noexcept { submit_to_any(item); }

  // Mail was left for a runnable that one of its threads holds: somebody should be awake to see it
  // in case that thread is long in a handler.
  virtual void attend() noexcept {}

  // Calls `look` for each runnable that one of its threads holds and does not run, where such are
  // kept outside of the queue. They stay as they are meanwhile: `look` must be short, and neither
  // submits nor sends. Any thread.
  struct not_quiet {
    unsigned threads = 0;       // so many could not be looked at
    std::size_t in_flight = 0;  // runnables of the others that are queued, or in their turn
  };
  virtual not_quiet for_each_quiet(const std::function<void(runnable&)>& look) {
    static_cast<void>(look);
    return {};
  }
  // Runnables that wait for one of its threads; a hint. Any thread.
  virtual std::size_t queued() const { return 0; }
};

class poller;

// The pool: an executor with threads of its own.
class policy : public executor {
 public:
  // Ends the threads, which finish the turn that they are in; what is queued is discarded.
  // Called once, when nobody submits any more.
  virtual void shut_down() = 0;

  // What a worker did so far.
  struct counters {
    std::uint64_t turns = 0;
    std::uint64_t steals = 0;  // acts of stealing
    std::uint64_t stolen = 0;  // runnables taken by them
    std::uint64_t wakes = 0;   // times that it was notified in its sleep
    std::uint64_t parks = 0;   // times that it slept
    std::uint64_t queued = 0;  // in its queue now
  };
  virtual std::vector<counters> count() const = 0;

  virtual unsigned workers() const noexcept = 0;

  // Once, on any thread: from now on the pool's threads wait for I/O, too. The poller lives as long
  // as the pool.
  virtual void attach(poller& io) = 0;
};

}  // namespace troupe::sched
