// tally: the counts of one thread about contexts. Each thread has its own, so that threads do
// not compete for a cache line. Readers add up all tallies.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "troupe/base/platform.hpp"

namespace troupe::contexts {

// Only its thread writes it. The values are differences: one thread may make a context that another
// releases.
struct tally {
  std::atomic<std::int64_t> active{0};
  std::atomic<std::int64_t> persisted{0};
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> rollbacks_kept{0};
  std::atomic<std::int64_t> created{0};
  std::uint64_t number = 0;  // a number of this tally
  tally* next = nullptr;
  tally* next_unused = nullptr;
};

extern thread_local tally* own_tally [[gnu::tls_model("initial-exec")]];
tally& begin_tally();  // throws std::bad_alloc in a thread that has made nothing yet

// Over all threads.
struct tally_sums {
  std::int64_t active, persisted, bytes, rollbacks_kept;
};
tally_sums sum_tallies();

// The thread's own tally. Do not use it in the body of a coroutine: it reads a thread-local.
TROUPE_INLINE tally& tally_here() {
  tally* const mine = own_tally;
  return mine != nullptr ? *mine : begin_tally();
}

TROUPE_INLINE std::int64_t count(tally& mine, std::atomic<std::int64_t> tally::*counter,
                                 std::int64_t difference) noexcept {
  // order: relaxed  a statistic; one writer
  const std::int64_t now = (mine.*counter).load(std::memory_order_relaxed) + difference;
  // order: relaxed  as above
  (mine.*counter).store(now, std::memory_order_relaxed);
  return now;
}
inline void count(std::atomic<std::int64_t> tally::*counter, std::int64_t difference) noexcept {
  try {
    count(tally_here(), counter, difference);
  } catch (const std::bad_alloc&) {
    // The thread ends or has just begun, and has no memory for a statistic.
  }
}

}  // namespace troupe::contexts
