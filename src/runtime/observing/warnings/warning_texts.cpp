#include "runtime/observing/warnings/warning_texts.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

namespace troupe::observing {

std::string time_text(std::int64_t ns) {
  constexpr std::pair<const char*, double> units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
  for (const auto& [name, size] : units) {
    const double value = static_cast<double>(ns) / size;
    if (value < 1) continue;
    char text[32];
    std::snprintf(text, sizeof text,
                  value < 9.95 && value - std::floor(value) >= 0.05 ? "%.1f %s" : "%.0f %s", value,
                  name);
    return text;
  }
  return "less than 1 us";
}

std::string counted(std::uint64_t number, const char* noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace troupe::observing
