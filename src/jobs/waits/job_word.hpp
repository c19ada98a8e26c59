// job_word: the word of a job: a list of waiters until the job is done.
//
//   0      not done, and no thread waits
//   waiter not done; the newest waiter, each of which links to the next older one
//   1      done
//
// Invariants
//   W1  the result is complete before the word is `done`; a thread that reads `done` sees the
//       result.
//   W2  a waiter that attached is in the list that finish() returns, once; a waiter that was
//       refused or detached is not.
//   W3  the end of the job waits, directly or not, for the thread that detaches: finish() comes
//       after the detach.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"

namespace troupe::jobs {

// Waiter needs `Waiter* next`.
template <class Waiter, class Word>
class job_word {
 public:
  static constexpr std::uintptr_t done = 1;

  explicit job_word(Word& word) noexcept : word_(word) {}

  // order: acquire  sees the result (W1); pairs with finish/acq_rel
  bool is_done() const noexcept { return word_.load(std::memory_order_acquire) == done; }

  // False when the job is done already.
  bool attach(Waiter& waiter) noexcept {
    // order: acquire  sees the result when it is done (W1)
    std::uintptr_t seen = word_.load(std::memory_order_acquire);
    while (seen != done) {
      waiter.next = reinterpret_cast<Waiter*>(seen);
      // order: release  publishes the waiter to finish (W2); acquire: as above
      if (word_.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&waiter),
                                        std::memory_order_release, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  // Takes an attached waiter out, while others may attach. One thread at a time, and only while the
  // job cannot end (W3).
  void detach(Waiter& waiter) noexcept {
    auto seen = reinterpret_cast<std::uintptr_t>(&waiter);
    // order: acquire  sees the waiters that came since, in order to find the one before this; keeps
    // the others' published writes (W2)
    if (word_.compare_exchange_strong(
            seen, reinterpret_cast<std::uintptr_t>(static_cast<Waiter*>(waiter.next)),
            std::memory_order_acquire)) {
      return;
    }
    TROUPE_INVARIANT(seen != done, "W3");
    auto* at = reinterpret_cast<Waiter*>(seen);
    while (at->next != &waiter) at = at->next;
    at->next = static_cast<Waiter*>(waiter.next);
  }

  // The result is there. Returns the waiters, newest first; read a waiter's `next` before you
  // notify it.
  Waiter* finish() noexcept {
    // order: acq_rel  publishes the result (W1); sees the complete waiters, older ones too: each
    // compare-and-swap in between keeps the writes published earlier
    return reinterpret_cast<Waiter*>(word_.exchange(done, std::memory_order_acq_rel));
  }

 private:
  Word& word_;
};

}  // namespace troupe::jobs
