// record_queue: records of a program that wait for the thread that exports them. The size is
// bounded: a record without space is dropped, and counted, so that no producer waits.
//
// Threads: put() from any; all else is the exporting thread's, but for the statistics, wakes() and
// wake().
// Invariants
//   R1  at most `most_` records are in the list or with the exporting thread.
//   R2  a record in the list is no longer changed, and belongs to the thread that takes the list.
// Rejected: a mutex, which another thread may hold when the program forks: the child would wait for
// it at its first record.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/invariant.hpp"
#include "troupe/base/futex.hpp"

namespace troupe::base {

// A record has a member `next`, a pointer to a record, which is null outside of the list.
template <class Record>
class record_queue {
 public:
  // The exporting thread is woken at each `batch` of records. No record was dropped so far.
  void limit(std::size_t most, std::size_t batch) noexcept {
    // order: relaxed (all)  limits and a statistic; a thread may see them a little late
    most_.store(most, std::memory_order_relaxed);
    batch_.store(std::max<std::size_t>(batch, 1), std::memory_order_relaxed);
    dropped_.store(0, std::memory_order_relaxed);
  }

  void put(std::unique_ptr<Record> record) noexcept {
    // order: relaxed (all)  a count; the records travel by the list
    const std::size_t before = count_.fetch_add(1, std::memory_order_relaxed);
    if (before >= most_.load(std::memory_order_relaxed)) {
      count_.fetch_sub(1, std::memory_order_relaxed);
      return drop();
    }
    Record* const added = record.release();
    TROUPE_INVARIANT(added->next == nullptr, "R2");
    added->next = newest_.load(std::memory_order_relaxed);  // order: relaxed  only compared
    // order: release  the record is whole (R2); pairs with take_all/acquire; relaxed  only compared
    while (!newest_.compare_exchange_weak(added->next, added, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
    // order: relaxed  a limit
    if ((before + 1) % batch_.load(std::memory_order_relaxed) == 0) wake();
  }
  // Counts a record that could not be made.
  void drop() noexcept {
    dropped_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a statistic
  }

  // All that wait, the oldest first; null if there are none.
  Record* take_all() noexcept {
    // order: acquire  sees the records whole (R2); pairs with put/release
    Record* newest = newest_.exchange(nullptr, std::memory_order_acquire);
    Record* oldest = nullptr;
    [[maybe_unused]] std::size_t taken = 0;
    while (newest != nullptr) {
      ++taken;
      Record* const record = newest;
      newest = record->next;
      record->next = std::exchange(oldest, record);
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
    // order: relaxed  a count
    [[maybe_unused]] const std::size_t before = count_.fetch_sub(count, std::memory_order_relaxed);
    TROUPE_INVARIANT(before >= count, "R1");
  }

  // Sleeps until a batch is there, or wake() was called, after wakes() gave that number, or until
  // the time is over.
  std::uint32_t wakes() const noexcept {
    // order: acquire  a record that was put before this wake is in the list; pairs with
    // wake/release
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

  // order: relaxed (both)  statistics
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  std::size_t waiting() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Record*> newest_{nullptr};
  std::atomic<std::size_t> count_{0}, most_{0}, batch_{1};
  std::atomic<std::uint64_t> dropped_{0};
  kernel_futex::word wakes_{0};
};

}  // namespace troupe::base
