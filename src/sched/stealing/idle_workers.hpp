// idle_workers: which workers sleep, and which worker is the searcher.
//
// Usually at most one idle worker (one for each 16 workers), the searcher, is awake and looks for
// work. A thread that leaves
// work for several calls more sleepers. While any worker is busy, one sleeper may be the timed
// searcher: it sleeps for a limited time and then becomes a searcher by itself. Threads: any. Cost
// for a caller that has work: a fence and two loads; a lock only if a sleeper must be woken.
// Invariants
//   R1  work published before call() is seen by an awake searcher, or call() returns a sleeper for
//       it.
//   R2  a sleeper is returned by one call only, and is then a searcher. The call writes its gift
//       before that.
//   R3  sleepers are woken last in, first out (their caches are warm). The timed searcher comes
//       after all others: it keeps watch over the sleeper that was called.
//   R4  a thread that leaves work where only a search finds it sees lonely() set and calls, or the
//       thread that set lonely() sees the work. The two sides are worker::unwatched and idle_life.
// Proof sketch and the losing interleavings: docs/protocols/idle_workers.md.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::sched {

// Sleeper needs members `Sleeper* next_sleeper` and `bool called`, which only idle_workers uses.
template <class Sleeper, class Atomics = base::std_atomics, class Mutex = std::mutex>
class idle_workers {
 public:
  // Before the first worker begins: how many idle workers search at a time without a call.
  void set_searchers_max(unsigned most) noexcept { searchers_max_ = most; }

  // After publishing work. Returns the sleeper that the caller must notify, or null when none is
  // needed.
  Sleeper* call() noexcept {
    Atomics::full_fence();
    // order: relaxed  behind the fence; pairs with the fence in sleep()
    return awake() || sleepers_.load(std::memory_order_relaxed) == 0 ? nullptr : call_slowly();
  }

  // For work that is given to one sleeper, even if searchers are awake. Returns the sleeper that
  // the caller must notify, or null when no worker sleeps. give(sleeper) runs before the sleeper
  // can know that it was called.
  template <class Give>
  Sleeper* call_beside(const Give& give) noexcept {
    // order: relaxed  a hint: the caller has another way when no worker sleeps
    if (sleepers_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex_);
    Sleeper* const chosen = pick();
    if (chosen != nullptr) give(*chosen);
    return chosen;
  }

  // An idle worker applies for the searcher's role. False when there are enough searchers, or a
  // timed searcher: the worker is now a sleeper, and waits until called() is true.
  bool lead_or_sleep(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (has_room_for_searcher() && timed_searcher_ == nullptr) {
      count_awake(+1);
      return true;
    }
    add(self);
    return false;
  }

  // A searcher found work and will do it. The caller looks at the inbox once more, and call()s if
  // there is more to do (R1).
  void stop_searching() noexcept {
    {
      std::lock_guard lock(mutex_);
      count_awake(-1);
    }
    Atomics::full_fence();
  }

  // A searcher found nothing and will sleep. Before it sleeps it must look for work once more (R1),
  // and call resume() if there is some. True when the worker is now the timed searcher: `watch` was
  // true, and there was none.
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

  // After sleep(). True when the worker is the searcher again: it takes the role back, or a call
  // has given it the role meanwhile. False when enough other searchers are awake.
  bool resume(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (self.called) {
      self.called = false;
      return true;
    }
    if (!has_room_for_searcher()) return false;
    remove(self);
    count_awake(+1);
    return true;
  }

  // For a sleeper that has found work by itself. True when it was called meanwhile: then it is a
  // searcher, and must hand over.
  bool depart(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    if (self.called) {
      self.called = false;
      return true;
    }
    remove(self);
    return false;
  }

  // For a sleeper that woke: whether it was called (R2). If not, the wake-up was spurious, and it
  // sleeps again.
  bool called(Sleeper& self) noexcept {
    std::lock_guard lock(mutex_);
    const bool yes = self.called;
    self.called = false;
    return yes;
  }

  // Not zero while workers sleep and there is no searcher and no timed searcher: a thread that
  // leaves work where only a search finds it must then call() (R4). A reference to the word itself,
  // since a call() for each message would cost too much.
  const typename Atomics::template atomic<std::uint32_t>& lonely() const noexcept {
    return lonely_;
  }

 private:
  // order: relaxed  call() has a full fence before it; writers hold the mutex
  bool awake() const noexcept { return awake_.load(std::memory_order_relaxed) != 0; }

  bool has_room_for_searcher() const noexcept {
    // order: relaxed  under the mutex, as its writers
    return awake_.load(std::memory_order_relaxed) < searchers_max_;
  }

  void count_awake(int change) noexcept {
    // order: relaxed  sleep() and stop_searching() pass a full fence after it; writers hold the
    // mutex
    awake_.store(awake_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
                 std::memory_order_relaxed);
    update_lonely();
  }

  void count_sleepers(int change) noexcept {
    // order: relaxed  sleep() has a full fence after it; writers hold the mutex
    sleepers_.store(sleepers_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change),
                    std::memory_order_relaxed);
    update_lonely();
  }

  void update_lonely() noexcept {
    // order: relaxed  a hint
    const bool sleepers = sleepers_.load(std::memory_order_relaxed) != 0;
    const std::uint32_t now = sleepers && !awake() && timed_searcher_ == nullptr ? 1 : 0;
    // order: relaxed (both)  a hint; writers hold the mutex. A store that changes nothing would
    // take the line away from all who read it after each turn.
    if (lonely_.load(std::memory_order_relaxed) != now)
      lonely_.store(now, std::memory_order_relaxed);
  }

  Sleeper* call_slowly() noexcept {
    std::lock_guard lock(mutex_);
    return awake() ? nullptr : pick();
  }

  // Takes a sleeper, and makes it a searcher (R2, R3); null when there is none.
  Sleeper* pick() noexcept {
    Sleeper* chosen = idle_ != nullptr ? idle_ : timed_searcher_;
    if (chosen == nullptr) return nullptr;
    TROUPE_INVARIANT(timed_searcher_ != chosen || idle_ == nullptr, "R3");
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
  unsigned searchers_max_ = 1;
  typename Atomics::template guarded<Sleeper*> idle_ = nullptr;  // last in, first out
  // sleeps for a limited time
  typename Atomics::template guarded<Sleeper*> timed_searcher_ = nullptr;
  // how many searchers there are: called, or searching
  alignas(base::line_bytes) typename Atomics::template atomic<std::uint32_t> awake_{0};
  typename Atomics::template atomic<std::uint32_t> sleepers_{0};
  alignas(base::line_bytes) typename Atomics::template atomic<std::uint32_t> lonely_{0};
};

}  // namespace troupe::sched
