// suspended: describes a program's waits in words: for the report of a stall, and for a dump of a
// running program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actor/state/awaited.hpp"
#include "actor/system/actor_system.hpp"

namespace troupe::actor {

struct suspended_call {
  std::uint64_t id;
  const char* actor;
  const char* method;
  bool guarded;
  std::optional<awaited> waits_for;
};
// `wait` is the call's wait; null when it is not known.
suspended_call look_at(const cell& actor, const message& call, const tasks::suspension* wait);
std::string line_of(const suspended_call& call, const actor_system& system);

// The actors that could not be examined.
struct not_held {
  unsigned workers = 0;  // workers that were inside their own locks at each try
  unsigned actors = 0;   // parked actors to which mail came at each try
  // actors in a worker's queue or in their turn: they will run, and some of them then defer their
  // deactivation on that worker
  std::size_t in_flight = 0;
  unsigned any() const noexcept { return workers + actors; }
};
// "\n  not looked at: 1 suspended actor, sent mail at each try"; empty when nothing was missed.
std::string describe(const not_held& missed);

// Calls `look` with the suspended calls of each actor, while the actor is held: no other thread
// runs it. The caller must hold `actor_system::looking`. If `wanted` is not empty, parked actors
// for which it returns false are not held. No other lock is held during a look at a parked actor's
// calls, and a worker's lock for at most calls_of_hold_max calls of each actor that it has.
inline constexpr std::size_t calls_of_hold_max = 256;
not_held for_each_held(actor_system& system,
                       const std::function<void(cell&, const tasks::async_call&)>& look,
                       const std::function<bool(const cell&)>& wanted = {});

// The calls themselves, in the order in which they were found; at most `most` of them. Only of the
// actors with these ids, which are sorted, unless there are none. Otherwise as describe_suspended,
// but a call of another actor costs about 50 ns.
struct suspended_calls {
  std::vector<suspended_call> found;
  std::size_t count = 0;  // suspended calls, found or not
  not_held missed;
};
suspended_calls find_suspended(actor_system& system, std::size_t most,
                               std::span<const std::uint64_t> ids = {});

struct suspended_text {
  std::string lines;      // each line begins with a line feed
  std::size_t count = 0;  // suspended calls, listed or not
  not_held missed;
};

// Describes suspended turns, each in a line: the actor, the handler, the source line where it
// waits, and the target; at most `most` lines. Leaves out turns that run at this instant or are
// about to resume, and turns that wait for weak timers unless `weak_too`. Any thread that is inside
// the gate, or when no turn runs. Cost: about 1 us for each line; no thread waits for all lines.
suspended_text describe_suspended(actor_system& system, std::size_t most, bool weak_too);

}  // namespace troupe::actor
