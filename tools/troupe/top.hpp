// top: a program's handlers and longest mailboxes on the terminal, until the user leaves.
#pragma once

#include <chrono>

#include "program.hpp"
#include "tables.hpp"

namespace troupe_tool {

// Draws until `q` is pressed, or the program ends. Throws failure.
void show_top(program& of, order by, std::chrono::milliseconds interval);

}  // namespace troupe_tool
