// stacks: registers and stacks of the threads of an observed runtime, for a tool that finds the
// functions by the debug information of the program's files (task/running/stack_copy.hpp).
#pragma once

#include <optional>

#include "runtime/observing/numbers/json_text.hpp"

namespace troupe {
class runtime_core;
}

namespace troupe::observing {

// Which threads are asked.
struct stacks_wanted {
  std::optional<unsigned> worker{};  // this one; 0: the threads that are no workers
  // those that run on a processor now: a signal cannot end a system call of theirs early
  bool running_only = false;
};

// Why a program does not let others see its memory; null if it does.
const char* stacks_refused() noexcept;

// Appends an object: for each of those threads its registers, the innermost part of its stack, and
// the handler that it was in. Asks at most 256 threads, for at most a second. Throws
// std::bad_alloc.
void write_stacks(json_text& out, runtime_core& core, stacks_wanted wanted);

}  // namespace troupe::observing
