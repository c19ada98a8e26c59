// kinds: the names of the kinds of events, and the meaning of their numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "troupe/observe/trace.hpp"

namespace troupe::observe {

enum class phase : std::uint8_t { begin, end, instant };

struct kind_of_event {
  const char* category;  // viewers filter by it
  const char* name;      // precedes the event's subject
  const char* id;        // the meaning of the event's number; null: it has none
  phase when;
};

// The number of an event of a lazy.
struct lazy_event {
  std::uint32_t number = 0;  // of the lazy, from 1 on, in the order of their first events
  std::uint32_t line = 0;    // of the code that made it
  bool was_queued = false;   // of lazy_inline: it was in the queue of this thread

  std::uint64_t packed() const noexcept {
    return std::uint64_t{number} | std::uint64_t{line & line_max} << 32 |
           std::uint64_t{was_queued} << 63;
  }
  static lazy_event unpacked(std::uint64_t id) noexcept {
    return {static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32) & line_max,
            id >> 63 != 0};
  }

  static constexpr std::uint32_t line_max = INT32_MAX;
};

// An array, since a string literal may have several addresses and the writers compare addresses.
inline constexpr char lazy_id[] = "lazy";

inline constexpr auto kinds = [] {
  using enum phase;
  return std::array<kind_of_event, static_cast<std::size_t>(event::mark) + 1>{{
      {"actor", "spawned", "actor", instant},
      {"actor", "ended", "actor", instant},
      {"message", "sent", "actor", instant},
      {"turn", "turn of", "actor", begin},
      {"turn", "turn of", "actor", end},
      {"message", "handles", "actor", begin},
      {"message", "handles", "actor", end},
      {"post", "posted procedure", nullptr, begin},
      {"post", "posted procedure", nullptr, end},
      {"coroutine", "suspended:", "actor", instant},
      {"coroutine", "resumed", "actor", instant},
      {"sched", "parked", nullptr, begin},
      {"sched", "parked", nullptr, end},
      {"sched", "woke a worker", nullptr, instant},
      {"sched", "stole", "runnables", instant},
      {"sched", "arrived from other threads", "runnables", instant},
      {"timer", "timer", nullptr, instant},
      {"io", "begins", "descriptor", instant},
      {"io", "ended", "result", instant},
      {"lazy", "queued", lazy_id, instant},
      {"lazy", "taken from the queue", lazy_id, instant},
      {"lazy", "stolen", lazy_id, instant},
      {"lazy", "inline", lazy_id, instant},
      {"lazy", "lazy", lazy_id, begin},
      {"lazy", "lazy", lazy_id, end},
      {"lazy", "asleep until", lazy_id, begin},
      {"lazy", "asleep until", lazy_id, end},
      {"context", "made context", "context", instant},
      {"context", "kept of context", "context", instant},
      {"context", "ended context", "context", instant},
      {"user", "", nullptr, begin},
      {"user", "", nullptr, end},
      {"user", "", "value", instant},
  }};
}();

}  // namespace troupe::observe
