// idle_life: what a worker does from when it has nothing to do until it has work.
//
// It becomes the thief or sleeps (roster.hpp). A thief that finds work hands its role on and goes to work.
// One that finds none sleeps, and keeps watch if others are busy: then it looks again after a while.
// No wake-up is lost because both ways out of the thief's role look at the inbox once more afterwards
// (docs/protocols/roster.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe::sched {

// Pool needs `roster_` and, for its idle workers:
//   bool ending()              the pool ends; whoever made it so notifies all parkers afterwards
//   bool take_work(Worker&)    true when the worker's queue got something; it is counted as busy then
//   bool inbox_has_some()      a hint
//   bool anyone_busy()         a hint
//   unsigned workers()         how many there are
//   void wake(Worker*)         notifies it, if it is one
// Worker needs `parker`, and what the roster wants.
// A watcher looks again after a time that doubles. While nobody is busy it goes on for a while, less often:
// bursts of work that follow each other need not wake a watcher each. After some 100 ms it sleeps for good.
template <class Pool, class Worker, int IdleWatchesMax = 48>
class idle_life {
 public:
  idle_life(Pool& pool, Worker& self) noexcept : pool_(pool), self_(self) {}

  // True when the worker has work in its queue and is counted as busy; false at the end.
  bool find_work() {
    while (!pool_.ending()) {
      if (!pool_.roster_.lead_or_sleep(self_) && !sleep_until_called()) return false;
      if (search()) return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t watch_first_ns = 50'000, watch_last_ns = 1'000'000, watch_idle_ns = 2'000'000;

  // The thief: looks, and keeps watch. Not the thief any more when it returns.
  bool search() {
    std::int64_t watch_ns = watch_first_ns;
    int idle_watches = 0;
    while (!pool_.ending()) {
      if (pool_.take_work(self_)) {
        pool_.roster_.hand_over();
        if (pool_.inbox_has_some()) pool_.wake(pool_.roster_.call());
        return true;
      }
      // A worker that becomes busy after this and has a backlog finds the roster lonely.
      const bool idle = !pool_.anyone_busy();
      idle_watches = idle ? idle_watches + 1 : 0;
      const bool watching = pool_.roster_.sleep(self_, pool_.workers() > 1 && idle_watches <= IdleWatchesMax);
      if (pool_.inbox_has_some() && pool_.roster_.resume(self_)) continue;
      if (!watching) {
        if (!sleep_until_called()) return false;
        watch_ns = watch_first_ns;
        continue;
      }
      do {
        if (self_.parker.wait_for(std::chrono::nanoseconds(watch_ns))) watch_ns = watch_first_ns;
        if (pool_.ending()) return false;
      } while (!pool_.roster_.resume(self_));
      watch_ns = std::min(2 * watch_ns, idle ? watch_idle_ns : watch_last_ns);
    }
    return false;
  }

  bool sleep_until_called() {
    for (;;) {
      self_.parker.wait();
      if (pool_.ending()) return false;
      if (pool_.roster_.called(self_)) return true;
    }
  }

  Pool& pool_;
  Worker& self_;
};

}  // namespace troupe::sched
