#include "text/short_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace troupe_tool {
namespace {

// Three digits and a unit: 4.5, 12, 999.
std::string digits(double n, bool exact, const char* unit) {
  return exact || n >= 99.95 ? fmt::format("{:.0f}{}", n, unit) : fmt::format("{:.1f}{}", n, unit);
}

}  // namespace

std::string short_count(double n) {
  constexpr std::array units{"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  for (; n >= 999.5 && unit + 1 < units.size(); n /= 1000) ++unit;
  return digits(n, unit == 0, units[unit]);
}

std::string short_time(double ns) {
  if (ns <= 0) return "-";
  constexpr std::array units{"ns", "us", "ms", "s"};
  std::size_t unit = 0;
  for (; ns >= 999.5 && unit + 1 < units.size(); ns /= 1000) ++unit;
  return digits(ns, unit == 0, units[unit]);
}

std::string long_time(double ns) {
  constexpr double ns_per_second = 1e9, minute_ns = 60 * ns_per_second, seconds_max = 1e12;
  if (ns < minute_ns) return short_time(ns);
  const auto seconds = static_cast<std::uint64_t>(std::min(ns / ns_per_second, seconds_max));
  constexpr std::uint64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < hour) return fmt::format("{}m{:02}s", seconds / minute, seconds % minute);
  if (seconds < day) return fmt::format("{}h{:02}m", seconds / hour, seconds % hour / minute);
  return fmt::format("{}d{:02}h", seconds / day, seconds % day / hour);
}

std::string cut(std::string line, std::size_t width) {
  if (line.size() <= width) return line;
  while (width != 0 && (static_cast<unsigned char>(line[width]) & 0xC0u) == 0x80u) --width;
  line.resize(width);
  return line;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(width, 8);
    std::string line = cut(std::string(text.substr(0, bytes + 1)), bytes);
    if (line.empty()) line = text.front();  // no UTF-8
    if (line.size() < text.size() && text[line.size()] != ' ') {
      const std::size_t space = line.rfind(' ');
      if (space != std::string::npos && space > 0) line.resize(space);
    }
    text.remove_prefix(line.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace troupe_tool
