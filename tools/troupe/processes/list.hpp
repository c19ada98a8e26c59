// list: `troupe ps`, the programs that can be asked.
#pragma once

namespace troupe_tool {

// Prints a line for each program of the user, and removes the sockets of those that have ended.
void list_programs();
// Prints the process numbers alone, for completions and scripts. It asks no program.
void list_numbers();

}  // namespace troupe_tool
