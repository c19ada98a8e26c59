// worker: one thread of the work-stealing pool, and what it owns.
//
// The biased lock guards the run queue, the linger ring and the plain members of every runnable whose
// `home` is this worker. The owner enters for each turn and each message that it sends; a thief revokes
// now and then.
//
// Lingering: a runnable whose mailbox has just run empty keeps its activation for a while, since most are
// addressed again within a few turns; then neither the wake-up nor the rest costs a locked instruction.
// The owner looks at the ring regularly for mail from other threads, and settles all before it sleeps.
// Invariants
//   W1  `linger_slot` of a runnable is s if and only if ring_[s] is that runnable.
//   W2  a runnable with a slot has this worker as its home.
//   W3  a worker that sleeps has an empty queue and an empty ring.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/parker.hpp"
#include "sched/biased_lock.hpp"
#include "sched/executor.hpp"
#include "sched/run_queue.hpp"

namespace troupe::sched {

class work_stealing;

class worker {
 public:
  static constexpr unsigned ring_size = run_queue::spare;        // runnables that may linger
  static constexpr unsigned steal_max = 64;         // runnables in one steal

  worker(work_stealing& pool, executor& executor, unsigned index) : pool(pool), executor(&executor), index(index) {}

  // The worker that the calling thread is, or null.
  static worker* current() noexcept { return current_; }
  static void set_current(worker* self) noexcept { current_ = self; }

  // Inside the lock: queues a runnable that is nowhere else, and makes it this worker's.
  void push(runnable& item) noexcept {
    // order: relaxed  read inside the lock only
    item.home.store(this, std::memory_order_relaxed);
    item.where = place::queued;
    queue.push(item);
  }

  // Inside the lock: mail has come for a runnable of this worker; if it lingers, it is queued.
  TROUPE_INLINE void wake_if_lingering(runnable& item) noexcept {
    const bool lingers = item.where == place::lingering;
    item.where = lingers ? place::queued : item.where;
    queue.push_if(item, lingers);
  }

  // Inside the lock.
  TROUPE_INLINE void linger(runnable& item) noexcept {
    item.where = place::lingering;
    if (item.linger_slot < 0) enter_ring(item);  // else it still has its slot from last time
  }
  void forget(runnable& item) noexcept;                      // takes it out of the ring (W1)
  void look_at_ring(unsigned slots) noexcept;                // queues what has mail
  void judge_lingering() noexcept;                           // at each housekeeping
  void settle_all() noexcept;                                // queues what has mail, lets the rest go
  // A thief's, while it has revoked the lock: makes at most half the queue the thief's. How many.
  unsigned give(worker& thief, runnable*& list, unsigned at_most) noexcept;

  work_stealing& pool;
  sched::executor* const executor;  // the pool, as what it is to those who submit
  const unsigned index;
  biased_lock<> lock;
  run_queue queue;
  std::atomic<std::uint64_t> turns{0};  // written by the owner
  std::atomic<bool> busy{false};        // written by the owner; a hint for thieves
  std::thread thread;

  // The roster's (roster.hpp), and where the worker sleeps.
  worker* next_sleeper = nullptr;
  bool called = false;
  base::parker parker;

  // What thieves last saw of this worker; guarded by the pool's steal mutex.
  std::uint64_t seen_turns = 0;
  std::int64_t seen_at_ns = 0;

  // The owner's own.
  std::uint64_t random = 0;
  std::int64_t stirred_at_ns = 0;
  std::uint64_t stirred_turns = 0;
  std::atomic<std::uint64_t> steals{0}, stolen{0};  // read by anyone

 private:
  void enter_ring(runnable& item) noexcept;
  void settle_or_queue(runnable& item) noexcept;

  inline static constinit thread_local worker* current_ = nullptr;
  std::array<runnable*, ring_size> ring_{};
  unsigned hand_ = 0;    // where the next one goes
  unsigned look_ = 0;    // where look_at_ring goes on
  unsigned used_ = 0;    // occupied slots

  // When nearly every turn is that of another actor, lingering only costs: then it is left out for a while.
  // Counted in housekeepings: a trial, of which the later half counts, then a verdict for `verdict_length`.
  static constexpr unsigned trial_length = 16, verdict_length = 128;
  unsigned phase_ = 0;
  unsigned entered_ = 0;      // the ring, in the later half of the trial
  bool lingering_pays_ = true;
};

}  // namespace troupe::sched
