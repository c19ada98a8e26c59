#include <fmt/format.h>

#include <string>
#include <string_view>

#include "command_line/arguments.hpp"
#include "command_line/completion.hpp"

namespace troupe_tool {
namespace {

constexpr const char* head = R"zsh(#compdef troupe
# zsh completion for troupe, made by `troupe completion zsh`.
_troupe_processes() {
  local -a numbers
  numbers=(${(f)"$(troupe ps --pids 2> /dev/null)"})
  compadd -a numbers
}
)zsh";

// A text between single quotes, in which nothing is special to _arguments or _describe.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string action_of(const CLI::Option& option) {
  switch (completion_of(option)) {
    case completion::values:
      return fmt::format("({})", fmt::join(values_of(option), " "));
    case completion::commands:
      return "_troupe_commands";
    case completion::processes:
      return "_troupe_processes";
    case completion::files:
      return "_files";
    case completion::nothing:
      break;
  }
  return " ";
}

std::string options_text(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* const option : options_of(command)) {
    const std::string value = placeholder_of(*option);
    for (const std::string& name : names_of(*option)) {
      text += fmt::format(" \\\n        '{}[{}]{}'", name, plain(option->get_description()),
                          value.empty() ? "" : fmt::format(":{}:{}", value, action_of(*option)));
    }
  }
  return text;
}

std::string arguments_text(const CLI::App& command) {
  std::string text;
  int number = 1;
  for (const CLI::Option* const argument : arguments_of(command)) {
    const std::string place =
        takes_many(*argument) ? "*"
                              : fmt::format("{}{}", number, argument->get_required() ? "" : ":");
    text += fmt::format(" \\\n        '{}:{}:{}'", place, placeholder_of(*argument),
                        action_of(*argument));
    ++number;
  }
  return text;
}

// The commands of the app, each with its description.
std::string list_of(const CLI::App& app, std::string_view name) {
  std::string text = fmt::format("_{}_commands() {{\n  local -a all=(\n", name);
  for (const CLI::App* const subcommand : commands_of(app))
    text +=
        fmt::format("    '{}:{}'\n", subcommand->get_name(), plain(subcommand->get_description()));
  return text + fmt::format("  )\n  _describe -t commands 'command' all\n}}\n");
}

// `troupe store DATABASE show CLASS KEY`: the options of the commands of a command are its own.
std::string command_text(const CLI::App& command) {
  std::string text = fmt::format("    {})\n      _arguments -C{}{}", command.get_name(),
                                 options_text(command), arguments_text(command));
  const auto parts = commands_of(command);
  if (parts.empty()) return text + " ;;\n";
  const std::size_t place = arguments_of(command).size() + 1;
  for (const CLI::App* const part : parts) {
    for (const CLI::Option* const option : options_of(*part)) {
      if (option != part->get_help_ptr())
        text += fmt::format(" \\\n        '{}[{}]:{}:{}'", names_of(*option).back(),
                            plain(option->get_description()), placeholder_of(*option),
                            action_of(*option));
    }
  }
  text += fmt::format(" \\\n        '{}:command:_troupe_{}_commands' '*:argument:->rest'\n", place,
                      command.get_name());
  text += fmt::format("      case $state:$line[{}] in\n", place);
  for (const CLI::App* const part : parts) {
    for (const CLI::Option* const argument : arguments_of(*part)) {
      if (completion_of(*argument) == completion::files)
        text += fmt::format("        rest:{}) _files ;;\n", part->get_name());
    }
  }
  return text + "      esac ;;\n";
}

}  // namespace

std::string zsh_completion(const CLI::App& app) {
  std::string text = head + list_of(app, "troupe");
  for (const CLI::App* const command : commands_of(app)) {
    if (!commands_of(*command).empty()) text += list_of(*command, "troupe_" + command->get_name());
  }
  text +=
      "_troupe() {\n  local state command\n  local -a line\n  if (( CURRENT == 2 )); then\n"
      "    _arguments -C" +
      options_text(app) +
      " '1: :_troupe_commands'\n    return\n  fi\n"
      "  command=$words[2]\n  shift words\n  (( --CURRENT ))\n  case $command in\n";
  for (const CLI::App* const command : commands_of(app)) text += command_text(*command);
  return text + "  esac\n}\n_troupe \"$@\"\n";
}

}  // namespace troupe_tool
