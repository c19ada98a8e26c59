// schedule_file: a failing schedule as a text file that repeats it.
//
//     troupe schedule 1
//     program 5f0c…                 the build id; of another one the hashes may differ
//     test ledger loses nothing     the name of the exploration, if it has one
//     seed 17
//     hold 9e3779b97f4a7c15 2 0     maker, which of its children, which turn of it
//     hold 9e3779b97f4a7c15 2 0 until 77aa… 1 0
//     hold 9e3779b97f4a7c15 2 0 late
//     connection 77aa… 3            all that is sent to it is late
//     hash 1000 83fe…               of the names of the first 1,000 turns
//     # the failure and other remarks
//
// A schedule that could not be reduced to holds has a line `strategy` instead. `troupe explore`
// gives a program plans with further lines: `arrival N`, `return N` and `late-connection N` are
// held_arrivals, held_returns and held_connections, `late`, `record`, `dead-letters`, which makes a
// dead letter a failure, and `story`, which adds the events of a story (story_event.hpp). Thread:
// any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

struct kept_schedule {
  schedule plan;
  std::string program;  // its build id
  std::string test;
  std::vector<std::uint64_t> hashes;
  std::string remarks;
  bool records = false;
  bool dead_letters = false;
  bool tells = false;
};

std::string text_of(const kept_schedule& kept);
// Throws option_error with the line that is wrong; `name` is the file's name.
kept_schedule parse_schedule(const std::string& text, const std::string& name);
// Throws option_error if the file cannot be read.
kept_schedule read_schedule(const std::string& file);
// Throws std::system_error.
void write_schedule(const std::string& file, const kept_schedule& kept);

// The identity of the running program: its build id, or empty.
std::string program_id();
std::string text_of(const hold& held);
// Throws option_error.
hold parse_hold(const std::string& line);

}  // namespace troupe::sched::exploring
