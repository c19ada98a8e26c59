#include "command_line/sections.hpp"

#include <fmt/format.h>

#include "text/short_text.hpp"

namespace troupe_tool {
namespace {

constexpr section_line environment[] = {
    {"TROUPE_OBSERVE=1", "of a program: it can be asked"},
    {"XDG_RUNTIME_DIR", "the folder in which programs of the user make their sockets"},
    {"NO_COLOR", "if it is set and not empty, top uses no colours"}};
constexpr section_line files[] = {
    {"$XDG_RUNTIME_DIR/troupe/PID.sock", "the socket of a program"},
    {"/tmp/troupe-UID/PID.sock", "the socket of a program without XDG_RUNTIME_DIR"}};
constexpr section_line status[] = {
    {"0", "all is well"},
    {"1", "it failed, and says why; lint and explore: found something"},
    {"2", "the command line is wrong; lint: a file could not be read"}};
constexpr section all[] = {{"Environment", environment}, {"Files", files}, {"Exit status", status}};

}  // namespace

std::span<const section> sections() { return all; }

std::string text_of_sections() {
  constexpr std::size_t term_width = 33, width = 80;
  std::string text;
  for (const auto& [title, lines] : all) {
    text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", title);
    for (const auto& [term, description] : lines) {
      std::string before = fmt::format("  {:<{}}", term, term_width);
      for (const std::string& line : wrapped(description, width - term_width)) {
        text += fmt::format("{:<{}} {}\n", before, term_width + 2, line);
        before.clear();
      }
    }
  }
  return text;
}

}  // namespace troupe_tool
