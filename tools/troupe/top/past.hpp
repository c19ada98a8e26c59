// past: what `troupe top` would have shown some time ago, from the numbers that the program keeps.
#pragma once

#include <chrono>
#include <string>

#include "program.hpp"
#include "tables.hpp"

namespace troupe_tool {

// "-10m", "30s" or "1h": how long ago. Throws failure beyond an hour.
std::chrono::seconds ago_of(const std::string& text);

// Prints a table of that moment; as JSON the program's answer. Throws failure if the program keeps
// no numbers of that time.
void show_past(program& asked, std::chrono::seconds ago, order by, bool as_json);

}  // namespace troupe_tool
