// idle_life: the steps of a worker from the moment when its queue is empty until it has work again.
//
// States of an idle worker:
//   searcher       awake, looks for work. A searcher that finds work hands its role over and runs
//                  the work
//   timed searcher a searcher that found nothing while others are busy: it sleeps for a short time,
//                  then searches again
//   dozing         as the timed searcher, but no busy worker has ended a turn since the last look,
//                  and none has work waiting behind its turn. It looks ever more rarely, and counts
//                  as a sleeper that must be called
//   asleep         without a limit, until it is called
// Where there is a poller (poller.hpp), one worker that is asleep or dozing sleeps inside it. When
// I/O comes there, that worker handles it, whatever its state.
//
// No wake-up is lost, since a worker looks once more after it has left the searcher's role in
// either way: at the inbox, and, when no searcher or timed searcher is left, at the work waiting
// behind the busy workers' turns (docs/protocols/idle_workers.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sched/poller.hpp"

namespace troupe::sched {

// Nanoseconds. A timed searcher looks again after a time that doubles. While no worker is busy it
// continues for a while, less often: then bursts of work that follow each other need not wake a
// sleeper each. After some 100 ms it sleeps without a limit.
struct watch_times {
  static constexpr std::int64_t first = 50'000, last = 1'000'000, last_while_idle = 2'000'000,
                                last_dozing = 128'000'000;
  static constexpr int idle_watches_max = 48;
};

// Pool needs `idle_workers_` and, for its idle workers:
//   bool ending()                 the pool ends; the thread that set this notifies all parkers
//                                 afterwards
//   bool take_work(Worker&)       true when the worker's queue got something; the worker is counted
//                                 as busy then. It takes the work that a call gave it first
//   void take_gift(Worker&)       takes only the work that a call gave the worker, which is busy
//   void hand_on(Worker&)         after the searcher's role: calls others for the work that the
//                                 worker left, or cannot do at once
//   bool inbox_has_some()         a hint
//   bool anyone_busy()            a hint
//   std::uint64_t turns_done()    a hint; the sum over all workers
//   bool nothing_left(Worker&)    behind a heavy fence: no other worker has work waiting where only
//                                 a search finds it
//   bool unattended()             there is a poller, and no thread is inside
//   rested rest(Worker&, const nanoseconds* limit, bool inside) sleeps until notified or for
//                                                               `limit`; inside the poller if
//                                                               `inside` allows that and the door
//                                                               is open
//   void take_what_came(Worker&)  after rested::with_io: the worker is counted as busy and leaves
//                                 the poller. It serves the events that it has fetched after
//                                 find_work(), when it has left its other roles
//   void count_as_busy(Worker&)   after rested::due: the worker looks at the timers, and whether it
//                                 is asked to return, after find_work()
//   unsigned workers()            how many workers there are
//   void wake(Worker*)            notifies the worker, if not null
// Worker needs the members that idle_workers needs.
template <class Pool, class Worker, class Times = watch_times>
class idle_life {
 public:
  idle_life(Pool& pool, Worker& self) noexcept : pool_(pool), self_(self) {}

  // True when the worker is counted as busy: it has work in its queue, or something to look at;
  // false at the pool's end.
  bool find_work() {
    while (!pool_.ending()) {
      if (!pool_.idle_workers_.lead_or_sleep(self_)) {
        const wakened how = sleep_until_called();
        if (how == wakened::to_end) return false;
        if (how == wakened::with_work) return true;
      }
      if (search()) return true;
    }
    return false;
  }

 private:
  enum class wakened : std::uint8_t { called, with_work, to_end };

  // The searcher's role: searches, and sleeps as the timed searcher or dozing in between. When this
  // returns the worker has left the role.
  bool search() {
    std::int64_t watch_ns = Times::first;
    std::uint64_t turns_before = 0;
    int idle_watches = 0;
    while (!pool_.ending()) {
      if (pool_.take_work(self_)) {
        pool_.idle_workers_.stop_searching();
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
        if (how != wakened::called) return how == wakened::with_work;
        watch_ns = Times::first;
        continue;
      }
      watch_ns = std::min(watch_ns, idle     ? Times::last_while_idle
                                    : dozing ? Times::last_dozing
                                             : Times::last);
      do {
        const std::chrono::nanoseconds limit(watch_ns);
        const rested how = pool_.rest(self_, &limit, !timed);
        if (brings_work(how)) return go_with(how);
        if (how == rested::notified) watch_ns = Times::first;
        if (pool_.ending()) return false;
      } while (!pool_.idle_workers_.resume(self_));
      watch_ns *= 2;
    }
    return false;
  }

  // Whether work waits where only a search finds it, although no searcher and no timed searcher is
  // there. A thread that leaves such work later finds idle_workers::lonely() set.
  bool left_alone() {
    // A thread that leaves work after this look calls a worker itself.
    return is_lonely() && !pool_.nothing_left(self_);
  }

  // This worker has left the searcher's role or the poller: it makes the checks that its successor
  // would make, and calls one if needed.
  void look_back() {
    if (pool_.inbox_has_some() || left_alone() || (is_lonely() && pool_.unattended()))
      pool_.wake(pool_.idle_workers_.call());
  }

  // order: relaxed  as in worker::unwatched; for the cases that this misses see R4 of idle_workers
  bool is_lonely() { return pool_.idle_workers_.lonely().load(std::memory_order_relaxed) != 0; }

  static bool brings_work(rested how) noexcept {
    return how == rested::with_io || how == rested::due;
  }

  bool go_with(rested how) {
    const bool searcher = pool_.idle_workers_.depart(self_);
    how == rested::with_io ? pool_.take_what_came(self_) : pool_.count_as_busy(self_);
    if (searcher) {
      pool_.take_gift(self_);
      pool_.idle_workers_.stop_searching();
      pool_.hand_on(self_);
    }
    look_back();
    return true;
  }

  wakened sleep_until_called() {
    for (;;) {
      if (const rested how = pool_.rest(self_, nullptr, true); brings_work(how)) {
        go_with(how);
        return wakened::with_work;
      }
      if (pool_.ending()) return wakened::to_end;
      if (pool_.idle_workers_.called(self_)) return wakened::called;
    }
  }

  Pool& pool_;
  Worker& self_;
};

}  // namespace troupe::sched
