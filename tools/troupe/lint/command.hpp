// command: `troupe lint`, which finds the forms that GCC 12 miscompiles in a user's sources.
#pragma once

#include <string>
#include <vector>

namespace troupe_tool {

struct lint_choices {
  std::vector<std::string> files;
  std::string build;               // a folder with compile_commands.json; empty: none
  std::vector<std::string> flags;  // behind `--`
  bool has_flags = false;
};

// Prints the findings, as FILE:LINE:COLUMN: what is wrong: what to write instead.
// Returns the exit status: 0 if there are none, 1 if there are, 2 if a file could not be read.
int lint(const lint_choices& chosen);

}  // namespace troupe_tool
