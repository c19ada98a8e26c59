// caller_life: a pool without a thread: the thread that calls work() is its only worker
// (docs/decisions/one_thread.md). Between turns that thread also expires the timers, and it returns
// when it is asked back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "sched/executor.hpp"
#include "sched/poller.hpp"
#include "sched/stealing/caller_flags.hpp"
#include "sched/stealing/idle_life.hpp"
#include "sched/waiting_operations.hpp"

namespace troupe::sched {

enum class rounds : std::uint8_t { one, all };

// In this scope the calling thread is that worker. Its number stays 0, as on each thread that the
// pool has not started: the counts of a thread are kept by its number.
template <class Worker>
class as_worker {
 public:
  explicit as_worker(Worker& self) noexcept : before_(Worker::current()) {
    Worker::set_current(&self);
  }
  as_worker(const as_worker&) = delete;
  as_worker& operator=(const as_worker&) = delete;
  ~as_worker() { Worker::set_current(before_); }

 private:
  Worker* const before_;
};

// Pool: as idle_life's, with its functions for a worker (work_stealing.hpp).
template <class Pool, class Worker>
class caller_life {
 public:
  // No timers: the pool has threads, and none of the other functions is called.
  caller_life(Pool& pool, timekeeper* time) noexcept : pool_(pool), time_(time) {}
  bool is_used() const noexcept { return time_ != nullptr; }

  // The calling thread is the worker until it is asked back, until that time, or, for
  // `rounds::one`, until it has done some work. One thread at a time, in no turn. Work that is left
  // stays in the worker's queue. Returns whether turns were run.
  bool work(std::int64_t until_ns, rounds how_many);
  // Any thread: the thread in work(), or the next one that calls it, returns soon.
  void ask_back() noexcept;
  // Any thread: as policy::expire_soon.
  void expire_soon() noexcept;

  // For the pool, at its end.
  void end(Worker& self) noexcept;
  // By the worker, between two turns.
  bool returns() const noexcept;
  bool is_due(std::int64_t now) const noexcept;
  // By the worker, in no turn and outside of its lock.
  void expire() noexcept;
  // By the worker, which is asleep for the set of idle workers; inside `io`, if that is not null
  // and its door is open.
  rested rest(Worker& self, poller* io) noexcept;

 private:
  // A round ends after this time, or with the turn that lasts longer.
  static constexpr std::int64_t round_ns = 1'000'000;

  Worker& self() const noexcept { return *pool_.workers_.front(); }
  void notify() noexcept;

  Pool& pool_;
  timekeeper* const time_;
  // Written by the worker: the time of the next timer at its last look, and the time by which it
  // returns.
  std::int64_t due_ns_ = 0, return_at_ns_ = 0;
  caller_flags flags_;
};

// A worker that returns with work in its queue stays counted as busy.
template <class Pool, class Worker>
bool caller_life<Pool, Worker>::work(std::int64_t until_ns, rounds how_many) {
  Worker& self = this->self();
  const as_worker<Worker> scope(self);
  // order: relaxed (all)  written by this thread
  const std::uint64_t turns = self.turns.load(std::memory_order_relaxed);
  if (self.busy.load(std::memory_order_relaxed)) busy_share::set_current(&self.waits);
  return_at_ns_ = until_ns;
  self.expect_long_turns();
  idle_life<Pool, Worker> idle(pool_, self);
  while (self.busy.load(std::memory_order_relaxed) || idle.find_work()) {
    if (how_many == rounds::one) return_at_ns_ = base::now_ns() + round_ns;
    if (pool_.run_queue_dry(self)) pool_.become_idle(self);
    return_at_ns_ = until_ns;
    // order: relaxed  as above
    const bool has_worked = self.turns.load(std::memory_order_relaxed) != turns;
    if ((how_many == rounds::one && has_worked) || returns()) break;
  }
  flags_.returned();
  busy_share::set_current(nullptr);
  // order: relaxed  as above
  return self.turns.load(std::memory_order_relaxed) != turns;
}

template <class Pool, class Worker>
void caller_life<Pool, Worker>::end(Worker& self) noexcept {
  const as_worker<Worker> scope(self);
  pool_.discard_all(self);
  // order: relaxed  its own
  if (self.busy.load(std::memory_order_relaxed)) pool_.become_idle(self);
}

template <class Pool, class Worker>
void caller_life<Pool, Worker>::ask_back() noexcept {
  flags_.ask_back();
  notify();
}

template <class Pool, class Worker>
void caller_life<Pool, Worker>::expire_soon() noexcept {
  flags_.expire_soon();
  notify();
}

// The worker itself looks after its turn.
template <class Pool, class Worker>
void caller_life<Pool, Worker>::notify() noexcept {
  Worker& self = this->self();
  if (Worker::current() == &self) {
    self.expect_long_turns();
  } else {
    pool_.notify(self);
  }
}

template <class Pool, class Worker>
bool caller_life<Pool, Worker>::returns() const noexcept {
  return flags_.is_asked_back() || (return_at_ns_ != INT64_MAX && base::now_ns() >= return_at_ns_);
}

template <class Pool, class Worker>
bool caller_life<Pool, Worker>::is_due(std::int64_t now) const noexcept {
  return flags_.expires_soon() || now >= due_ns_ || returns();
}

template <class Pool, class Worker>
void caller_life<Pool, Worker>::expire() noexcept {
  if (!flags_.expires_soon() && base::now_ns() < due_ns_) return;
  flags_.begin_expiring();
  due_ns_ = time_->expire_due();
}

template <class Pool, class Worker>
rested caller_life<Pool, Worker>::rest(Worker& self, poller* io) noexcept {
  const std::int64_t now = base::now_ns();
  if (is_due(now)) return rested::due;
  const std::int64_t until_ns = std::min(due_ns_, return_at_ns_);
  const std::chrono::nanoseconds span(until_ns - now);
  const std::chrono::nanoseconds* const limit = until_ns == INT64_MAX ? nullptr : &span;
  rested how = rested::notified;
  if (io != nullptr && io->door.try_enter()) {
    how = rest_inside(*io, self.fetched, self.parker, limit);
  } else if (limit == nullptr) {
    self.parker.wait();
  } else if (!self.parker.wait_for(*limit)) {
    how = rested::over;
  }
  return how != rested::with_io && is_due(base::now_ns()) ? rested::due : how;
}

}  // namespace troupe::sched
