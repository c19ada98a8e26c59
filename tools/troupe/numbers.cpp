#include "numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/short_text.hpp"

namespace troupe_tool {
namespace {

constexpr double ns_per_second = 1e9;

std::string labels_of(const json& values) {
  std::string text;
  for (const json& label : values) {
    if (label.get<std::string>().empty()) continue;
    text += (text.empty() ? "" : " ") + label.get<std::string>();
  }
  return text;
}

// In the unit of the number.
std::string value_text(double value, const std::string& unit) {
  return unit == "seconds" ? short_time(value * ns_per_second) : short_count(value);
}

double count_of(const json& value) {
  if (!value.is_object()) return value.is_number() ? value.get<double>() : 0;
  double all = 0;
  for (const json& count : value.at("counts")) all += count.get<double>();
  return all;
}

// The least bound below which that part of the values lies.
double quantile(const json& counts, const json& bounds, double part) {
  double all = 0, seen = 0;
  for (const json& count : counts) all += count.get<double>();
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    seen += counts.at(i).get<double>();
    if (seen >= part * all) return bounds.at(i).get<double>();
  }
  return bounds.empty() ? 0 : bounds.back().get<double>();
}

// The same value in the answer before; 0 if it was not there.
double count_before(const json& before, const json& table, const json& row, std::size_t column) {
  if (!before.is_object() || before.empty()) return 0;
  for (const json& other : before.at("tables")) {
    if (other.at("prefix") != table.at("prefix") || other.at("labels") != table.at("labels") ||
        other.at("numbers").size() != table.at("numbers").size() ||
        other.at("numbers").at(column).at("metric") != table.at("numbers").at(column).at("metric"))
      continue;
    for (const json& old : other.at("rows"))
      if (old.at("labels") == row.at("labels")) return count_of(old.at("values").at(column));
  }
  return 0;
}

}  // namespace

table numbers_table(const moment& seen, std::size_t width) {
  constexpr std::size_t numbers_width = 36;
  const std::size_t name_width = width > numbers_width + 10 ? width - numbers_width : 10;
  table shown{cut(fmt::format("{:<{}}{:>9}{:>9}{:>9}{:>9}", "numbers", name_width, "value", "/s",
                              "p50", "p99"),
                  width),
              {}};
  const double seconds =
      !seen.before.is_object() || seen.before.empty()
          ? 0
          : (seen.now.at("now_ns").get<double>() - seen.before.at("now_ns").get<double>()) /
                ns_per_second;
  for (const json& group : seen.now.at("tables")) {
    for (std::size_t i = 0; i < group.at("numbers").size(); ++i) {
      const json& number = group.at("numbers").at(i);
      const auto unit = number.at("unit").get<std::string>();
      for (const json& row : group.at("rows")) {
        const json& value = row.at("values").at(i);
        const double count = count_of(value);
        if (count == 0) continue;
        const bool is_sum = number.at("kind") != "gauge";
        const double more = count - count_before(seen.before, group, row, i);
        const std::string rate =
            is_sum && seconds > 0 ? short_count(std::max(more, 0.0) / seconds) : "-";
        const auto part = [&](double of_all) -> std::string {
          if (!value.is_object()) return "-";
          return value_text(quantile(value.at("counts"), number.at("bounds"), of_all), unit);
        };
        const std::string name =
            number.at("metric").get<std::string>() + " " + labels_of(row.at("labels"));
        shown.lines.push_back(
            {.text = cut(
                 fmt::format("{:<{}}{:>9}{:>9}{:>9}{:>9}", cut(name, name_width - 1), name_width,
                             value.is_object() ? short_count(count) : value_text(count, unit), rate,
                             part(0.5), part(0.99)),
                 width)});
      }
    }
  }
  return shown;
}

}  // namespace troupe_tool
