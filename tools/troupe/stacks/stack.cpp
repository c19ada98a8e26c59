#include "stacks/stack.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "stacks/thread_stack.hpp"
#include "stacks/unwinder.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

void print_stack(const thread_stack& stack, unwinder& files, bool every_frame) {
  const std::string runner = stack.worker == 0
                                 ? fmt::format("thread {}", stack.thread)
                                 : fmt::format("worker {} (thread {})", stack.worker, stack.thread);
  print_line(fmt::format("{} {} in {}{}", runner, stack.is_blocked ? "waits" : "runs", stack.work(),
                         stack.actor == 0 ? "" : fmt::format(" #{}", stack.actor)));
  if (!stack.missing.empty()) return print_line("  no stack: " + stack.missing);
  const std::vector<frame> all = files.frames_of(files.addresses_of(stack));
  for (const frame& at : every_frame ? all : without_library(all)) print_line("  " + at.text());
}

}  // namespace

void show_stacks(program& asked, int pid, std::optional<unsigned> worker, bool every_frame) {
  unwinder files(pid);
  const std::vector<thread_stack> all =
      ask_stacks(asked, count_runtimes(asked), worker ? std::to_string(*worker) : "");
  for (const thread_stack& stack : all) print_stack(stack, files, every_frame);
  if (all.empty()) print_line("no thread runs anything");
}

}  // namespace troupe_tool
