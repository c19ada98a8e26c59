#include "observe/numbers/exemplars.hpp"

#include <new>

#include "troupe/base/platform.hpp"

namespace troupe::observe {

constinit std::atomic<trace_reader> reads_trace{nullptr};

exemplars::~exemplars() {
  delete slots_.load(std::memory_order_relaxed);  // order: relaxed  no other thread is left
}

exemplars::slots* exemplars::make() noexcept {
  std::unique_ptr<slots> fresh(new (std::nothrow) slots);
  slots* there = nullptr;
  // order: release  the slots are complete; pairs with note/acquire and get/acquire
  // order: acquire  of the slots that another thread has made
  if (fresh != nullptr &&
      slots_.compare_exchange_strong(there, fresh.get(), std::memory_order_release,
                                     std::memory_order_acquire))
    return fresh.release();
  return there;
}

TROUPE_NOINLINE void exemplars::note(std::size_t bucket, double value) noexcept {
  // order: relaxed  a function of the program; nothing else is published
  const trace_reader reader = reads_trace.load(std::memory_order_relaxed);
  exemplar found;
  if (reader == nullptr || !reader(found)) return;
  found.bucket = bucket;
  found.value = value;
  // order: acquire  sees the complete slots; pairs with make/release
  slots* all = slots_.load(std::memory_order_acquire);
  if (all == nullptr) all = make();
  if (all == nullptr) return;
  slot& own = (*all)[bucket];
  // order: acquire  sees the last value (X1); pairs with the release below
  if (own.is_busy.exchange(true, std::memory_order_acquire)) return;
  own.last = found;
  own.is_set = true;
  // order: release  publishes it (X1); pairs with the acquire above and in get
  own.is_busy.store(false, std::memory_order_release);
}

std::vector<exemplar> exemplars::get() const {
  std::vector<exemplar> found;
  // order: acquire  pairs with make/release
  slots* const all = slots_.load(std::memory_order_acquire);
  if (all == nullptr) return found;
  found.reserve(all->size());
  for (slot& bucket : *all) {
    // order: acquire  sees the last value (X1); pairs with note/release
    if (bucket.is_busy.exchange(true, std::memory_order_acquire)) continue;
    if (bucket.is_set) found.push_back(bucket.last);
    // order: release  the next writer comes behind this reader (X1); pairs with note/acquire
    bucket.is_busy.store(false, std::memory_order_release);
  }
  return found;
}

}  // namespace troupe::observe
