// job_refs: who holds a job: handles, and the list or queue that keeps it until somebody takes it
// out.
//
// The value goes with the last handle: a queue may keep a job for longer that somebody else has
// run.
//
//   2 for each handle, and 1 while it is kept
//
// Invariants
//   H1  the job is freed once, behind everything that its holders did.
//   H2  its value is forgotten once, by the last handle, if the job has ended by then and is still
//   kept; nobody looks at it any more.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::jobs {

template <class Word>
class job_refs {
 public:
  static constexpr std::uint32_t handle = 2, kept = 1;

  explicit job_refs(Word& word) noexcept : word_(word) {}

  // True for the last one of all, who frees the job. `forget` is called at most once, before that,
  // when the value may go.
  template <class Forget>
  bool drop_handle(const Forget& forget) noexcept {
    // order: acquire  the last one sees what the others did (H1, H2); pairs with both
    // compare_exchange and fetch_sub
    std::uint32_t seen = word_.load(std::memory_order_acquire);
    while (seen != handle) {
      if (seen == handle + kept) forget();
      // order: acq_rel  what this one did is seen by the one that frees it; acquire: as above
      if (word_.compare_exchange_strong(seen, seen - handle, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        return false;
    }
    return true;
  }

  // The same of who keeps it.
  bool drop_kept() noexcept {
    // order: acquire  as above
    if (word_.load(std::memory_order_acquire) == kept) return true;
    // order: acq_rel  as above
    return word_.fetch_sub(kept, std::memory_order_acq_rel) == kept;
  }

  // A hint for all but who keeps it: nobody will have a handle any more.
  // order: relaxed  a thread that had the last one has dropped it
  bool is_orphan() const noexcept { return word_.load(std::memory_order_relaxed) == kept; }

 private:
  Word& word_;
};

}  // namespace troupe::jobs
