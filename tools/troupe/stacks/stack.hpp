// stack: `troupe stack`, the functions that the threads of a program are in.
#pragma once

#include <optional>

#include "program.hpp"

namespace troupe_tool {

// Of this worker, or of all threads that run something. The frames of the library around a handler
// are one line, unless `every_frame`. Throws failure.
void show_stacks(program& asked, int pid, std::optional<unsigned> worker, bool every_frame);

}  // namespace troupe_tool
