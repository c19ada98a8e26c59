// biased_lock: a lock that its owner takes without a locked instruction.
//
// The owner, a worker, takes the lock for every message; a searcher takes it at most a few times in
// a millisecond.
// Owner: try_enter / leave, about 1 ns. Searcher (one at a time): try_revoke / restore, a few µs.
// Invariants
//   B1  the owner is never between enter and leave while a searcher is between revoke and restore.
//   B2  the owner never waits in try_enter; a searcher waits for a bounded time in try_revoke.
//   B3  what either side wrote inside is seen by the other side inside.
//   B4  the owner does not enter while it is inside: its first leave would let a searcher in.
// Rejected: a spin-lock (5 ns for each message even without contention); Chase-Lev (it guards a
// deque, not the mailboxes beside it). Proof sketch and the losing interleavings:
// docs/protocols/biased_lock.md.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::sched {

template <class Atomics = base::std_atomics>
class biased_lock {
 public:
  // Owner only. False when a searcher is inside, or when this cheap check cannot tell: then call
  // try_enter().
  TROUPE_INLINE bool enter_at_once() noexcept {
    // order: relaxed  the owner's own
    TROUPE_INVARIANT(inside_.load(std::memory_order_relaxed) == 0, "B4");
    // order: relaxed  announced by the fence, not by the store
    inside_.store(1, std::memory_order_relaxed);
    Atomics::light_fence();
    // order: acquire  sees what the last searcher did (B3); pairs with restore/release
    if (revoked_.load(std::memory_order_acquire) == 0) [[likely]]
      return true;
    leave();
    return false;
  }

  // Owner only. False when a searcher is inside: do the work another way, or try again.
  TROUPE_INLINE bool try_enter() noexcept { return enter_at_once() || enter_fenced(); }

  // Owner only. Waits while a searcher is inside, which is short.
  void enter() noexcept {
    for (int spin = 0; !try_enter(); ++spin) Atomics::wait_a_little(spin);
  }

  // Owner only.
  TROUPE_INLINE void leave() noexcept {
    // order: release  publishes what the owner did (B3); pairs with try_revoke/acquire
    inside_.store(0, std::memory_order_release);
  }

  // Searcher only. False when the owner stayed inside (its thread was preempted there), or when the
  // kernel has no heavy fence: try another victim.
  bool try_revoke() noexcept {
    // order: relaxed  announced by the fence, not by the store
    revoked_.store(by_searcher, std::memory_order_relaxed);
    const bool fenced = Atomics::heavy_fence();
    for (int spin = 0; fenced && spin < spins_max; ++spin) {
      // order: acquire  sees what the owner did (B3); pairs with leave/release
      if (inside_.load(std::memory_order_acquire) == 0) return true;
      Atomics::pause();
    }
    restore();
    return false;
  }

  // Searcher only, after try_revoke returned true.
  void restore() noexcept {
    // order: release  publishes what the searcher did (B3); pairs with try_enter/acquire
    revoked_.store(unrevoked, std::memory_order_release);
  }

 private:
  // Where the light fence does not suffice, `unrevoked` is not 0, so that the owner always takes
  // this path.
  TROUPE_NOINLINE bool enter_fenced() noexcept {
    if (unrevoked == 0) return false;
    // order: relaxed  announced by the fence, not by the store
    inside_.store(1, std::memory_order_relaxed);
    Atomics::full_fence();
    // order: acquire  as in enter_at_once
    if (revoked_.load(std::memory_order_acquire) == unrevoked) return true;
    leave();
    return false;
  }

  static constexpr int spins_max = Atomics::lock_spins;
  static constexpr std::uint32_t by_searcher = 1;
  const std::uint32_t unrevoked = Atomics::light_fences_suffice() ? 0 : 2;
  typename Atomics::template atomic<std::uint32_t> inside_{0};
  typename Atomics::template atomic<std::uint32_t> revoked_{unrevoked};
};

}  // namespace troupe::sched
