// run_queue: runnables that wait for a worker, oldest first.
//
// A ring that doubles when it is full. Plain data, guarded by the worker's biased lock; any thread
// may read the count.
// Invariants
//   Q1  a push has room: keep_room was called for all that may be in the queue at a time.
// Rejected: an intrusive list (a searcher would walk it, with a cache miss for each runnable,
// inside the victim's lock; and push_if would need a branch that cannot be predicted).
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "sched/runnable.hpp"

namespace troupe::sched {

// Room: how many items fit at first; a power of two.
template <class Item, std::size_t Room, class Atomics = base::std_atomics>
class basic_run_queue {
 public:
  basic_run_queue() : items_(std::make_unique<slot[]>(mask_ + 1)) {}

  // Makes room for so many items in total. False when memory is out: then the room has not changed.
  [[nodiscard]] TROUPE_INLINE bool keep_room(std::size_t items) noexcept {
    while (items > mask_) [[unlikely]] {
        if (!grow()) return false;
      }
    return true;
  }

  TROUPE_INLINE void push(Item& item) noexcept { push_if(item, true); }

  // Pushes or does nothing, at the same cost: a branch could not be predicted, since whether a
  // message finds its actor queued is as good as random (Q1).
  TROUPE_INLINE void push_if(Item& item, bool really) noexcept {
    const std::size_t end = get(end_);
    TROUPE_INVARIANT(end - get(begin_) + (really ? 1u : 0u) <= mask_, "Q1");
    items_[end & mask_] = &item;
    set(end_, end + (really ? 1u : 0u));
  }

  // The oldest, or null.
  TROUPE_INLINE Item* pop() noexcept {
    const std::size_t begin = get(begin_);
    if (begin == get(end_)) return nullptr;
    Item* item = items_[begin & mask_];
    set(begin_, begin + 1);
    return item;
  }

  // The oldest, from a queue that is not empty; `more` is set to whether others are left.
  TROUPE_INLINE Item& take(bool& more) noexcept {
    const std::size_t begin = get(begin_);
    Item* item = items_[begin & mask_];
    set(begin_, begin + 1);
    more = begin + 1 != get(end_);
    return *item;
  }

  bool empty() const noexcept { return get(begin_) == get(end_); }

  // Exact inside the lock; a hint outside.
  std::size_t count() const noexcept {
    const std::size_t begin = get(begin_), end = get(end_);
    return end > begin ? end - begin : 0;
  }

 private:
  // never wraps: that would take 2^64 pushes
  using index = typename Atomics::template atomic<std::size_t>;
  using slot = typename Atomics::template guarded<Item*>;
  // order: relaxed (both)  a hint for those outside the lock; publishes nothing
  static std::size_t get(const index& position) noexcept {
    return position.load(std::memory_order_relaxed);
  }
  static void set(index& position, std::size_t value) noexcept {
    position.store(value, std::memory_order_relaxed);
  }

  TROUPE_NOINLINE bool grow() noexcept try {
    auto larger = std::make_unique<slot[]>(2 * (mask_ + 1));
    for (std::size_t at = get(begin_); at != get(end_); ++at)
      larger[at & (2 * mask_ + 1)] = items_[at & mask_];
    items_ = std::move(larger);
    mask_ = 2 * mask_ + 1;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  index begin_{0}, end_{0};
  typename Atomics::template guarded<std::size_t> mask_ = Room - 1;
  std::unique_ptr<slot[]> items_;
};

using run_queue = basic_run_queue<runnable, 1024>;

}  // namespace troupe::sched
