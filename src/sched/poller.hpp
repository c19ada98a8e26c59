// poller: where completed I/O comes from. One idle worker sleeps in it; busy workers look into it
// now and then.
//
// The one interface between the scheduler and the I/O layer (src/io/reactor/reactor.hpp). A runtime
// has no poller until its first operation that waits. Protocol: docs/protocols/io.md.
// Threads: the door lets one thread in at a time, which fetches events there; it serves them
// outside. Any thread may call wake() and serve().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/atomics.hpp"
#include "sched/fetched_events.hpp"
#include "sched/waiting_operations.hpp"

namespace troupe::sched {

// The door of a poller: a lock that no thread waits for. The thread that entered it is inside; only
// that thread may look and wait.
// Invariants
//   D1  one thread is inside at a time, and sees the writes of earlier threads there.
//   D2  a worker that finds the door shut and then sleeps without a limit has notified idle_workers
//       before; a thread that leaves looks at idle_workers after. Either the sleeper therefore
//       finds the door open, or the thread that left finds idle_workers::lonely() set.
template <class Atomics = base::std_atomics>
class basic_door {
 public:
  bool try_enter() noexcept {
    // order: relaxed  a hint
    if (shut_.load(std::memory_order_relaxed) != 0) return false;
    // order: acquire  sees the writes of the threads inside before (D1); pairs with leave/release
    return shut_.exchange(1, std::memory_order_acquire) == 0;
  }

  void leave() noexcept {
    // order: release  publishes the writes inside (D1); pairs with try_enter/acquire
    shut_.store(0, std::memory_order_release);
    // D2: pairs with the fences in idle_workers::sleep and idle_workers::stop_searching
    Atomics::full_fence();
  }

  // order: relaxed  behind the caller's fence
  bool is_open() const noexcept { return shut_.load(std::memory_order_relaxed) == 0; }

 private:
  typename Atomics::template atomic<std::uint32_t> shut_{0};
};

// "Inside" at a function: only the thread that is inside the door may call it.
class poller {
 public:
  poller() = default;
  poller(const poller&) = delete;
  poller& operator=(const poller&) = delete;
  virtual ~poller() = default;

  // Inside. Fetches the events that have arrived into `events`, which is empty, and publishes it
  // there. Returns true when there are some. `busy`: the caller has other turns to run and will
  // look again soon: a part of the events is enough.
  virtual bool poll(fetched_events& events, bool busy) noexcept = 0;
  // Inside. As poll(), but sleeps until something comes, the limit is over (null: none), or wake()
  // is called. A wake() before this call counts.
  virtual bool wait(fetched_events& events, const std::chrono::nanoseconds* limit) noexcept = 0;
  // How many parts its descriptors are divided into. With several, poll() and wait() look into all
  // of them.
  virtual unsigned shards() const noexcept { return 1; }
  // Outside. With several shards: as poll(), but looks into this one alone. Returns false at once
  // if another thread does so.
  virtual bool look(unsigned /*shard*/, fetched_events&, bool /*busy*/) noexcept { return false; }
  // Outside, by the thread that owns `events`; several threads may serve at a time. Serves the
  // events until there are none left: tries the operations that they are about, and ends the waits
  // of those that have completed. That submits their actors, from the calling thread.
  virtual void serve(fetched_events& events) noexcept = 0;
  // Any thread. The thread that sleeps in wait(), or the next one that calls it, returns from it.
  virtual void wake() noexcept = 0;

  // For metrics; any thread.
  struct counts {
    std::uint64_t waits = 0;      // operations so far that could not complete at once
    std::uint64_t in_flight = 0;  // of these, how many wait now
    std::uint64_t open = 0;       // open descriptors
  };
  virtual counts count() const noexcept = 0;

  // The runtime has ended; streams that outlive it may still be closed.
  virtual void retire() noexcept {}

  // Under the simulated policy: when the next event comes, if one does.
  virtual std::optional<std::int64_t> next_ns() { return std::nullopt; }
  // The same: whether an operation waits for something outside of the simulation, such as a child
  // process, which takes real time.
  virtual bool awaits_outside() noexcept { return false; }

  basic_door<> door;
  // The operations that wait and keep the program alive. A pool adds its workers' shares when the
  // poller is attached.
  waiting_operations waiting;
};

// How a rest ended.
enum class rested : std::uint8_t {
  over,      // its limit is over, or the wake-up was spurious
  notified,  // the parker was notified
  with_io,   // events were fetched; the worker is still inside
  due,       // of the worker of a caller: timers may be due, or it is asked to return
};

// A worker that has entered the door sleeps in the poller, where a notify of its parker wakes it.
// When this returns with_io, the worker is still inside; otherwise it has left the door.
template <class Poller, class Fetched, class Parker>
rested rest_inside(Poller& io, Fetched& fetched, Parker& parker,
                   const std::chrono::nanoseconds* limit) noexcept {
  if (!parker.begin_wait_elsewhere()) {
    io.door.leave();
    return rested::notified;
  }
  const bool came = io.wait(fetched, limit);
  const bool notified = parker.end_wait_elsewhere();
  if (came) return rested::with_io;
  io.door.leave();
  return notified ? rested::notified : rested::over;
}

}  // namespace troupe::sched
