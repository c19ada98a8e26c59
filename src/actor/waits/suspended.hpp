// suspended: what a program waits for, in words: for a stall, and for a dump of one that runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>

#include "actor/actor_system.hpp"

namespace troupe::actor {

// What is copied of a suspended call while its actor is held; texts are made afterwards.
struct awaited {
  std::source_location at;  // a line of the user's; line 0 when none is known
  const char* what;
  const char* of;
  const void* asked;  // an actor, which may have gone
};
struct suspended_call {
  std::uint64_t id;
  const char* actor;
  const char* method;
  bool guarded;
  std::optional<awaited> waits_for;
};
awaited look_at(const tasks::suspension& one);
std::string line_of(const suspended_call& one, const actor_system& system);
// Whether the line is one of the library's own coroutines, which no text names: its user can do
// nothing about it.
bool is_of_library(const std::source_location& where) noexcept;
// "bank.cpp:12".
std::string place_of(const std::source_location& where);

// What could not be looked at.
struct not_held {
  unsigned workers = 0;       // each was in its own lock at each try
  unsigned actors = 0;        // parked; mail came for each at each try
  std::size_t in_flight = 0;  // queued, or in their turn, on a worker: they go on, and some of them
                              // defer their deactivation there afterwards
  unsigned any() const noexcept { return workers + actors; }
};
// "\n  not looked at: 1 suspended actor, sent mail at each try"; empty when there is none.
std::string describe(const not_held& missed);

// Looks at the activation of each actor whose turn is suspended, or that is reentrant and has such
// calls, while it is held: nobody runs it. Needs `actor_system::looking`.
not_held for_each_held(actor_system& system, const std::function<void(activation&)>& look);

struct suspended_text {
  std::string lines;      // each begins with a line feed
  std::size_t count = 0;  // of those that are suspended, listed or not
  not_held missed;
};

// A line for each suspended turn: whose, which handler, where in the source, and what it waits for;
// at most `most` lines. Any thread, inside a visit or when no turn runs. Without those that run at
// this instant or are about to go on; and, if asked so, without those that wait for weak timers.
// Cost: about 1 us for each that is listed; nobody else waits for it all.
suspended_text describe_suspended(actor_system& system, std::size_t most, bool weak_too);

}  // namespace troupe::actor
