// ring: an event_ring of a thread, and the list of all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/event_ring.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {

struct ring {
  static constexpr std::size_t size = std::size_t{1} << 15;  // events, of 32 bytes: one MiB
  using events_of_thread = event_ring<base::std_atomics, size>;

  ring(void* room, std::uint32_t which, ring* older) noexcept
      : events(room), number(which), next(older) {}

  events_of_thread events;
  const std::uint32_t number;         // from 1 on
  ring* const next;                   // of all, the newest first
  std::atomic<bool> in_use{true};     // its thread has not ended
  std::atomic<bool> lasts{false};     // of main or a worker, which a table does not leave out
  char name[16] = "";                 // of the thread
  mutable std::uint64_t printed = 0;  // events below this a table has had; one table at a time
};

// Any thread, signal handlers too. Rings are never freed.
const ring* first_ring() noexcept;

}  // namespace troupe::observe
