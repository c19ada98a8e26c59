#include "processes/list.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "processes/process.hpp"
#include "program.hpp"
#include "text/short_text.hpp"
#include "trust/place.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

// A terminal's lines are cut at its width; a file gets them whole.
std::size_t width_of_output() {
  ::winsize size = {};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return SIZE_MAX;
  return size.ws_col;
}

// One program that does not answer, or not sensibly, does not hide the others.
std::string line_of(const program_place& where, std::size_t width) {
  constexpr std::chrono::seconds patience{2};
  const json summary = program(where, patience).ask("summary");
  std::uint64_t actors = 0, messages = 0;
  std::string nodes;
  for (const json& found : summary.at("runtimes")) {
    for (const json& node : found.value("cluster", json::array())) {
      if (node.contains("shards"))
        nodes += fmt::format(", node {}: {} shards", node.at("node").get<std::string>(),
                             node.at("shards").get<int>());
    }
    actors += found.at("metrics").at("actors").get<std::uint64_t>();
    messages += found.at("total").at("messages").get<std::uint64_t>();
  }
  std::string name = shown(arguments_of(where.pid));
  if (name.empty()) name = shown(summary.at("program").get<std::string>());
  const std::string numbers = fmt::format(
      "{:>8} {:<10} {:>7} {:>8} {:>10} {:>12}  ", where.pid, name_of_user(where.user),
      long_time(uptime_ns_of(where.pid)), summary.at("runtimes").size(), actors, messages);
  const std::size_t used = numbers.size() + nodes.size();
  constexpr std::size_t name_min = 20;
  if (width != SIZE_MAX)
    name.resize(std::min(name.size(), std::max(width, used + name_min) - used));
  return numbers + name + nodes;
}

}  // namespace

void list_programs() {
  const found_places found = find_places();
  const std::size_t width = width_of_output();
  print("{:>8} {:<10} {:>7} {:>8} {:>10} {:>12}  {}\n", "pid", "user", "up", "runtimes", "actors",
        "messages", "program");
  for (const program_place& where : found.programs) {
    try {
      print_line(line_of(where, width));
    } catch (const std::exception& failed) {
      put(fmt::format("troupe: process {}: {}\n", where.pid, shown(failed.what())), stderr);
    }
  }
  const std::size_t removed = remove_sockets(found.dead);
  if (removed > 0)
    put(fmt::format("troupe: removed {} socket{} of processes that have ended\n", removed,
                    removed == 1 ? "" : "s"),
        stderr);
}

void list_numbers() {
  for (const program_place& where : find_places().programs) print("{}\n", where.pid);
}

}  // namespace troupe_tool
