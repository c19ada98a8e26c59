#include "text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

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

}  // namespace troupe_tool
