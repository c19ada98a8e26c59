#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command_line/arguments.hpp"
#include "command_line/completion.hpp"

namespace troupe_tool {
namespace {

constexpr const char* head = R"(# bash completion for troupe, made by `troupe completion bash`.
_troupe() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} kind= words= index
  local -a arguments=()
  COMPREPLY=()
)";

constexpr const char* tail = R"(  case $kind in
    files) compopt -o default 2> /dev/null ;;
    processes) words=$("${COMP_WORDS[0]}" ps --pids 2> /dev/null) ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _troupe troupe
)";

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const subcommand : commands_of(app)) names.push_back(subcommand->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : options_of(app)) {
    for (std::string& name : names_of(*option)) names.push_back(std::move(name));
  }
  return names;
}

// What a case does that completes this argument or value.
std::string action_of(const CLI::App& app, const CLI::Option& option) {
  switch (completion_of(option)) {
    case completion::values:
      return fmt::format("words='{}'", joined(values_of(option)));
    case completion::commands:
      return fmt::format("words='{}'", joined(names_of_commands(app)));
    case completion::processes:
      return "kind=processes";
    case completion::files:
      return "kind=files";
    case completion::nothing:
      break;
  }
  return "kind=nothing";
}

void add_options_with_values(std::set<std::string>& names, const CLI::App& command) {
  for (const CLI::Option* const option : options_of(command)) {
    if (placeholder_of(*option).empty()) continue;
    for (std::string& name : names_of(*option)) names.insert(std::move(name));
  }
  for (const CLI::App* const part : commands_of(command)) add_options_with_values(names, *part);
}

// Counts the arguments before the word; the values of options are none.
std::string counting_of(const CLI::App& app) {
  std::set<std::string> with_values;
  add_options_with_values(with_values, app);
  return fmt::format(R"(  for ((index = 2; index < COMP_CWORD; ++index)); do
    case ${{COMP_WORDS[index]}} in
      {}) ((++index)) ;;
      -*) ;;
      *) arguments+=("${{COMP_WORDS[index]}}") ;;
    esac
  done
)",
                     fmt::join(with_values, "|"));
}

// "top 0": the first argument of top.
std::string arguments_text(const CLI::App& app, const CLI::App& command, const std::string& words,
                           std::size_t first) {
  std::string text;
  std::size_t number = first;
  for (const CLI::Option* const argument : arguments_of(command)) {
    const std::string which = takes_many(*argument) ? "\"*" : fmt::format("{}\"", number);
    text += fmt::format("    \"{} {}) {} ;;\n", words, which, action_of(app, *argument));
    ++number;
  }
  if (const auto parts = commands_of(command); !parts.empty())
    text += fmt::format("    \"{} {}\") words='{}' ;;\n", words, number,
                        joined(names_of_commands(command)));
  return text;
}

std::string values_text(const CLI::App& app, const CLI::App& command, const std::string& words) {
  std::string text;
  for (const CLI::Option* const option : options_of(command)) {
    if (placeholder_of(*option).empty()) continue;
    for (const std::string& name : names_of(*option))
      text += fmt::format("    \"{} {}\") {} ;;\n", words, name, action_of(app, *option));
  }
  return text;
}

std::string options_text(const CLI::App& command, const std::string& words) {
  return fmt::format("    \"{}\") words='{}' ;;\n", words, joined(names_of_options(command)));
}

}  // namespace

// The script looks first for the option whose value the word is, then for options, then for the
// argument, by the command and how many arguments are before.
// Commands of a command come behind its arguments: `troupe store DATABASE show CLASS KEY`.
std::string bash_completion(const CLI::App& app) {
  std::string parts, values, options, arguments;
  for (const CLI::App* const subcommand : commands_of(app)) {
    const std::string& name = subcommand->get_name();
    const std::size_t own = arguments_of(*subcommand).size();
    values += values_text(app, *subcommand, name);
    options += options_text(*subcommand, name);
    arguments += arguments_text(app, *subcommand, name, 0);
    if (!commands_of(*subcommand).empty())
      parts += fmt::format(
          "  [[ $command == {} && ${{#arguments[@]}} -gt {} ]] && command+=\" "
          "${{arguments[{}]}}\"\n",
          name, own, own);
    for (const CLI::App* const part : commands_of(*subcommand)) {
      const std::string words = name + " " + part->get_name();
      values += values_text(app, *part, words);
      options += options_text(*part, words);
      arguments += arguments_text(app, *part, words, own + 1);
    }
  }
  return fmt::format(R"({}{}{}  case "$command $before" in
{}  esac
  if [[ $COMP_CWORD -eq 1 ]]; then
    words='{} {}'
  elif [[ -z $kind$words && $word == -* ]]; then
    case $command in
{}    esac
  elif [[ -z $kind$words ]]; then
    case "$command ${{#arguments[@]}}" in
{}    esac
  fi
{})",
                     head, counting_of(app), parts, values, joined(names_of_commands(app)),
                     joined(names_of_options(app)), options, arguments, tail);
}

}  // namespace troupe_tool
