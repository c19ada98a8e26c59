// event_ring: the last events of one thread. The size is fixed: the oldest events are overwritten.
//
// Writer: the thread that owns it.
// Readers: any thread that writes the trace out, which is rare, even in a signal handler. Nothing
// here therefore allocates or locks.
// Invariants
//   E1  event i lies in slot i modulo the size; events below `written` are complete.
//   E2  the copy of event i that a reader made is valid if afterwards `written` is less than
//       i + size. Otherwise the writer may have begun to overwrite it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/atomics.hpp"

namespace troupe::observe {

struct event_data {
  std::uint64_t ticks = 0;
  std::uint64_t id = 0;
  std::uint64_t text = 0;  // the address of a text
  std::uint64_t kind = 0;  // a kind_and_message (ring.hpp)
};

template <class Atomics>
struct event_slot {
  template <class T>
  using atomic = typename Atomics::template atomic<T>;
  atomic<std::uint64_t> ticks{0};
  atomic<std::uint64_t> id{0};
  atomic<std::uint64_t> text{0};
  atomic<std::uint64_t> kind{0};
};

template <class Atomics, std::size_t Size>
class event_ring {
 public:
  using slot = event_slot<Atomics>;

  // `room`: space for Size slots. A slot is created when its first event comes, so that unused
  // pages are never touched.
  explicit event_ring(void* room) noexcept : slots_(static_cast<slot*>(room)) {}

  TROUPE_INLINE void put(const event_data& data) noexcept {
    // order: relaxed  the writer's own
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    if (at < Size) ::new (&slots_[at]) slot;
    fill(slots_[at % Size], data);
    // order: release  the event is complete (E1); pairs with written/acquire
    written_.store(at + 1, std::memory_order_release);
  }

  // order: acquire  sees the events below it (E1); pairs with put/release
  std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }
  static std::uint64_t oldest(std::uint64_t written) noexcept {
    return written < Size ? 0 : written - Size + 1;
  }

  // Reads an event that was written. Returns false when it has been overwritten in the meantime.
  bool read(std::uint64_t at, event_data& data) const noexcept {
    const slot& from = slots_[at % Size];
    // order: acquire (both)  in front of the number below (E2); pairs with fill/release
    data.ticks = from.ticks.load(std::memory_order_acquire);
    data.id = from.id.load(std::memory_order_acquire);
    // order: acquire (both)  as above
    data.text = from.text.load(std::memory_order_acquire);
    data.kind = from.kind.load(std::memory_order_acquire);
    // order: relaxed  behind the loads above
    return written_.load(std::memory_order_relaxed) < at + Size;
  }

 private:
  TROUPE_INLINE static void fill(slot& target, const event_data& data) noexcept {
    // order: release (both)  after the number of the events before, so that a reader of a new part
    // sees that number (E2); pairs with read/acquire
    target.ticks.store(data.ticks, std::memory_order_release);
    target.id.store(data.id, std::memory_order_release);
    // order: release (both)  as above
    target.text.store(data.text, std::memory_order_release);
    target.kind.store(data.kind, std::memory_order_release);
  }

  slot* const slots_;
  typename Atomics::template atomic<std::uint64_t> written_{0};
};

}  // namespace troupe::observe
