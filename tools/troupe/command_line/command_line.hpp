// command_line: the commands of `troupe` with their arguments. The help, the manual page and the
// completions are made from it, so that none of them knows another command than the tool has.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "exploring/explore.hpp"
#include "lint/command.hpp"
#include "new_project/new_project.hpp"
#include "store.hpp"
#include "tables.hpp"

namespace troupe_tool {

// What the user has asked for. A member counts for the commands that take it.
struct choices {
  int pid = 0;
  std::string sort = "messages";
  bool once = false, as_json = false, longest = false, numbers_alone = false, every_line = false;
  double interval_s = 1;
  std::string of_class;
  std::string ago;  // a time: "-10m"; empty: now
  std::size_t count = 20;
  std::string listen = "127.0.0.1:8125";
  std::string duration, file;
  bool as_text = false, is_collapsed = false;
  std::optional<unsigned> worker;
  std::string level, of_logger;
  std::string topic, shell;
  bool as_manual = false;
  store_choices stored;
  lint_choices sources;
  new_choices project;
  explore_choices explored;
  std::string replayed;  // the file

  order by() const;
  std::chrono::milliseconds interval() const;
};

// The command line is not one of the tool's: says in one sentence what is wrong and what to do.
struct wrong_usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class command_line {
 public:
  command_line();
  command_line(const command_line&) = delete;
  command_line& operator=(const command_line&) = delete;

  // The words of the command: "top", or "store ls". Nothing if the line asks for the help or the
  // version, which are then in `answer`. Throws wrong_usage.
  std::string parse(int argc, char** argv);
  // The help of the command with these words, or of the tool. Throws wrong_usage.
  std::string help_of(const std::string& topic) const;

  std::string version() const;  // "troupe 1.2.3"
  const CLI::App& app() const noexcept { return app_; }
  const choices& chosen() const noexcept { return chosen_; }
  const std::string& answer() const noexcept { return answer_; }

 private:
  CLI::App* add(const char* name, const char* description);
  void add_program_commands();
  void add_recording_commands();
  void add_store_commands();
  void add_lint_command();
  void add_new_command();
  void add_explore_commands();
  void add_help_commands();

  CLI::App app_;
  choices chosen_;
  std::string answer_;
};

}  // namespace troupe_tool
