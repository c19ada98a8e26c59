#include "stacks/stack.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "stacks/thread_stack.hpp"
#include "stacks/unwinder.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

void print_stack(const thread_stack& one, unwinder& files, bool every_frame) {
  const std::string who = one.worker == 0
                              ? fmt::format("thread {}", one.thread)
                              : fmt::format("worker {} (thread {})", one.worker, one.thread);
  print_line(fmt::format("{} {} in {}{}", who, one.is_blocked ? "waits" : "runs", one.work(),
                         one.actor == 0 ? "" : fmt::format(" #{}", one.actor)));
  if (!one.missing.empty()) return print_line("  no stack: " + one.missing);
  const std::vector<frame> all = files.frames_of(files.addresses_of(one));
  for (const frame& at : every_frame ? all : without_library(all)) print_line("  " + at.text());
}

}  // namespace

void show_stacks(program& of, int pid, std::optional<unsigned> worker, bool every_frame) {
  unwinder files(pid);
  const std::vector<thread_stack> all =
      ask_stacks(of, count_runtimes(of), worker ? std::to_string(*worker) : "");
  for (const thread_stack& one : all) print_stack(one, files, every_frame);
  if (all.empty()) print_line("no thread runs anything");
}

}  // namespace troupe_tool
