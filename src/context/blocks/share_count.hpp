// share_count: who still needs a piece of a context's memory: the context that made it, and those
// who hold something persisted in it. Counts in a word of the owner's.
//
// Threads: any that has a share.
// Invariants
//   E1  the memory is freed once, when nobody has a share, and whoever frees it sees what all
//   others did. E2  the context takes memory for itself again only when it has the one share, and
//   sees what the others did.
// Argument: docs/protocols/escape.md. Model: tests/models/actor/escape.cpp.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::contexts {

template <class Word>
class share_count {
 public:
  explicit share_count(Word& word) noexcept : word_(word) {}

  // By one who has a share already.
  void add() noexcept {
    // order: relaxed  the share that the caller has keeps the memory; handing the new one on
    // publishes it
    word_.fetch_add(1, std::memory_order_relaxed);
  }

  // The caller's share is the only one. Nobody but the caller can change that.
  bool alone() const noexcept {
    // order: acquire  sees what those did that dropped theirs (E2); pairs with drop/acq_rel
    return word_.load(std::memory_order_acquire) == 1;
  }

  // True when it was the last one: the caller frees (E1).
  bool drop() noexcept {
    if (alone()) return true;
    // order: acq_rel  what the caller did is seen by the last one (E1), and the last one sees it;
    // pairs with itself and alone
    const std::uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
    TROUPE_INVARIANT(before != 0, "E1");
    return before == 1;
  }

 private:
  Word& word_;
};

}  // namespace troupe::contexts
