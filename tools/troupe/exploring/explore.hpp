// explore: `troupe explore`, which searches for a schedule under which a program fails, and `troupe
// replay`, which runs the program by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe_tool {

struct explore_choices {
  std::vector<std::string> program;  // with its arguments
  unsigned schedules = 500;
  double seconds = 60;
  double run_seconds = 30;
  std::uint64_t seed = 1;
  unsigned jobs = 0;  // 0: one for each processor
  std::string file = "failure.schedule";
  std::string story;  // the file of the diagram; empty: none
  bool dead_letters = false;
  bool faults = false;  // of the simulated network and of files
  bool pairs = false;   // print the pairs of handlers that ran in one order only
};

// Prints what it found, and returns the exit status: 0 if no schedule failed, 1 otherwise. Throws
// failure.
int explore(const explore_choices& chosen);

// Becomes the program; but with a file for a diagram, it runs the program twice, prints its story
// and returns the exit status: 0 if the program did not fail. Throws failure.
int replay(const std::string& file, const explore_choices& chosen);

}  // namespace troupe_tool
