// biased_lock: a lock that its owner takes without a locked instruction.
//
// The owner, a worker, takes the lock for every message; a searcher takes it at most a few times in
// a millisecond.
// Owner: try_enter / leave, about 1 ns. Searchers (one of them is let in): try_revoke / restore, a
// few µs, of which a membarrier takes most; or ask_or_revoke / restore, which asks the owner first.
// An owner that comes to the lock within 5 µs answers, and no processor is interrupted.
// Invariants
//   B1  the owner is never between enter and leave while a searcher is between revoke and restore,
//       and one searcher is there at a time.
//   B2  the owner never waits in try_enter; a searcher waits for a bounded time in try_revoke.
//   B3  the writes of either side inside are seen by the other side inside.
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
  // Owner only. False when a searcher is inside, or if this cheap check cannot decide it: then call
  // try_enter().
  TROUPE_INLINE bool enter_at_once() noexcept {
    // order: relaxed  the owner's own
    TROUPE_INVARIANT(inside_.load(std::memory_order_relaxed) == 0, "B4");
    // order: relaxed  announced by the fence, not by the store
    inside_.store(1, std::memory_order_relaxed);
    Atomics::light_fence();
    // order: acquire  sees the last searcher's writes (B3); pairs with restore/release
    if (revoked_.load(std::memory_order_acquire) == 0) [[likely]]
      return true;
    leave();
    return false;
  }

  // Owner only. False when a searcher is inside: do the work another way, or try again.
  TROUPE_INLINE bool try_enter() noexcept { return enter_at_once() || enter_fenced(); }

  // Owner only. Waits while a searcher is inside, which is short.
  void enter() noexcept {
    for (unsigned attempt = 0; !try_enter(); ++attempt) Atomics::wait_or_sleep(attempt);
  }

  // Owner only.
  TROUPE_INLINE void leave() noexcept {
    // order: release  publishes the owner's writes (B3); pairs with try_revoke/acquire
    inside_.store(0, std::memory_order_release);
  }

  // Searcher only. False when another searcher is inside or asks, when the owner stayed inside (its
  // thread was preempted there), or when the kernel has no heavy fence: try another victim.
  bool try_revoke() noexcept { return announce(by_searcher) && try_revoke_by_fence(); }

  // The same for an owner that is likely to come to its lock soon: the searcher asks, and the owner
  // answers when it comes. Behind `Atomics::patience` without an answer it continues as try_revoke.
  bool ask_or_revoke() noexcept {
    if (!announce(asked)) return false;
    return await_answer() || !withdraw() || try_revoke_by_fence();
  }

  // Whether a searcher asks or is inside; a hint.
  bool is_revoked() const noexcept {
    // order: relaxed  a hint
    return revoked_.load(std::memory_order_relaxed) != unrevoked;
  }

  // Searcher only, after try_revoke or ask_or_revoke returned true.
  void restore() noexcept {
    // order: release  publishes the searcher's writes (B3); pairs with try_enter/acquire and
    // announce/acquire
    revoked_.store(unrevoked, std::memory_order_release);
  }

 private:
  // Searcher: its first step. False when the word is another searcher's.
  bool announce(std::uint32_t how) noexcept {
    std::uint32_t seen = unrevoked;
    // order: acquire  sees the last searcher's writes (B3); pairs with restore/release. The heavy
    // fence does that as well, and an answer, which continues the release sequence of the restore,
    // but ThreadSanitizer sees no fences. The owner learns of it behind the fence, or answers
    return revoked_.compare_exchange_strong(seen, how, std::memory_order_acquire,
                                            std::memory_order_relaxed);
  }

  // Searcher: true when the owner has answered, and the searcher is inside.
  bool await_answer() noexcept {
    for (typename Atomics::patience left; !left.is_over();) {
      // order: acquire  sees the owner's writes (B3); pairs with answer/release
      if (revoked_.load(std::memory_order_acquire) == by_searcher) return true;
    }
    return false;
  }

  // Searcher: from here on it asks no longer, but revokes. False when the owner answered before.
  bool withdraw() noexcept {
    std::uint32_t seen = asked;
    // order: acquire  when it fails, as in await_answer; otherwise the fence announces it. Some
    // compilers refuse a weaker order for the success
    return revoked_.compare_exchange_strong(seen, by_searcher, std::memory_order_acquire,
                                            std::memory_order_acquire);
  }

  // Searcher, after its word was stored.
  bool try_revoke_by_fence() noexcept {
    const bool fenced = Atomics::heavy_fence();
    for (int spin = 0; fenced && spin < spins_max; ++spin) {
      // order: acquire  sees the owner's writes (B3); pairs with leave/release
      if (inside_.load(std::memory_order_acquire) == 0) return true;
      Atomics::pause();
    }
    restore();
    return false;
  }

  // Owner, outside: lets a searcher in that asks.
  void answer() noexcept {
    std::uint32_t seen = asked;
    // order: relaxed  a hint
    if (revoked_.load(std::memory_order_relaxed) != asked) return;
    // order: release  publishes the owner's writes (B3); pairs with await_answer/acquire and
    // withdraw/acquire. On failure the searcher has withdrawn
    revoked_.compare_exchange_strong(seen, by_searcher, std::memory_order_release,
                                     std::memory_order_relaxed);
  }

  // Where the light fence does not suffice, `unrevoked` is not 0, so that the owner always takes
  // this path.
  TROUPE_NOINLINE bool enter_fenced() noexcept {
    answer();
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
  static constexpr std::uint32_t by_searcher = 1, asked = 3;
  const std::uint32_t unrevoked = Atomics::light_fences_suffice() ? 0 : 2;
  typename Atomics::template atomic<std::uint32_t> inside_{0};
  typename Atomics::template atomic<std::uint32_t> revoked_{unrevoked};
};

}  // namespace troupe::sched
