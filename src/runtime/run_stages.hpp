// run_stages: whether a thread is in run(), and whether holds keep it there.
//
// Invariants
//   R1  One thread at a time is in run() or in a round of it.
//   R2  Holds are ignored from a stop until the run ends. After a deadline that was missed they
//       count again only when the stop has discarded everything.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/invariant.hpp"

namespace troupe {

// Thread: any.
class run_stage {
 public:
  // Returns false if another thread is in run().
  bool enter() noexcept {
    // order: acq_rel  a run takes over from the one before it
    return stage_.exchange(stage::inside, std::memory_order_acq_rel) != stage::inside;
  }
  void leave() noexcept {
    // order: relaxed  this thread has written it
    TROUPE_INVARIANT(stage_.load(std::memory_order_relaxed) == stage::inside, "R1");
    // order: release  hands over to the next run
    stage_.store(stage::left, std::memory_order_release);
  }
  // order: relaxed  for the thread that ends the runtime, which comes after all runs
  bool was_entered() const noexcept {
    return stage_.load(std::memory_order_relaxed) != stage::never;
  }

 private:
  enum class stage : std::uint8_t { never, inside, left };
  std::atomic<stage> stage_{stage::never};
};

// Under the mutex of the holds. Functions that return a bool return whether it has changed.
class hold_stage {
 public:
  bool are_ignored() const noexcept { return stage_ != stage::count; }

  bool ignore() noexcept {
    if (are_ignored()) return false;
    stage_ = stage::ignored;
    return true;
  }
  // The stop has missed its deadline.
  void set_overdue() noexcept {
    TROUPE_INVARIANT(are_ignored(), "R2");
    stage_ = stage::overdue;
  }
  // An overdue stop has discarded everything.
  bool end_overdue() noexcept {
    if (stage_ != stage::overdue) return false;
    stage_ = stage::count;
    return true;
  }
  bool count_again() noexcept {
    TROUPE_INVARIANT(stage_ != stage::overdue, "R2");
    if (!are_ignored()) return false;
    stage_ = stage::count;
    return true;
  }

 private:
  enum class stage : std::uint8_t { count, ignored, overdue };
  stage stage_ = stage::count;
};

}  // namespace troupe
