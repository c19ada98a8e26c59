// story_event: an event of an execution for its story: a handler ran in a turn, a source line sent
// its message.
//
// The story itself is in runtime/exploring/story.hpp. An execution in another process writes
// its events into its file (seen_file.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

// An address in the program's code, which is the same in each process.
struct code_address {
  std::uint32_t module = 0;  // the nth `module` event
  std::uint64_t offset = 0;  // in its file
  auto operator<=>(const code_address&) const = default;
};

enum class story_kind : std::uint8_t {
  module,   // `text` is the path of a program or a library
  spawned,  // an actor, of class `text`
  sent,     // message `text` to the actor
  begun,    // handler `text` of the actor, or its next part
  ended,    // that handler, or it is suspended
  waits,    // the handler of the actor, for `text` at `place`
  outside,  // `text`, a timer or I/O, makes something ready
  broken,   // a property does not hold
  fault,    // `text` fails; the members from `callers` to `turn` give the position
};

struct story_event {
  story_kind kind = story_kind::broken;
  std::uint64_t actor = 0;
  std::string text{};
  std::string place{};  // of `waits`: FILE:LINE, or empty
  // Of `sent` and `fault`: the calls that led to it, the innermost first.
  std::vector<code_address> callers{};
  // Of `begun` and `fault`: the turn's number from 1 on. Of `begun` its name, and the number of the
  // last turn that had begun when it became ready.
  std::uint64_t turn = 0;
  turn_id id{};
  std::uint64_t ready_after = 0;
};

// The place and the effect of a fault: "a connection was cut at its send 3".
std::string text_of_fault(const hold& happened);

// One line without its end. A reader returns false for a line that is none.
std::string line_of(const story_event& event);
bool read_event(const std::string& line, story_event& event);

}  // namespace troupe::sched::exploring
