// idle_life: what a worker does from when it has nothing to do until it has work.
//
// It becomes the searcher or sleeps (idle_workers.hpp). A searcher that finds work hands its role
// on and goes to work. One that finds none sleeps, and keeps watch if others are busy: then it
// looks again after a while. It dozes when those are all stuck with nothing behind them: it looks
// ever more rarely, and counts as one that must be called. Where there is a poller (poller.hpp),
// who sleeps for good or dozes does so inside it, if nobody else does; with what comes there it
// goes to work, whatever its role. No wake-up is lost because both ways out of the searcher's role
// look once more afterwards: at the inbox, and, when nobody is left who watches, at what lies
// behind the busy ones (docs/protocols/idle_workers.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sched/poller.hpp"

namespace troupe::sched {

// Nanoseconds. A timed searcher looks again after a time that doubles. While nobody is busy it goes
// on for a while, less often: bursts of work that follow each other need not wake a timed searcher
// each. After some 100 ms it sleeps for good.
struct watch_times {
  static constexpr std::int64_t first = 50'000, last = 1'000'000, last_while_idle = 2'000'000,
                                last_dozing = 128'000'000;
  static constexpr int idle_watches_max = 48;
};

// Pool needs `idle_workers_` and, for its idle workers:
//   bool ending()              the pool ends; whoever made it so notifies all parkers afterwards
//   bool take_work(Worker&)    true when the worker's queue got something; it is counted as busy
//   then. What a call gave the
//                              worker is taken first
//   void take_gift(Worker&)    takes that only, for a worker that is busy
//   void hand_on(Worker&)      a searcher no more: calls others for what it has left, or cannot do
//   at once bool inbox_has_some()      a hint bool anyone_busy()         a hint std::uint64_t
//   turns_done() a hint; of all workers bool nothing_left(Worker&) behind a heavy fence: no other
//   worker has work lying where only a search finds it bool unattended()          there is a
//   poller, and nobody inside rested rest(Worker&, const nanoseconds* limit, bool inside)  sleeps
//   until notified or for `limit`; inside the
//                              poller if it may and can
//   void take_what_came(Worker&)  after rested::with_io: the worker is counted as busy, has what
//   came, and has left unsigned workers()         how many there are void wake(Worker*) notifies
//   it, if it is one
// Worker needs what the set of idle workers wants.
template <class Pool, class Worker, class Times = watch_times>
class idle_life {
 public:
  idle_life(Pool& pool, Worker& self) noexcept : pool_(pool), self_(self) {}

  // True when the worker has work in its queue and is counted as busy; false at the end.
  bool find_work() {
    while (!pool_.ending()) {
      if (!pool_.idle_workers_.lead_or_sleep(self_)) {
        const wakened how = sleep_until_called();
        if (how == wakened::to_end) return false;
        if (how == wakened::with_io) return true;
      }
      if (search()) return true;
    }
    return false;
  }

 private:
  enum class wakened : std::uint8_t { called, with_io, to_end };

  // The searcher: looks, and keeps watch. Not the searcher any more when it returns.
  bool search() {
    std::int64_t watch_ns = Times::first;
    std::uint64_t turns_before = 0;
    int idle_watches = 0;
    while (!pool_.ending()) {
      if (pool_.take_work(self_)) {
        pool_.idle_workers_.hand_over();
        pool_.hand_on(self_);
        look_back();
        return true;
      }
      const bool idle = !pool_.anyone_busy();
      idle_watches = idle ? idle_watches + 1 : 0;
      const std::uint64_t turns = pool_.turns_done();
      const bool dozing =
          !idle && watch_ns > Times::last && turns == turns_before && pool_.nothing_left(self_);
      turns_before = turns;
      const bool watch = pool_.workers() > 1 && idle_watches <= Times::idle_watches_max && !dozing;
      const bool timed = pool_.idle_workers_.sleep(self_, watch);
      if ((pool_.inbox_has_some() || left_alone()) && pool_.idle_workers_.resume(self_)) continue;
      if (!timed && !dozing) {
        const wakened how = sleep_until_called();
        if (how != wakened::called) return how == wakened::with_io;
        watch_ns = Times::first;
        continue;
      }
      watch_ns = std::min(watch_ns, idle     ? Times::last_while_idle
                                    : dozing ? Times::last_dozing
                                             : Times::last);
      do {
        const std::chrono::nanoseconds limit(watch_ns);
        const rested how = pool_.rest(self_, &limit, !timed);
        if (how == rested::with_io) return go_with_io();
        if (how == rested::notified) watch_ns = Times::first;
        if (pool_.ending()) return false;
      } while (!pool_.idle_workers_.resume(self_));
      watch_ns *= 2;
    }
    return false;
  }

  // Whether work is left where only a search finds it while nobody searches or watches. Who leaves
  // work later than this finds the set of idle workers lonely.
  bool left_alone() {
    // Whoever changes it after the caller did has the same duty.
    return is_lonely() && !pool_.nothing_left(self_);
  }

  // Nobody is the searcher any more, or nobody inside the poller: whoever made it so looks at what
  // that one would see.
  void look_back() {
    if (pool_.inbox_has_some() || left_alone() || (is_lonely() && pool_.unattended()))
      pool_.wake(pool_.idle_workers_.call());
  }

  // order: relaxed  as left_alone
  bool is_lonely() { return pool_.idle_workers_.lonely().load(std::memory_order_relaxed) != 0; }

  bool go_with_io() {
    const bool thief = pool_.idle_workers_.depart(self_);
    pool_.take_what_came(self_);
    if (thief) {
      pool_.take_gift(self_);
      pool_.idle_workers_.hand_over();
      pool_.hand_on(self_);
    }
    look_back();
    return true;
  }

  wakened sleep_until_called() {
    for (;;) {
      if (pool_.rest(self_, nullptr, true) == rested::with_io) {
        go_with_io();
        return wakened::with_io;
      }
      if (pool_.ending()) return wakened::to_end;
      if (pool_.idle_workers_.called(self_)) return wakened::called;
    }
  }

  Pool& pool_;
  Worker& self_;
};

}  // namespace troupe::sched
