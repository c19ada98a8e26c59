// job_refs: counts a job's holders: its handles, and the list or queue that keeps it until a thread
// takes it out.
#pragma once

#include <cstdint>

#include "base/atomics.hpp"

namespace troupe::jobs {

template <class Word>
class job_refs {
 public:
  static constexpr std::uint32_t handle = 2, kept = 1;

  explicit job_refs(Word& word) noexcept : word_(word) {}

  // True for the last holder of all, which must free the job. Before that, `forget` is called at
  // most once, when the value may be destroyed.
  template <class Forget>
  bool drop_handle(const Forget& forget) noexcept {
    // order: acquire  the last holder sees the others' writes (H1, H2); pairs with both
    // compare_exchange and fetch_sub
    std::uint32_t seen = word_.load(std::memory_order_acquire);
    while (seen != handle) {
      if (seen == handle + kept) forget();
      // order: acq_rel  this holder's writes are seen by the holder that frees the job; acquire: as
      // above
      if (word_.compare_exchange_strong(seen, seen - handle, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        return false;
    }
    return true;
  }

  // The same for the list or queue that keeps the job.
  bool drop_kept() noexcept {
    // order: acquire  as above
    if (word_.load(std::memory_order_acquire) == kept) return true;
    // order: acq_rel  as above
    return word_.fetch_sub(kept, std::memory_order_acq_rel) == kept;
  }

  // No handle is left, and none will come. Exact for the thread that keeps the job, a hint for
  // others.
  // order: relaxed  a thread that had the last one has dropped it
  bool is_orphan() const noexcept { return word_.load(std::memory_order_relaxed) == kept; }

 private:
  Word& word_;
};

}  // namespace troupe::jobs
