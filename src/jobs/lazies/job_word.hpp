// job_word: the word of a job that is not done, whose waiters it lists, or that is done.
//
//   0       not done, nobody waits
//   waiter  not done; the newest of those who wait, each of which links to the next older
//   1       done
//
// Invariants
//   W1  the result is whole before the word says done, and whoever sees that sees the result.
//   W2  a waiter that attached is in the list that finish() gives, once; one that was refused, or
//   detached, is not. W3  who detaches is one that the end of the job waits for, by whatever way:
//   so finish() comes behind it.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::jobs {

// Waiter needs `Waiter* next`.
template <class Waiter, class Word>
class job_word {
 public:
  static constexpr std::uintptr_t done = 1;

  explicit job_word(Word& word) noexcept : word_(word) {}

  // order: acquire  sees the result (W1); pairs with finish/acq_rel
  bool is_done() const noexcept { return word_.load(std::memory_order_acquire) == done; }

  // False when it is done already.
  bool attach(Waiter& one) noexcept {
    // order: acquire  sees the result when it is done (W1)
    std::uintptr_t seen = word_.load(std::memory_order_acquire);
    while (seen != done) {
      one.next = reinterpret_cast<Waiter*>(seen);
      // order: release  publishes the waiter to finish (W2); acquire: as above
      if (word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&one),
                                        std::memory_order_release, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  // Takes out one that attached, while others may attach. One at a time, and only while the job
  // cannot end (W3).
  void detach(Waiter& one) noexcept {
    auto seen = reinterpret_cast<std::uintptr_t>(&one);
    // order: acquire  sees the waiters that came since, to find the one before it; keeps what the
    // others have published (W2)
    if (word_.compare_exchange_strong(
            seen, reinterpret_cast<std::uintptr_t>(static_cast<Waiter*>(one.next)),
            std::memory_order_acquire)) {
      return;
    }
    auto* at = reinterpret_cast<Waiter*>(seen);
    while (at->next != &one) at = at->next;
    at->next = static_cast<Waiter*>(one.next);
  }

  // The result is there. Who waits for it, newest first; read the next one before one of them is
  // told.
  Waiter* finish() noexcept {
    // order: acq_rel  publishes the result (W1); sees the waiters whole, older ones too: each
    // compare-and-swap in between keeps what earlier ones published
    return reinterpret_cast<Waiter*>(word_.exchange(done, std::memory_order_acq_rel));
  }

 private:
  Word& word_;
};

}  // namespace troupe::jobs
