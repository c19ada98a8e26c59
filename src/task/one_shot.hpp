// one_shot: the word between the one that resolves a result and the one that waits for it.
//
//   0         not resolved, nobody waits
//   observer  not resolved, this one waits
//   1         resolved
//
// Invariants
//   O1  the result is whole before the word says resolved, and whoever sees that sees the result.
//   O2  an observer that attached is told exactly once, unless detach() gave it back.
//   O3  an observer that attach() refused, or that detach() gave back, is never touched by the resolver.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::tasks {

template <class Observer, class Word>
class one_shot {
 public:
  explicit one_shot(Word& word) noexcept : word_(word) {}

  // order: acquire  sees the result (O1); pairs with resolve/acq_rel
  bool resolved() const noexcept { return word_.load(std::memory_order_acquire) == done; }

  // False when it is resolved already.
  bool attach(Observer& waiting) noexcept {
    std::uintptr_t seen = 0;
    // order: release  publishes the observer to resolve/acq_rel; acquire: sees the result (O1)
    if (word_.compare_exchange_strong(seen, as_word(waiting), std::memory_order_release, std::memory_order_acquire)) return true;
    TROUPE_REQUIRE(seen == done, "O2");
    return false;
  }

  // True when the observer waits no more. False: the resolver tells it, or has told it.
  bool detach(Observer& waiting) noexcept {
    std::uintptr_t seen = as_word(waiting);
    // order: acquire  when it fails the result may be looked at (O1); relaxed: nothing was published
    return word_.compare_exchange_strong(seen, 0, std::memory_order_relaxed, std::memory_order_acquire);
  }

  // The result is there. The observer to be told, or null.
  Observer* resolve() noexcept {
    // order: acq_rel  publishes the result (O1); sees the observer whole
    const std::uintptr_t seen = word_.exchange(done, std::memory_order_acq_rel);
    TROUPE_REQUIRE(seen != done, "O1");
    return reinterpret_cast<Observer*>(seen);
  }

 private:
  static constexpr std::uintptr_t done = 1;
  static std::uintptr_t as_word(Observer& one) noexcept { return reinterpret_cast<std::uintptr_t>(&one); }
  Word& word_;
};

}  // namespace troupe::tasks
