// record_queue: records of a program that wait for the thread that exports them. The size is
// bounded: a record without space is dropped, and counted, so that no producer waits.
//
// Each thread uses one of `shard_count` shards, which has cache lines of its own and a list. A
// shard takes permits for several records at once out of the common limit. A thread whose shard
// has none, when the limit is used up, takes an unused permit of another shard.
//
// Threads: put() from any; all else is the exporting thread's, but for the statistics, wakes() and
// wake().
// Invariants
//   R1  at most `most` records are in the lists or with the exporting thread: each has a permit.
//       `granted_` is the number of these permits and of the unused ones.
//   R2  a record in a list is no longer changed, and belongs to the thread that takes the list.
// Rejected: a mutex, which another thread may hold when the program forks: the child would wait for
// it at its first record. One list with one count: each record changed two words that all threads
// share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/invariant.hpp"
#include "base/thread_name.hpp"
#include "troupe/base/futex.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::base {

// A record has a member `next`, a pointer to a record, which is null outside of the lists.
template <class Record>
class record_queue {
 public:
  static constexpr std::size_t shard_count = 32;
  static constexpr std::size_t permits_at_once_max = 32;

  // The permits that a shard takes at once. Those that all shards may leave unused are an eighth of
  // `most`; a full queue must have reported a batch, or nothing wakes the exporting thread.
  static constexpr std::size_t permits_at_once(std::size_t most, std::size_t batch) noexcept {
    if (batch > most - most / 8) return 1;
    const std::size_t few = std::min(most / (8 * shard_count), batch / 16);
    return std::clamp<std::size_t>(few, 1, permits_at_once_max);
  }

  // The exporting thread is woken at each `batch` of records; each shard may have put one less than
  // permits_at_once() more by then. No record was dropped so far.
  void limit(std::size_t most, std::size_t batch) noexcept {
    for (shard& owner : shards_) {
      // order: relaxed (all)  counts
      granted_.fetch_sub(owner.permits.exchange(0, std::memory_order_relaxed),
                         std::memory_order_relaxed);
      owner.dropped.store(0, std::memory_order_relaxed);
    }
    // order: relaxed (all)  limits; a thread may see them a little late
    most_.store(most, std::memory_order_relaxed);
    batch_.store(std::max<std::size_t>(batch, 1), std::memory_order_relaxed);
    at_once_.store(permits_at_once(most, batch), std::memory_order_relaxed);
  }

  void put(std::unique_ptr<Record> record) noexcept {
    shard& owner = shard_here();
    if (!take_permit(owner) && !take_more(owner)) return drop();
    Record* const added = record.release();
    TROUPE_INVARIANT(added->next == nullptr, "R2");
    // order: relaxed  a count, added before the record can be taken
    const std::size_t before = owner.put.fetch_add(1, std::memory_order_relaxed);
    added->next = owner.newest.load(std::memory_order_relaxed);  // order: relaxed  only compared
    // order: release  the record is complete (R2); pairs with take_all/acquire; relaxed  only
    // compared
    while (!owner.newest.compare_exchange_weak(added->next, added, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
    // order: relaxed  a limit
    const std::size_t at_once = at_once_.load(std::memory_order_relaxed);
    if ((before + 1) % at_once == 0) report(at_once);
  }
  // Counts a record that could not be made.
  void drop() noexcept {
    // order: relaxed  a statistic
    shard_here().dropped.fetch_add(1, std::memory_order_relaxed);
  }

  // All waiting records, of each shard the oldest first; null if there are none.
  Record* take_all() noexcept {
    Record* oldest = nullptr;
    [[maybe_unused]] std::size_t taken = 0;
    for (shard& owner : shards_) {
      // order: relaxed  a record that is missed is found later, unless wakes() has acquired it
      if (owner.newest.load(std::memory_order_relaxed) == nullptr) continue;
      // order: acquire  sees the complete records (R2); pairs with put/release
      Record* newest = owner.newest.exchange(nullptr, std::memory_order_acquire);
      while (newest != nullptr) {
        ++taken;
        Record* const record = newest;
        newest = record->next;
        record->next = std::exchange(oldest, record);
      }
    }
    TROUPE_INVARIANT(taken <= waiting(), "R1");
    return oldest;
  }
  // Frees a list. Returns how many records it had.
  static std::size_t free_all(Record* first) noexcept {
    std::size_t count = 0;
    for (; first != nullptr; ++count) {
      const std::unique_ptr<Record> gone(first);
      first = first->next;
    }
    return count;
  }
  // Forgets `count` of the records that were taken.
  void forget(std::size_t count) noexcept {
    // order: release  the records' counts come with it; pairs with waiting/acquire
    forgotten_.fetch_add(count, std::memory_order_release);
    // order: relaxed  a count
    [[maybe_unused]] const std::size_t before =
        granted_.fetch_sub(count, std::memory_order_relaxed);
    TROUPE_INVARIANT(before >= count, "R1");
  }

  // Sleeps until a batch is there, or wake() was called, after wakes() gave that number, or until
  // the time is over.
  std::uint32_t wakes() const noexcept {
    // order: acquire  a record that was put before this wake is in a list; pairs with wake/release
    return wakes_.load(std::memory_order_acquire);
  }
  void wait(std::uint32_t seen, std::chrono::nanoseconds at_most) noexcept {
    if (waiting() >= batch_.load(std::memory_order_relaxed)) return;  // order: relaxed  a hint
    kernel_futex::wait(wakes_, seen, &at_most);
  }
  void wake() noexcept {
    // order: release  publishes the record: an exporting thread that has read the new number finds
    // it, and one that has read the old number does not sleep; pairs with wakes/acquire
    wakes_.fetch_add(1, std::memory_order_release);
    kernel_futex::wake_one(wakes_);
  }

  // Statistics, exact while no other thread puts or forgets.
  std::uint64_t dropped() const noexcept { return sum(&shard::dropped); }
  std::size_t waiting() const noexcept {
    // order: acquire  the sum is no less than this number; pairs with forget/release
    const std::size_t forgotten = forgotten_.load(std::memory_order_acquire);
    return sum(&shard::put) - forgotten;
  }

 private:
  struct alignas(line_bytes) shard {
    std::atomic<Record*> newest{nullptr};
    std::atomic<std::size_t> permits{0};  // unused ones
    std::atomic<std::size_t> put{0};      // records so far
    std::atomic<std::size_t> dropped{0};  // since limit()
  };

  shard& shard_here() noexcept { return shards_[worker_number % shard_count]; }
  std::size_t sum(std::atomic<std::size_t> shard::*counter) const noexcept {
    std::size_t all = 0;
    // order: relaxed  a statistic
    for (const shard& owner : shards_) all += (owner.*counter).load(std::memory_order_relaxed);
    return all;
  }

  // Returns false if the shard has none.
  static bool take_permit(shard& owner) noexcept {
    // order: relaxed (both)  a count; the records travel by the list
    std::size_t unused = owner.permits.load(std::memory_order_relaxed);
    while (unused != 0) {
      if (owner.permits.compare_exchange_weak(unused, unused - 1, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  // Takes one permit for the caller, and others for its shard. Returns false if there is none.
  TROUPE_NOINLINE bool take_more(shard& owner) noexcept {
    // order: relaxed (all)  as above
    const std::size_t most = most_.load(std::memory_order_relaxed);
    std::size_t before = granted_.load(std::memory_order_relaxed);
    while (before < most) {
      const std::size_t more = std::min(at_once_.load(std::memory_order_relaxed), most - before);
      if (!granted_.compare_exchange_weak(before, before + more, std::memory_order_relaxed))
        continue;
      // order: relaxed  as above
      if (more > 1) owner.permits.fetch_add(more - 1, std::memory_order_relaxed);
      return true;
    }
    return std::any_of(shards_.begin(), shards_.end(), take_permit);
  }
  // So many records more were put.
  TROUPE_NOINLINE void report(std::size_t count) noexcept {
    // order: relaxed (both)  a count, and a limit
    const std::size_t before = reported_.fetch_add(count, std::memory_order_relaxed);
    const std::size_t batch = batch_.load(std::memory_order_relaxed);
    if (before / batch != (before + count) / batch) wake();
  }

  std::array<shard, shard_count> shards_{};
  // All threads change the first two, once for several records.
  alignas(line_bytes) std::atomic<std::size_t> granted_{0};
  std::atomic<std::size_t> reported_{0};
  std::atomic<std::size_t> forgotten_{0};
  kernel_futex::word wakes_{0};
  alignas(line_bytes) std::atomic<std::size_t> most_{0};  // these are only read
  std::atomic<std::size_t> batch_{1}, at_once_{1};
};

}  // namespace troupe::base
