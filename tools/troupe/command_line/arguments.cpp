#include "command_line/arguments.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <sstream>
#include <string_view>

namespace troupe_tool {

completion completion_of(const CLI::Option& option) {
  constexpr std::array files{"DATABASE", "FILES", "INPUT", "OUTPUT", "BUILD", "SCHEDULE"};
  const std::string name = placeholder_of(option);
  if (name == "PID") return completion::processes;
  if (name == "COMMAND") return completion::commands;
  if (std::ranges::find(files, name) != files.end()) return completion::files;
  return values_of(option).empty() ? completion::nothing : completion::values;
}

std::vector<std::string> values_of(const CLI::Option& option) {
  // The library describes a set as {one,two}.
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos) return values;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  return values;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string placeholder_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  if (option.get_items_expected_max() == 0) return "";
  std::string name = option.get_lnames().empty() ? "value" : option.get_lnames().front();
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return name;
}

bool takes_many(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string words_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : words_of(*parent) + " " + command.get_name();
}

}  // namespace troupe_tool
