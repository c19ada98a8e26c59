// dump: `troupe dump`, what a program warns of and what its calls wait for.
#pragma once

#include <string>
#include <string_view>

#include "program.hpp"

namespace troupe_tool {

// Prints the warnings first. Calls that wait alike are one line, unless `every_line`.
void show_dump(program& asked, bool every_line);

// A dump whose lines that differ in nothing but the actor are one line, with how many they are and
// the first of the actors; those that are most come first.
std::string grouped(std::string_view dump);

}  // namespace troupe_tool
