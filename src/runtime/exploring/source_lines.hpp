// source_lines: the user's source lines of addresses in the program's code.
//
// They are read from the debugging information by `addr2line` of binutils, or `llvm-addr2line`. A
// program without that information has no lines, only the names of functions.
#pragma once

#include <string>
#include <vector>

#include "sched/exploring/story_event.hpp"

namespace troupe {

// For each list of callers the innermost call that is not the library's own: FILE:LINE, or the name
// of its function; empty if neither is known. Starts a process for each module, but for addresses
// that were asked for before. Thread: any.
std::vector<std::string> places_of(
    const std::vector<std::string>& modules,
    const std::vector<std::vector<sched::exploring::code_address>>& callers);

}  // namespace troupe
