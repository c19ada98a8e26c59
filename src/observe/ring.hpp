// ring: the event_ring of one thread, and the list of all rings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/event_ring.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {

// An event's kind, and above it the message that was sent or is handled, by the address of its
// block, which identifies it until its handler runs; 0: the event is of none.
struct kind_and_message {
  event kind;
  std::uint64_t message = 0;

  std::uint64_t packed() const noexcept {
    return static_cast<std::uint64_t>(kind) | message << kind_bits;
  }
  static std::uint64_t kind_in(std::uint64_t packed) noexcept {
    return packed & ((std::uint64_t{1} << kind_bits) - 1);
  }
  static std::uint64_t message_in(std::uint64_t packed) noexcept { return packed >> kind_bits; }

  static constexpr int kind_bits = 8;  // an address of a program has at most 56 bits
};

inline std::uint64_t kind_of(const event_data& entry) noexcept {
  return kind_and_message::kind_in(entry.kind);
}

struct ring {
  static constexpr std::size_t size = std::size_t{1} << 15;  // events of 32 bytes: 1 MiB
  using events_of_thread = event_ring<base::std_atomics, size>;

  ring(void* room, std::uint32_t which, ring* older) noexcept
      : events(room), number(which), next(older) {}

  events_of_thread events;
  const std::uint32_t number;      // from 1 on
  ring* const next;                // in the list of all rings, newest first
  std::atomic<bool> in_use{true};  // false when its thread has ended
  std::atomic<bool> lasts{false};  // of main or a worker: a table does not leave it out
  char name[16] = "";              // the thread's name
  // the first event of the trace that is taken; set before a trace, by the one who begins it
  mutable std::uint64_t first = 0;
  // a table has shown the events below this; one table at a time
  mutable std::uint64_t printed = 0;
};

// Any thread, even in signal handlers. Rings are never freed.
const ring* first_ring() noexcept;

// Called with each event of the calling thread beside its ring, until another one is set, or null.
// For a simulation, which writes its story (runtime/exploring/story.hpp).
struct listener {
  void (*hear)(listener& self, event kind, const char* text, std::uint64_t id) noexcept;
  // Before `suspended` of actor `id`: the event that it awaits, an ask's method or null, and the
  // line of the wait; 0 if none is known.
  void (*hear_wait)(listener& self, std::uint64_t id, const char* event, const char* method,
                    const char* file, std::uint32_t line) noexcept;
};
void listen_here(listener* by) noexcept;
// Null if there is none.
listener* listener_here() noexcept;

// As record(), of the message at this address, that is sent or handled: a trace connects the two.
void record_message(event kind, const char* text, std::uint64_t id, const void* message) noexcept;

// From now on that is called with each event of is_beside(), whether or not a trace is taken.
void record_beside(void (*put)(event kind, const char* text, std::uint64_t id) noexcept) noexcept;

// Adds a mark to the calling thread's ring, if there is a ring. For signal handlers: record() makes
// a ring and a flight recorder, which takes locks and memory.
void mark_in_ring(const char* text) noexcept;

}  // namespace troupe::observe
