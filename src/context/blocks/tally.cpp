#include "context/blocks/tally.hpp"

#include <mutex>
#include <utility>

#include "base/threads/at_fork.hpp"

namespace troupe::contexts {
namespace {

// The counts of a thread stay when it ends, and the next new thread uses its tally. Never
// destroyed.
struct all_tallies {
  std::mutex mutex;
  tally* first = nullptr;
  tally* unused = nullptr;
  std::uint64_t count = 0;

  static all_tallies& get() {
    static auto& instance = *[] {
      auto* const tallies = new all_tallies;
      base::hold_at_fork(tallies->mutex);
      return tallies;
    }();
    return instance;
  }
};

struct leaver {
  bool armed = false;
  ~leaver() {
    tally* const mine = std::exchange(own_tally, nullptr);
    if (mine == nullptr) return;
    all_tallies& all = all_tallies::get();
    std::lock_guard lock(all.mutex);
    mine->next_unused = all.unused;
    all.unused = mine;
  }
};
thread_local leaver at_thread_end;

std::int64_t sum(std::atomic<std::int64_t> tally::*counter) {
  std::int64_t total = 0;
  // order: relaxed  a statistic
  for (const tally* tally = all_tallies::get().first; tally != nullptr; tally = tally->next)
    total += (tally->*counter).load(std::memory_order_relaxed);
  return total;
}

}  // namespace

thread_local tally* own_tally = nullptr;

TROUPE_NOINLINE tally& begin_tally() {
  all_tallies& all = all_tallies::get();
  std::lock_guard lock(all.mutex);
  tally* mine = all.unused;
  if (mine != nullptr) {
    all.unused = mine->next_unused;
  } else {
    mine = new tally;
    mine->number = all.count++;
    mine->next = all.first;
    all.first = mine;
  }
  own_tally = mine;
  at_thread_end.armed = true;
  return *mine;
}

tally_sums sum_tallies() {
  std::lock_guard lock(all_tallies::get().mutex);
  return {sum(&tally::active), sum(&tally::persisted), sum(&tally::bytes),
          sum(&tally::rollbacks_kept)};
}

}  // namespace troupe::contexts
