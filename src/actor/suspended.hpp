// suspended: what a program waits for, in words: for a stall, and for a dump of one that runs.
#pragma once

#include <cstddef>
#include <string>

#include "actor/system.hpp"

namespace troupe::actor {

struct suspended_text {
  std::string lines;        // each begins with a line feed
  std::size_t count = 0;    // of those that are suspended, listed or not
  unsigned missed = 0;      // workers that could not be looked at
};

// A line for each suspended turn: whose, which handler, where in the source, and what it waits for; at most `most` lines.
// Any thread, inside a visit or when no turn runs. Without those that run at this instant or are about to go on; and, if
// asked so, without those that wait for weak timers. Cost: about 1 us for each that is listed; nobody else waits for it all.
suspended_text describe_suspended(system& home, std::size_t most, bool weak_too);

}  // namespace troupe::actor
