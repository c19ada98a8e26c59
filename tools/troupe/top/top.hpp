// top: a program's handlers and longest mailboxes on the terminal, until the user leaves.
#pragma once

#include <chrono>

#include "program.hpp"
#include "tables.hpp"

namespace troupe_tool {

// Whether keys can be read and a table be drawn: standard input and output are a terminal.
bool has_terminal();

// Draws until `q` is pressed, or the program ends. Needs a terminal. Throws failure.
void show_top(program& asked, order by, std::chrono::milliseconds interval);

}  // namespace troupe_tool
