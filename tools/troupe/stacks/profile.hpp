// profile: `troupe profile`, for which functions the threads of a program use their processors.
#pragma once

#include <chrono>
#include <string>

namespace troupe_tool {

struct profile_choices {
  std::chrono::milliseconds duration{0};
  std::string file;           // of the flame graph; empty: none
  bool is_collapsed = false;  // print the stacks in place of the table
};

// Looks at the threads that run about 99 times a second, for that time, and prints a table of the
// handlers; or, for each stack, a line with its microseconds of processor time. Throws failure;
// then there is no file.
void show_profile(int pid, const profile_choices& chosen);

}  // namespace troupe_tool
