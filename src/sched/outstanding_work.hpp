// outstanding_work: the count of the work that keeps the program alive.
//
// Counted: each busy worker of the pool; each runnable handed to an inbox or to a pinned thread,
// from before it is handed over until its turn has ended; each hold. Not counted: runnables in a
// busy worker's own queue, since that worker is counted.
// Invariants
//   C1  a thread that makes work is counted itself, or is an outside thread: the count therefore
//       never passes through zero while work is left.
//   C2  exactly one leave() returns true for each time the count comes to zero.
// Rejected: a searcher that scans all queues for the verdict (docs/decisions/outstanding_work.md).
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::sched {

template <class Atomics = base::std_atomics>
class basic_outstanding_work {
 public:
  // order: relaxed  the thing counted is published by the queue that it goes into
  void enter(std::int64_t n = 1) noexcept { count_.fetch_add(n, std::memory_order_relaxed); }

  // True when the count is zero now: the caller must notify the threads that wait for the end (C2).
  [[nodiscard]] bool leave(std::int64_t n = 1) noexcept {
    // order: acq_rel  all that was done before the end is seen by the threads that see the end;
    // pairs with itself and empty
    return count_.fetch_sub(n, std::memory_order_acq_rel) == n;
  }

  // `n` counted things become the caller's work. The caller is one counted thing for all of it: it
  // was counted before, or it keeps the count of one of them (C1).
  void take_over(std::int64_t n, bool counted_before) noexcept {
    const std::int64_t surplus = counted_before ? n : n - 1;
    [[maybe_unused]] const bool last = surplus != 0 && leave(surplus);
    TROUPE_INVARIANT(!last, "C1");
  }

  // order: acquire  sees the writes before the last leave; pairs with leave/acq_rel
  bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  // order: acquire  the same
  std::int64_t count() const noexcept { return count_.load(std::memory_order_acquire); }

 private:
  alignas(base::line_bytes) typename Atomics::template atomic<std::int64_t> count_{0};
};

using outstanding_work = basic_outstanding_work<>;

}  // namespace troupe::sched
