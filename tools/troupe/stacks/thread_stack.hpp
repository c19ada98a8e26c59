// thread_stack: what a program has answered about one of its threads: registers, a part of the
// stack, and the handler that it was in (src/runtime/observing/stacks/stacks.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program.hpp"

namespace troupe_tool {

struct thread_stack {
  unsigned worker = 0;  // 0: no worker
  int thread = 0;       // its number in the system
  bool is_blocked = false;
  std::int64_t cpu_ns = 0;                 // processor time that it has used so far
  std::uint64_t actor = 0;                 // its id; 0: none
  std::string of_class, handler;           // empty: none
  std::string missing;                     // why there are no registers; else empty
  std::vector<std::uint64_t> registers{};  // in the order of DWARF
  std::uint64_t stack_pointer = 0;
  std::string stack{};  // bytes, from there on
  std::int64_t held_ns = 0;

  // "&Slow::work of Slow", or what stands for no handler.
  std::string work() const;
};

// Throws failure, or an exception of the library, if the answer is not of that form: the program
// may be hostile.
std::vector<thread_stack> read_stacks(const json& answer);

std::size_t count_runtimes(program& asked);
// The stacks of all of these runtimes. `which` is empty, a worker's number, or "running".
std::vector<thread_stack> ask_stacks(program& asked, std::size_t runtimes,
                                     const std::string& which);

}  // namespace troupe_tool
