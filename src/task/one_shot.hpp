// one_shot: the word shared by the resolver of a result and its taker, which may wait for it.
//
//   0        not resolved, and no observer waits
//   observer not resolved, and this observer waits
//   1        resolved
//   2        not resolved, and without a taker: there is none yet, or it has left
//
// Each side touches the result for the last time by resolve() or leave(), and the return value
// makes one of the two free it.
// Invariants
//   O1  the result is complete before the word is 1; a thread that reads 1 sees the result.
//   O2  an observer that attached is notified exactly once, unless detach() gave it back.
//   O3  an observer that attach() refused, or that detach() gave back, is never touched by the
//       resolver.
//   O4  the result is freed once, by the side that touches it last.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::tasks {

template <class Observer, class Word>
class one_shot {
 public:
  explicit one_shot(Word& word) noexcept : word_(word) {}

  static constexpr std::uintptr_t done = 1, untaken = 2;  // a word starts as `untaken`

  // order: acquire  sees the result (O1); pairs with resolve/acq_rel
  bool resolved() const noexcept { return word_.load(std::memory_order_acquire) == done; }

  // False when the result is resolved already.
  bool attach(Observer& waiting) noexcept {
    std::uintptr_t seen = 0;
    // order: release  publishes the observer to resolve/acq_rel; acquire: sees the result (O1)
    if (word_.compare_exchange_strong(seen, as_word(waiting), std::memory_order_release,
                                      std::memory_order_acquire))
      return true;
    TROUPE_REQUIRE(seen == done, "O2");
    return false;
  }

  // Returns true if the observer does not wait any longer. False: the resolver notifies it, or has
  // notified it.
  bool detach(Observer& waiting) noexcept {
    std::uintptr_t seen = as_word(waiting);
    // order: acquire  when it fails the result may be looked at (O1)
    return word_.compare_exchange_strong(seen, 0, std::memory_order_acquire);
  }

  struct resolved_for {
    Observer* observer;  // must be notified, if not null
    bool last;           // there is no taker: the caller must free the result (O4)
  };
  // The result is there.
  resolved_for resolve() noexcept {
    // order: acq_rel  publishes the result (O1); sees the complete observer, and the writes of a
    // taker that has left (O4)
    const std::uintptr_t seen = word_.exchange(done, std::memory_order_acq_rel);
    TROUPE_REQUIRE(seen != done, "O1");
    if (seen == untaken) return {nullptr, true};
    return {reinterpret_cast<Observer*>(seen), false};
  }

  // The taker leaves; none of its observers is attached. True when the result is resolved: then the
  // caller must free it (O4).
  bool leave() noexcept {
    if (resolved()) return true;
    std::uintptr_t seen = 0;
    // order: release  the taker's writes are seen by the side that frees the result (O4); acquire:
    // as resolved()
    if (word_.compare_exchange_strong(seen, untaken, std::memory_order_release,
                                      std::memory_order_acquire))
      return false;
    TROUPE_REQUIRE(seen == done, "O2");
    return true;
  }

 private:
  static std::uintptr_t as_word(Observer& observer) noexcept {
    return reinterpret_cast<std::uintptr_t>(&observer);
  }
  Word& word_;
};

}  // namespace troupe::tasks
