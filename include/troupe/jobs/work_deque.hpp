// work_deque: the parts of forks that one thread has put aside and that no thread has begun.
//
// The owner works at the new end without locked instructions; thieves take the oldest, one at a
// time. The deque is a ring that doubles when full and never shrinks. For the library's own use.
// Owner: one thread. Thieves: any.
//
// Invariants
//   D1  each pushed part is given once: to the owner, or to a thief.
//   D2  the thief that gets a part sees all that was written before the push.
//   D3  a slot is written only while no thief may read it.
// Rejected: Chase-Lev (a fence for each pop); job_queue (a lock, however cheap, for each push and
// pop). Proof sketch and the losing interleavings: docs/protocols/fork_join.md.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "troupe/base/platform.hpp"

namespace troupe::jobs {

// Atomics is base::std_atomics, or has the same interface.
template <class Item, class Atomics>
class work_deque {
 public:
  // must be a power of two
  explicit work_deque(std::size_t room_at_first = 256) noexcept : room_at_first_(room_at_first) {}
  work_deque(const work_deque&) = delete;
  work_deque& operator=(const work_deque&) = delete;

  // Owner: makes space for that many pushes. Returns false if memory is out.
  [[nodiscard]] TROUPE_INLINE bool reserve(std::size_t pushes) noexcept {
    // order: relaxed  the owner's own
    return ends_.load(std::memory_order_relaxed) + static_cast<index>(pushes) <= limit_ ||
           make_room(static_cast<index>(pushes));
  }

  // Owner: only after reserve().
  TROUPE_INLINE void push(Item& item) noexcept {
    const index end = ends_.load(std::memory_order_relaxed);  // order: relaxed  the owner's own
    slots_[static_cast<std::size_t>(end) & mask_] = &item;
    // order: release  publishes the slot and its target (D2); pairs with steal/acquire
    ends_.store(end + 1, std::memory_order_release);
  }

  // Owner: takes the newest part; null if there is none.
  TROUPE_INLINE Item* pop() noexcept {
    // order: relaxed  the owner's own
    const index last = ends_.load(std::memory_order_relaxed) - 1;
    // order: release  a thief that reads this value sees the slots below it (D2); pairs with
    // steal/acquire
    ends_.store(last, std::memory_order_release);
    if (light_) [[likely]] {
      Atomics::light_fence();
    } else {
      Atomics::full_fence();
    }
    // order: acquire  after the fence: either this sees the thief, or the thief sees the end (D1);
    // and a thief that has put the part back no longer uses it; pairs with steal/release
    if (begins_.load(std::memory_order_acquire) <= last) [[likely]]
      return slots_[static_cast<std::size_t>(last) & mask_];
    return pop_last(last);
  }

  // Thief: takes the oldest part if the predicate accepts it, or returns null. No other thread can
  // take the part while the predicate is called.
  template <class Wants>
  Item* steal(const Wants& wants) noexcept {
    if (count() == 0) return nullptr;
    lock();
    // order: relaxed  changed under the lock only
    const index begin = begins_.load(std::memory_order_relaxed);
    // order: relaxed  announced by the fence (D1); pairs with pop's
    begins_.store(begin + 1, std::memory_order_relaxed);
    Item* item = nullptr;
    // order: acquire  sees the pushed parts (D2); pairs with push/release and pop/release
    if (Atomics::heavy_fence() && begin < ends_.load(std::memory_order_acquire)) {
      item = slots_[static_cast<std::size_t>(begin) & mask_];
      if (!wants(*item)) item = nullptr;
    }
    // order: release  the thief no longer uses the part; pairs with pop/acquire. An owner that saw
    // the other value reads it again under the lock
    if (item == nullptr) begins_.store(begin, std::memory_order_release);
    unlock();
    return item;
  }

  // Owner: gives its oldest part away. Calls `publish` with it, or with null if there is none that
  // the predicate accepts; the part has left the deque if that returns true. Does nothing while a
  // thief is inside, which may take long.
  template <class Wants, class Publish>
  void give(const Wants& wants, const Publish& publish) noexcept {
    // order: acquire  sees the writes under the lock; pairs with unlock/release
    if (locked_.exchange(1, std::memory_order_acquire) != 0) return;
    // order: relaxed (both)  under the lock, and the owner's own
    const index begin = begins_.load(std::memory_order_relaxed);
    const bool some = begin < ends_.load(std::memory_order_relaxed);
    Item* item = some ? slots_[static_cast<std::size_t>(begin) & mask_] : nullptr;
    if (item != nullptr && !wants(*item)) item = nullptr;
    // order: relaxed  under the lock. The owner pops nothing meanwhile, and needs no fence
    if (publish(item) && item != nullptr) begins_.store(begin + 1, std::memory_order_relaxed);
    unlock();
  }

  // A hint for all threads but the owner; the owner sees at least its own pushes.
  std::size_t count() const noexcept {
    // order: relaxed (both)  a hint
    const index left =
        ends_.load(std::memory_order_relaxed) - begins_.load(std::memory_order_relaxed);
    return left > 0 ? static_cast<std::size_t>(left) : 0;
  }
  // Owner: whether no part is left. Unlike count(), it does not miss a part that a thief examines
  // and puts back.
  bool is_empty() noexcept {
    if (count() != 0) return false;
    lock();
    // order: relaxed (both)  under the lock, and the owner's own
    const bool none =
        begins_.load(std::memory_order_relaxed) == ends_.load(std::memory_order_relaxed);
    unlock();
    return none;
  }
  // Owner: parts that are pushed from now on lie above this mark.
  // order: relaxed  the owner's own
  std::int64_t mark() const noexcept { return ends_.load(std::memory_order_relaxed); }

 private:
  using index = std::int64_t;

  // The part that the owner needs was taken, or a thief is examining it.
  TROUPE_NOINLINE Item* pop_last(index last) noexcept {
    lock();
    Item* item = nullptr;
    // order: relaxed  under the lock
    if (begins_.load(std::memory_order_relaxed) <= last) {
      item = slots_[static_cast<std::size_t>(last) & mask_];
    } else {
      // order: relaxed  the former value: nothing is published
      ends_.store(last + 1, std::memory_order_relaxed);
    }
    unlock();
    return item;
  }

  // The owner counts from the oldest part at this moment: a thief may still read parts that it has
  // taken since (D3).
  TROUPE_NOINLINE bool make_room(index pushes) noexcept {
    lock();
    const index begin = begins_.load(std::memory_order_relaxed);  // order: relaxed  under the lock
    const index end = ends_.load(std::memory_order_relaxed);      // order: relaxed  the owner's own
    std::size_t room = slots_ == nullptr ? 0 : mask_ + 1;
    const auto wanted = static_cast<std::size_t>(end - begin + pushes);
    bool there = true;
    if (wanted > room) {
      std::size_t larger = room == 0 ? room_at_first_ : 2 * room;
      while (larger < wanted) larger *= 2;
      if (auto* slots = new (std::nothrow) slot[larger]) {
        for (index at = begin; at < end; ++at) {
          slots[static_cast<std::size_t>(at) & (larger - 1)] =
              slots_[static_cast<std::size_t>(at) & mask_];
        }
        slots_.reset(slots);
        mask_ = larger - 1;
        room = larger;
      } else {
        there = false;
      }
    }
    limit_ = begin + static_cast<index>(room);
    unlock();
    return there;
  }

  void lock() noexcept {
    // order: acquire  sees the writes under the lock; pairs with unlock/release
    for (int spin = 0; locked_.exchange(1, std::memory_order_acquire) != 0; ++spin)
      Atomics::wait_a_little(spin);
  }
  // order: release  pairs with lock/acquire
  void unlock() noexcept { locked_.store(0, std::memory_order_release); }

  using slot = typename Atomics::template guarded<Item*>;
  typename Atomics::template atomic<index> ends_{0};  // the owner's; both indices only grow
  // owner's: how far the end may grow before the owner reads begins_ again
  index limit_ = 0;
  std::size_t mask_ = 0;
  std::unique_ptr<slot[]> slots_;
  const bool light_ = Atomics::light_fences_suffice();
  const std::size_t room_at_first_;
  alignas(base::line_bytes) typename Atomics::template atomic<index> begins_{0};
  typename Atomics::template atomic<std::uint32_t> locked_{0};
};

}  // namespace troupe::jobs
