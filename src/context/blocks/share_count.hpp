// share_count: counts who still needs a piece of a context's memory: the context that made it, and
// the holders of persisted objects in it. The count lies in a word of the owner.
//
// Threads: any that has a share.
// Invariants
//   E1  the memory is freed once, when no share is left, and the thread that frees it sees the
//       writes of all others.
//   E2  the context uses the memory again only when it has the only share, and it sees the writes
//       of the others.
//
// Argument: docs/protocols/escape.md.
// Model: tests/models/actor/escape.cpp.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::contexts {

template <class Word>
class share_count {
 public:
  explicit share_count(Word& word) noexcept : word_(word) {}

  // The caller has a share already.
  void add() noexcept {
    // order: relaxed  the caller's share keeps the memory; handing the new share on publishes it
    word_.fetch_add(1, std::memory_order_relaxed);
  }

  // True when the caller's share is the only one. Then only the caller can change that.
  bool alone() const noexcept {
    // order: acquire  sees the writes of the holders that dropped their shares (E2); pairs with
    // drop/acq_rel
    return word_.load(std::memory_order_acquire) == 1;
  }

  // Returns true when it dropped the last share: the caller frees the memory (E1).
  bool drop() noexcept {
    if (alone()) return true;
    // order: acq_rel  the last holder sees the caller's writes (E1), and as the last holder the
    // caller sees the others' writes; pairs with itself and alone
    const std::uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
    TROUPE_INVARIANT(before != 0, "E1");
    return before == 1;
  }

 private:
  Word& word_;
};

}  // namespace troupe::contexts
