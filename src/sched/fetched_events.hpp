// fetched_events: the events that one thread has fetched from the poller and has not begun to
// serve.
//
// A worker fetches inside the poller's door and serves outside of it (docs/protocols/io.md). A
// searcher may take the events that the worker has not begun, as it takes runnables out of the
// worker's queue. Guarded by the biased lock of the thread that fetched; any thread may read the
// count.
// Owner: storage, publish, take. Searcher, which has revoked the lock: give.
// Invariants
//   E1  the owner writes to the storage only while it has no events, and after it was inside the
//       lock since it had some. No other thread reads the storage then.
//   E2  an event is in one of these objects, or in the hands of one thread, which serves it.
//       No event is served twice.
// Rejected: an index that owner and searchers advance by a locked instruction. It would be a second
// protocol beside the lock, and costs the owner more for each event.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/atomics.hpp"
#include "base/invariant.hpp"
#include "sched/biased_lock.hpp"

namespace troupe::sched {

// Room: the most events of one look.
template <class Event, unsigned Room, class Atomics = base::std_atomics>
class basic_fetched_events {
 public:
  static constexpr unsigned room = Room;

  explicit basic_fetched_events(biased_lock<Atomics>& lock) noexcept : lock_(lock) {}
  basic_fetched_events(const basic_fetched_events&) = delete;
  basic_fetched_events& operator=(const basic_fetched_events&) = delete;

  // Owner, while it has no events: where the next events are written, at most Room (E1).
  std::array<Event, Room>& storage() noexcept {
    TROUPE_INVARIANT(empty(), "E1");
    return items_;
  }

  // Owner, outside of the lock: the first `fetched` places of the storage hold events.
  void publish(unsigned fetched) noexcept {
    TROUPE_INVARIANT(fetched <= Room && empty(), "E1");
    lock_.enter();
    set(begin_, 0);
    set(end_, fetched);
    lock_.leave();
  }

  // Owner, outside of the lock: takes the oldest event, which it is to serve (E2). Returns false
  // when there is none.
  TROUPE_INLINE bool take(Event& next) noexcept {
    lock_.enter();
    const std::uint32_t begin = get(begin_);
    const bool some = begin != get(end_);
    if (some) {
      next = items_[begin];
      set(begin_, begin + 1);
    }
    lock_.leave();
    return some;
  }

  // Searcher, which has revoked the lock: moves the younger half, at most `at_most`, to the storage
  // of its own object. Returns how many; the searcher publishes them.
  unsigned give(basic_fetched_events& searchers, unsigned at_most) noexcept {
    const std::uint32_t begin = get(begin_), end = get(end_);
    const unsigned given = std::min((end - begin + 1) / 2, at_most);
    if (given == 0) return 0;
    std::array<Event, Room>& theirs = searchers.storage();
    for (unsigned i = 0; i < given; ++i) theirs[i] = items_[end - given + i];
    set(end_, end - given);
    return given;
  }

  // Exact inside the lock; a hint outside.
  unsigned count() const noexcept {
    const std::uint32_t begin = get(begin_), end = get(end_);
    return end > begin ? end - begin : 0;
  }
  bool empty() const noexcept { return get(begin_) == get(end_); }

 private:
  using index = typename Atomics::template atomic<std::uint32_t>;
  // order: relaxed (both)  a hint for those outside the lock; publishes nothing
  static std::uint32_t get(const index& place) noexcept {
    return place.load(std::memory_order_relaxed);
  }
  static void set(index& place, std::uint32_t next) noexcept {
    place.store(next, std::memory_order_relaxed);
  }

  biased_lock<Atomics>& lock_;
  index begin_{0}, end_{0};
  std::array<Event, Room> items_;
};

// An event of the poller; only the backend that fetched it reads its members.
struct io_event {
  std::uint64_t mark;
  std::int32_t result;
  std::uint32_t flags;
};

using fetched_events = basic_fetched_events<io_event, 256>;

// For a thread from which no other thread takes events.
struct unshared_events {
  biased_lock<> lock;
  fetched_events events{lock};
};

}  // namespace troupe::sched
