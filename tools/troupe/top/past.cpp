#include "top/past.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <string_view>
#include <utility>

#include "text/short_text.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

constexpr double ns_per_second = 1e9;
constexpr std::size_t width = 80;

// The series of one row at the moment that was found.
double value_of(const json& row, const char* number) {
  const json series = row.value("series", json::object());
  const auto found = series.find(number);
  if (found == series.end() || !found->is_array() || found->empty()) return 0;
  return found->front().is_number() ? found->front().get<double>() : 0;
}

// Calls look(row) for the rows of the tables with that prefix and so many labels.
template <class Look>
void for_each_row(const json& kept, std::string_view prefix, std::size_t labels, Look look) {
  for (const json& table : kept.at("tables")) {
    if (table.at("prefix") != prefix || table.at("labels").size() != labels) continue;
    for (const json& row : table.at("rows")) look(row);
  }
}

double sum_of(const json& kept, std::string_view prefix, std::size_t labels, const char* number) {
  double sum = 0;
  for_each_row(kept, prefix, labels, [&](const json& row) { sum += value_of(row, number); });
  return sum;
}
// Without the threads that are no workers.
double sum_of_workers(const json& kept, const char* number) {
  double sum = 0;
  for_each_row(kept, "troupe_worker", 1, [&](const json& row) {
    if (row.at("labels").at(0) != "others") sum += value_of(row, number);
  });
  return sum;
}

// A summary whose sums are those of one second, so that the tables of the present show them.
json summary_of(const json& kept) {
  constexpr std::size_t class_labels = 1, handler_labels = 2;
  std::map<std::string, json> classes;
  for_each_row(kept, "troupe_handler", handler_labels, [&](const json& row) {
    const json& labels = row.at("labels");
    const auto ns = [&](const char* number) { return value_of(row, number) * ns_per_second; };
    classes[labels.at(0).get<std::string>()]["handlers"].push_back(
        {{"handler", labels.at(1)},
         {"messages", value_of(row, "messages")},
         {"resumed", value_of(row, "resumed")},
         {"failures", value_of(row, "failures")},
         {"busy_ns", ns("busy_seconds")},
         {"blocked_ns", ns("blocked_seconds")},
         {"busy_p50_ns", 0.0},
         {"busy_p99_ns", ns("duration_seconds_p99")},
         {"wait_p99_ns", ns("wait_seconds_p99")}});
  });
  for_each_row(kept, "troupe_class", class_labels, [&](const json& row) {
    json& of_class = classes[row.at("labels").at(0).get<std::string>()];
    of_class["alive"] = value_of(row, "alive");
  });
  json list = json::array();
  for (auto& [name, of_class] : classes) {
    list.push_back({{"class", name},
                    {"alive", of_class.value("alive", 0.0)},
                    {"handlers", of_class.value("handlers", json::array())}});
  }
  return {{"now_ns", ns_per_second},
          {"runtimes", {{{"up_ns", ns_per_second}, {"classes", std::move(list)}}}}};
}

std::string time_of_day(double ago_ns) {
  const std::time_t at = std::time(nullptr) - static_cast<std::time_t>(ago_ns / ns_per_second);
  std::tm local{};
  return ::localtime_r(&at, &local) == nullptr ? "" : fmt::format(" ({:%H:%M:%S})", local);
}

void print_head(const json& kept, const json& summary) {
  const double ago_ns = kept.at("now_ns").get<double>() - kept.at("times_ns").back().get<double>();
  print_line(fmt::format("{} ({}), {} ago{}, rates over {}",
                         summary.at("program").get<std::string>(), summary.at("pid").get<int>(),
                         long_time(ago_ns), time_of_day(ago_ns),
                         kept.at("step_s") == 1 ? "1s" : "10s"));
  print_line(fmt::format("{:.1f} workers busy, {:.1f} blocked, {} actors, {} suspended",
                         sum_of_workers(kept, "busy_seconds"),
                         sum_of_workers(kept, "blocked_seconds"),
                         short_count(sum_of(kept, "troupe", 0, "actors")),
                         short_count(sum_of(kept, "troupe", 0, "suspended"))));
  print_line(fmt::format("{} messages/s, {} failures/s, {} dead letters/s, {} MiB, {} descriptors",
                         short_count(sum_of(kept, "troupe_worker", 1, "messages")),
                         short_count(sum_of(kept, "troupe", 0, "failures")),
                         short_count(sum_of(kept, "troupe", 0, "dead_letters")),
                         std::lround(sum_of(kept, "process", 0, "resident_memory_bytes") / 1048576),
                         short_count(sum_of(kept, "process", 0, "open_fds"))));
}

// The kinds of troubles then; and the text of those that the program still knows.
void print_troubles(const json& kept, const json& summary, std::size_t runtime) {
  std::string kinds;
  for_each_row(kept, "troupe", 1, [&](const json& row) {
    const double active = value_of(row, "warnings_active");
    if (active == 0) return;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", std::lround(active),
                         row.at("labels").at(0).get<std::string>());
  });
  print_line("troubles: " + (kinds.empty() ? "none" : kinds));
  const double at = kept.at("times_ns").back().get<double>();
  for (const json& warning : summary.at("runtimes").at(runtime).at("warnings")) {
    if (warning.at("since_ns").get<double>() > at || warning.at("last_ns").get<double>() < at)
      continue;
    print_line("  " + cut(warning.at("text").get<std::string>(), width - 2));
  }
}

// HTTP routes, statements and I/O: how many a second, and the bound of 99 %.
void print_times(const json& kept) {
  constexpr std::size_t numbers_width = 16, name_width = width - numbers_width;
  bool has_head = false;
  for (const json& table : kept.at("tables")) {
    const auto prefix = table.at("prefix").get<std::string>();
    if (prefix != "troupe_http_request" && prefix != "troupe_database_statement" &&
        prefix != "troupe_io")
      continue;
    for (const json& row : table.at("rows")) {
      const double rate = value_of(row, "duration_seconds");
      if (rate == 0) continue;
      if (!std::exchange(has_head, true))
        print_line(
            fmt::format("{:<{}}{:>8}{:>8}", "route, statement, I/O", name_width, "/s", "p99"));
      std::string name;
      for (const json& label : row.at("labels"))
        name += (name.empty() ? "" : " ") + label.get<std::string>();
      print_line(fmt::format("{:<{}}{:>8}{:>8}", cut(std::move(name), name_width - 1), name_width,
                             short_count(rate),
                             short_time(value_of(row, "duration_seconds_p99") * ns_per_second)));
    }
  }
}

}  // namespace

std::chrono::seconds ago_of(const std::string& text) {
  constexpr double minute_s = 60, max_s = 60 * minute_s;
  const char* const begin = text.data() + (text.starts_with('-') ? 1 : 0);
  const char* const last = text.data() + text.size();
  double number = 0;
  const auto [end, bad] = std::from_chars(begin, last, number);
  const std::string unit(end, last);
  const double unit_s = unit == "s" || unit.empty() ? 1
                        : unit == "m"               ? minute_s
                        : unit == "h"               ? 60 * minute_s
                                                    : -1;
  const double seconds = number * unit_s;
  if (bad != std::errc{} || !(seconds >= 0 && seconds <= max_s))
    throw failure(
        fmt::format("`{}` is no time ago: write -30s, -10m or -1h, at most an hour", text));
  return std::chrono::seconds(std::lround(seconds));
}

void show_past(program& asked, std::chrono::seconds ago, order by, bool as_json) {
  const json summary = asked.ask("summary");
  for (std::size_t i = 0; i < summary.at("runtimes").size(); ++i) {
    const json kept = asked.ask(fmt::format("history {} {} 1", i, ago.count()));
    if (kept.at("times_ns").empty())
      throw failure(fmt::format("process {} keeps no numbers of {} ago: it is observed for {}",
                                summary.at("pid").get<int>(),
                                long_time(static_cast<double>(ago.count()) * ns_per_second),
                                long_time(summary.at("runtimes").at(i).at("up_ns").get<double>())));
    if (as_json) {
      print_line(kept.dump(-1, ' ', true));
      continue;
    }
    print_head(kept, summary);
    print_troubles(kept, summary, i);
    const table handlers = handler_table({json(), summary_of(kept)}, by, width);
    print_line(handlers.head);
    for (const table_line& line : handlers.lines) print_line(line.text);
    print_times(kept);
  }
}

}  // namespace troupe_tool
