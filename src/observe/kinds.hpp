// kinds: the names of the kinds of events.
#pragma once

#include <array>
#include <cstddef>

#include "troupe/observe/trace.hpp"

namespace troupe::observe {

enum class phase : std::uint8_t { begin, end, instant };

struct kind_of_event {
  const char* category;  // viewers filter by it
  const char* name;      // stands before the event's subject
  const char* id;        // the meaning of the event's number; null: it has none
  phase when;
};

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
      {"timer", "timer", nullptr, instant},
      {"io", "begins", "descriptor", instant},
      {"io", "ended", "result", instant},
      {"lazy", "queued", nullptr, instant},
      {"lazy", "taken from the queue", nullptr, instant},
      {"lazy", "stolen", nullptr, instant},
      {"lazy", "inline", nullptr, instant},
      {"lazy", "lazy", nullptr, begin},
      {"lazy", "lazy", nullptr, end},
      {"lazy", "asleep until", nullptr, begin},
      {"lazy", "asleep until", nullptr, end},
      {"context", "made context", "context", instant},
      {"context", "kept of context", "context", instant},
      {"context", "ended context", "context", instant},
      {"user", "", nullptr, begin},
      {"user", "", nullptr, end},
      {"user", "", "value", instant},
  }};
}();

}  // namespace troupe::observe
