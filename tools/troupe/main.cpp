// troupe: looks into running programs that were started with TROUPE_OBSERVE=1, into the databases
// of durable actors, and into sources; begins new projects; searches for schedules. See
// docs/guide/observing.md, or `troupe
// --help`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "command_line/command_line.hpp"
#include "command_line/completion.hpp"
#include "command_line/manual.hpp"
#include "command_line/nearest.hpp"
#include "dump/dump.hpp"
#include "exploring/explore.hpp"
#include "lint/command.hpp"
#include "new_project/new_project.hpp"
#include "observe_page/metrics_text.hpp"
#include "page.hpp"
#include "processes/list.hpp"
#include "program.hpp"
#include "stacks/profile.hpp"
#include "stacks/stack.hpp"
#include "store.hpp"
#include "tables.hpp"
#include "top/past.hpp"
#include "top/top.hpp"
#include "trace_file.hpp"
#include "trust/visible.hpp"

namespace {

using namespace troupe_tool;

void print_lines(const std::vector<table_line>& lines) {
  for (const table_line& line : lines) print_line(line.text);
}
void print_table(const table& all) {
  print_line(all.head);
  print_lines(all.lines);
}
// Pure ASCII: no character of a text in it can control a terminal.
void print_json(const json& value) { print_line(value.dump(-1, ' ', true)); }

void show_once(program& asked, const choices& chosen) {
  moment seen{asked.ask("summary"), json()};
  std::this_thread::sleep_for(chosen.interval());
  seen.now = asked.ask("summary");
  if (chosen.as_json) {
    print_json(seen.now);
    return;
  }
  constexpr std::size_t width = 80;
  print_lines(head_lines(seen, width));
  print_table(handler_table(seen, chosen.by(), width));
  const table others = work_table(seen, width);
  if (!others.lines.empty()) print_table(others);
}

// A class without actors is none that is unknown.
void check_class(program& asked, const choices& chosen) {
  const std::string& wanted = chosen.of_class;
  std::vector<std::string> names;
  const json summary = asked.ask("summary");
  for (const json& runtime : summary.at("runtimes")) {
    for (const json& known_class : runtime.value("classes", json::array()))
      names.push_back(known_class.at("class").get<std::string>());
  }
  if (std::ranges::find(names, wanted) != names.end()) return;
  throw failure(
      fmt::format("process {} has no class {}{}: `troupe top {} --once` shows its classes",
                  chosen.pid, wanted, did_you_mean(wanted, names), chosen.pid));
}

void show_actors(program& asked, const choices& chosen) {
  // The name of a class must not become another question.
  if (chosen.of_class.find('\n') != std::string::npos)
    throw failure("--class: the name of a class has no line break");
  const std::string question = chosen.longest ? fmt::format("longest 0 {}", chosen.count)
                                              : fmt::format("actors 0 0 {}", chosen.count);
  const json page =
      asked.ask(chosen.of_class.empty() ? question : question + " " + chosen.of_class);
  if (page.at("actors").empty() && !chosen.of_class.empty()) check_class(asked, chosen);
  if (chosen.as_json) {
    print_json(page);
  } else {
    print_table(actor_table(page, 0, chosen.longest ? order::messages : order::name, 120));
  }
}

// The name of a logger must not become another question.
void show_log(program& asked, const choices& chosen) {
  const std::string &level = chosen.level, &of_logger = chosen.of_logger;
  if ((level + of_logger).find('\n') != std::string::npos)
    throw failure("a level and a logger are one line");
  std::string question = "log";
  if (!level.empty()) question += " " + level;
  if (!of_logger.empty()) question += " " + of_logger;
  const json answer = asked.ask(question);
  for (const auto& [name, known] : answer.at("levels").items())
    print_line(fmt::format("{:8} {}", known.get<std::string>(), name));
}

using action = void (*)(const choices&);

// Commands that ask one program over one connection.
constexpr std::pair<std::string_view, void (*)(program&, const choices&)> program_commands[] = {
    {"actors", show_actors},
    {"dump", [](program& asked, const choices& chosen) { show_dump(asked, chosen.every_line); }},
    {"log", show_log},
    {"metrics",
     [](program& asked, const choices&) {
       put_metrics(troupe::observe_page::as_metrics(asked.ask_text("numbers")));
     }},
    {"stack",
     [](program& asked, const choices& chosen) {
       show_stacks(asked, chosen.pid, chosen.worker, chosen.every_line);
     }},
    {"top", [](program& asked, const choices& chosen) {
       if (!chosen.ago.empty()) {
         show_past(asked, ago_of(chosen.ago), chosen.by(), chosen.as_json);
       } else if (chosen.once || chosen.as_json || !has_terminal()) {
         show_once(asked, chosen);
       } else {
         show_top(asked, chosen.by(), chosen.interval());
       }
     }}};

constexpr std::pair<std::string_view, action> commands[] = {
    {"new", [](const choices& chosen) { make_project(chosen.project); }},
    {"ps", [](const choices& chosen) { chosen.numbers_alone ? list_numbers() : list_programs(); }},
    {"page", [](const choices& chosen) { serve_page(chosen.pid, chosen.listen); }},
    {"profile",
     [](const choices& chosen) {
       show_profile(chosen.pid, {.duration = duration_of(chosen.duration),
                                 .file = chosen.file,
                                 .is_collapsed = chosen.is_collapsed});
     }},
    {"trace",
     [](const choices& chosen) {
       const auto duration = duration_of(chosen.duration);
       chosen.as_text ? print_trace(chosen.pid, duration)
                      : write_trace(chosen.pid, duration, chosen.file);
     }},
    {"store ls", [](const choices& chosen) { list_store(chosen.stored); }},
    {"store keys", [](const choices& chosen) { list_keys(chosen.stored); }},
    {"store show", [](const choices& chosen) { show_stored(chosen.stored); }},
    {"store dead-letters", [](const choices& chosen) { show_dead_letters(chosen.stored); }},
    {"store export", [](const choices& chosen) { export_store(chosen.stored); }},
    {"store import", [](const choices& chosen) { import_store(chosen.stored); }}};

int run(int argc, char** argv) {
  command_line line;
  const std::string command = line.parse(argc, argv);
  const choices& chosen = line.chosen();
  if (command.empty()) {
    put(line.answer());
  } else if (command == "help") {
    put(chosen.as_manual ? manual_of(line) : line.help_of(chosen.topic));
  } else if (command == "completion") {
    put(chosen.shell == "bash" ? bash_completion(line.app()) : zsh_completion(line.app()));
  } else if (command == "lint") {
    return lint(chosen.sources);
  } else if (command == "explore") {
    return explore(chosen.explored);
  } else if (command == "replay") {
    return replay(chosen.replayed, chosen.explored);
  }
  for (const auto& [name, act] : commands) {
    if (name == command) act(chosen);
  }
  for (const auto& [name, ask] : program_commands) {
    if (name != command) continue;
    program asked(chosen.pid);
    ask(asked, chosen);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const int status = run(argc, argv);
  troupe_tool::end_output();
  return status;
} catch (const troupe_tool::wrong_usage& wrong) {
  troupe_tool::put(fmt::format("{}\n", wrong.what()), stderr);
  return 2;
} catch (const std::exception& failed) {
  troupe_tool::put(fmt::format("troupe: {}\n", failed.what()), stderr);
  return 1;
}
