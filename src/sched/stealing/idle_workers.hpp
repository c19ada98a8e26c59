// set of idle workers: which workers sleep, and which one of them is the searcher.
//
// Usually at most one idle worker is awake to look for work (the searcher). Whoever leaves work for
// several calls more of them beside it. While any worker is busy, one sleeper may be the timed
// searcher: it sleeps for a limited time and then takes a searcher's role by itself. Threads: any.
// Cost for a caller with work: a fence and two loads, a lock only if somebody must be woken.
// Invariants
//   R1  work published before call() is seen by an awake searcher, or call() returns a sleeper for
//   it. R2  a sleeper is returned by one call only, and is then a searcher. What the call gives it
//   is written before that. R3  sleepers are woken last in, first out (their caches are warm), the
//   timed searcher after all others: it keeps
//       watch over the one that was called.
//   R4  whoever leaves work where only a search finds it sees lonely() and calls, or whoever made
//   it lonely sees
//       the work. The two sides are worker::unwatched and idle_life.
// Proof sketch and the losing interleavings: docs/protocols/idle_workers.md.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomics.hpp"

namespace troupe::sched {

// Sleeper needs members `Sleeper* next_sleeper` and `bool called`, both the set of idle workers's
// own.
template <class Sleeper, class Atomics = base::std_atomics, class Mutex = std::mutex>
class idle_workers {
 public:
  // After publishing work: the sleeper that the caller must notify, or null when none is needed.
  Sleeper* call() noexcept {
    Atomics::full_fence();
    // order: relaxed  behind the fence; pairs with the fence in sleep()
    return awake() || sleepers_.load(std::memory_order_relaxed) == 0 ? nullptr : call_slowly();
  }

  // For work that is one sleeper's, whoever else is awake: the sleeper that the caller must notify,
  // or null when nobody sleeps. give(sleeper) comes before the sleeper can know that it was called.
  template <class Give>
  Sleeper* call_beside(const Give& give) noexcept {
    // order: relaxed  a hint: the caller has another way when nobody sleeps
    if (sleepers_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex_);
    Sleeper* const chosen = pick();
    if (chosen != nullptr) give(*chosen);
    return chosen;
  }

  // An idle worker that wants the searcher's role. False: somebody has it or watches, and the
  // worker is now a sleeper: it waits until called() says yes.
  bool lead_or_sleep(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (!awake() && timed_searcher_ == nullptr) {
      count_awake(+1);
      return true;
    }
    add(self);
    return false;
  }

  // A searcher found work and is going to do it. The caller looks at the inbox once more, and
  // call()s if there is more to do (R1).
  void hand_over() noexcept {
    {
      std::lock_guard lock(mutex_);
      count_awake(-1);
    }
    Atomics::full_fence();
  }

  // The searcher found nothing and is going to sleep. It must look for work once more between this
  // and sleeping (R1), and call resume() if there is some. True when it is the timed searcher now,
  // as it wished; somebody else may be.
  bool sleep(Sleeper& self, bool watch) noexcept {
    bool timed = false;
    {
      std::lock_guard lock(mutex_);
      count_awake(-1);
      timed = watch && timed_searcher_ == nullptr;
      if (timed) {
        timed_searcher_ = &self;
        count_sleepers(+1);
      } else {
        add(self);
      }
    }
    Atomics::full_fence();
    return timed;
  }

  // After sleep(): takes the searcher's role back, unless a call gave it already. The worker is the
  // searcher in either case when this returns true; false when another one is awake.
  bool resume(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (self.called) {
      self.called = false;
      return true;
    }
    if (awake()) return false;
    remove(self);
    count_awake(+1);
    return true;
  }

  // A sleeper that goes to work with what it found by itself. True when it was called meanwhile:
  // then it is the searcher, and hands over.
  bool depart(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (self.called) {
      self.called = false;
      return true;
    }
    remove(self);
    return false;
  }

  // A sleeper that woke: whether it was called (R2); else its waking was spurious and it sleeps on.
  bool called(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    const bool yes = self.called;
    self.called = false;
    return yes;
  }

  // Not zero while somebody sleeps and nobody searches or watches: whoever leaves work lying then,
  // where only a search finds it, calls (R4). To be read by its own address, since a call() would
  // cost too much.
  const typename Atomics::template atomic<std::uint32_t>& lonely() const noexcept {
    return lonely_;
  }

 private:
  // order: relaxed  call() puts a full fence in front; writers hold the mutex
  bool awake() const noexcept { return awake_.load(std::memory_order_relaxed) != 0; }

  void count_awake(int change) noexcept {
    // order: relaxed  sleep() and hand_over() put a full fence behind; writers hold the mutex
    awake_.store(awake_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
                 std::memory_order_relaxed);
    update_lonely();
  }

  void count_sleepers(int change) noexcept {
    // order: relaxed  sleep() puts a full fence behind; writers hold the mutex
    sleepers_.store(sleepers_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
                    std::memory_order_relaxed);
    update_lonely();
  }

  void update_lonely() noexcept {
    // order: relaxed  a hint
    const bool sleepers = sleepers_.load(std::memory_order_relaxed) != 0;
    lonely_.store(sleepers && !awake() && timed_searcher_ == nullptr ? 1 : 0,
                  std::memory_order_relaxed);
  }

  Sleeper* call_slowly() noexcept {
    std::lock_guard lock(mutex_);
    return awake() ? nullptr : pick();
  }

  // A sleeper, made a searcher (R2, R3); null when there is none.
  Sleeper* pick() noexcept {
    Sleeper* chosen = idle_ != nullptr ? idle_ : timed_searcher_;
    if (chosen == nullptr) return nullptr;
    remove(*chosen);
    chosen->called = true;
    count_awake(+1);
    return chosen;
  }

  void add(Sleeper& self) noexcept {
    self.next_sleeper = idle_;
    idle_ = &self;
    count_sleepers(+1);
  }

  void remove(Sleeper& self) noexcept {
    if (timed_searcher_ == &self) {
      timed_searcher_ = nullptr;
    } else {
      auto* link = &idle_;
      while (*link != &self) link = &(*link)->next_sleeper;
      *link = self.next_sleeper;
    }
    count_sleepers(-1);
  }

  Mutex mutex_;
  typename Atomics::template guarded<Sleeper*> idle_ = nullptr;  // last in first
  // sleeps for a limited time
  typename Atomics::template guarded<Sleeper*> timed_searcher_ = nullptr;
  // searchers: called, or searching
  alignas(base::line_bytes) typename Atomics::template atomic<std::uint32_t> awake_{0};
  typename Atomics::template atomic<std::uint32_t> sleepers_{0};
  typename Atomics::template atomic<std::uint32_t> lonely_{0};
};

}  // namespace troupe::sched
