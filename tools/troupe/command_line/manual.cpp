#include "command_line/manual.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "command_line/arguments.hpp"
#include "command_line/sections.hpp"
#include "top/keys.hpp"

namespace troupe_tool {
namespace {

// A text in which nothing is a request or an escape of roff.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (escaped.empty() || escaped.back() == '\n') {
      if (letter == '.' || letter == '\'') escaped += "\\&";
    }
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string paragraph(std::string_view term, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", plain(term), plain(text));
}

// "troupe log PID [LEVEL] [LOGGER]".
std::string synopsis_of(const CLI::App& command) {
  std::string text;
  if (const CLI::App* const parent = command.get_parent())
    text = synopsis_of(*parent) + " " + command.get_name();
  else
    return command.get_name();
  const bool has_options = options_of(command).size() > 1;  // beside --help
  if (has_options) text += " [OPTIONS]";
  for (const CLI::Option* const argument : arguments_of(command)) {
    const std::string name = placeholder_of(*argument) + (takes_many(*argument) ? "..." : "");
    text += argument->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string description_of(const CLI::Option& option) {
  const auto values = values_of(option);
  const std::string& text = option.get_description();
  return values.empty() ? text : fmt::format("{} ({})", text, fmt::join(values, ", "));
}

std::string option_text(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : names_of(option)) names += (names.empty() ? "" : ", ") + name;
  const std::string value = placeholder_of(option);
  return paragraph(names + (value.empty() ? "" : " " + value), description_of(option));
}

std::string command_text(const CLI::App& command) {
  std::string text =
      fmt::format(".SS {}\n{}\n", plain(synopsis_of(command)), plain(command.get_description()));
  for (const CLI::Option* const argument : arguments_of(command))
    text += paragraph(placeholder_of(*argument), description_of(*argument));
  for (const CLI::Option* const option : options_of(command)) {
    if (option != command.get_help_ptr()) text += option_text(*option);
  }
  if (const std::string footer = command.get_footer(); !footer.empty())
    text += fmt::format(".PP\n{}\n", plain(footer));
  for (const CLI::App* const part : commands_of(command)) text += command_text(*part);
  return text;
}

std::string upper(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

std::string manual_of(const command_line& line) {
  const CLI::App& app = line.app();
  std::string summary = app.get_description();
  summary.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(summary.front())));
  if (summary.ends_with('.')) summary.pop_back();
  std::string text = fmt::format(
      ".\\\" Made by `troupe help --man`.\n.TH TROUPE 1 \"\" \"{}\" \"User Commands\"\n"
      ".SH NAME\ntroupe \\- {}\n.SH SYNOPSIS\n.B troupe\nCOMMAND [ARGUMENTS]\n"
      ".SH DESCRIPTION\n{}\n.SH OPTIONS\n",
      plain(line.version()), plain(summary), plain(app.get_description()));
  for (const CLI::Option* const option : options_of(app)) text += option_text(*option);
  text += ".SH COMMANDS\n";
  for (const CLI::App* const command : commands_of(app)) text += command_text(*command);
  text += ".SH KEYS OF TOP\n";
  for (const auto& [keys, effect] : keys_of_top) text += paragraph(keys, effect);
  for (const auto& [title, lines] : sections()) {
    text += fmt::format(".SH {}\n", upper(title));
    for (const auto& [term, description] : lines) text += paragraph(term, description);
  }
  return text;
}

}  // namespace troupe_tool
