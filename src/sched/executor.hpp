// executor: where a runnable can be submitted. The one virtual interface between runnables and
// the threads that run them.
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

  // Any thread. The runnable runs once on this executor, some time later. Needs no memory: a
  // runnable can always be submitted, even when memory has run out.
  virtual void submit(runnable& item) noexcept = 0;

  // The same, preferably on an idle thread of the executor rather than on the calling one.
  virtual void submit_to_any(runnable& item) noexcept { submit(item); }

  // The same, on a thread that sleeps: that thread is woken even if others are awake and may take
  // other work first.
  virtual void submit_to_sleeper(runnable& item) noexcept { submit_to_any(item); }

  // Mail was left for a runnable that one of this executor's threads holds. That thread may be in a
  // long handler: this call therefore wakes another thread to watch, if none is awake.
  virtual void attend() noexcept {}

  // Calls `look` for each runnable that a thread holds outside of its queue and is not running, if
  // the executor has such runnables. They do not change meanwhile: `look` must be short, and must
  // neither submit nor send. Any thread.
  struct not_quiet {
    unsigned threads = 0;       // threads that could not be looked at
    std::size_t in_flight = 0;  // runnables of the other threads that are queued or in their turn
  };
  virtual not_quiet for_each_quiet(const std::function<void(runnable&)>& look) {
    static_cast<void>(look);
    return {};
  }
  // How many runnables wait for a thread; a hint. Any thread.
  virtual std::size_t queued() const { return 0; }
};

class poller;

// The timers, for a pool whose worker expires them (runtime_options, policy::one_thread).
class timekeeper {
 public:
  // By that worker, in no turn and outside of its lock: expires the timers that are due. Returns
  // when the next one is due, or INT64_MAX.
  virtual std::int64_t expire_due() noexcept = 0;

 protected:
  timekeeper() = default;
  ~timekeeper() = default;
};

// The pool: an executor with threads of its own, or with the thread that calls run().
class policy : public executor {
 public:
  // Ends the threads, each after its current turn, and discards the queued runnables. Called once,
  // when no thread submits any longer.
  virtual void shut_down() = 0;

  // The work of one worker so far.
  struct counters {
    std::uint64_t turns = 0;
    std::uint64_t steals = 0;  // successful thefts
    std::uint64_t stolen = 0;  // runnables taken by these thefts
    std::uint64_t wakes = 0;   // how often it was notified while it slept
    std::uint64_t parks = 0;   // how often it slept
    std::uint64_t queued = 0;  // in its queue now
  };
  virtual std::vector<counters> count() const = 0;

  virtual unsigned workers() const noexcept = 0;

  // Into how many parts a poller should divide its descriptors for this pool.
  virtual unsigned io_shards() const noexcept { return 1; }

  // Called once, on any thread: from now on the pool's threads also wait for I/O. The poller must
  // live as long as the pool.
  virtual void attach(poller& io) = 0;

  // Any thread: a timer has been armed that is due before the time that expire_due() returned.
  virtual void expire_soon() noexcept {}
};

}  // namespace troupe::sched
