#include "text/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "text/short_text.hpp"

namespace troupe_tool {
namespace {

// Findings about the same handler of the same class are one warning.
std::string key_of(const json& warning) {
  return warning.at("kind").get<std::string>() + '\n' + warning.at("class").get<std::string>() +
         '\n' + warning.at("handler").get<std::string>();
}

double ago_ns_of(const json& summary, const json& warning, const char* member) {
  return std::max(summary.at("now_ns").get<double>() - warning.at(member).get<double>(), 0.0);
}

std::string text_of(const json& warning) {
  return warning.at("text").get<std::string>() + " " + warning.value("advice", std::string());
}

// A program looks for most of its troubles once a second.
severity severity_of(const json& summary, const json& warning) {
  constexpr double holds_now_ns = 10e9;
  return ago_ns_of(summary, warning, "last_ns") < holds_now_ns ? severity::trouble
                                                               : severity::notice;
}

}  // namespace

table warning_table(const json& summary, std::size_t width) {
  struct found {
    const json* warning;
    std::size_t runtime;
    double last_ns;
  };
  std::vector<found> all;
  for (std::size_t i = 0; i < summary.at("runtimes").size(); ++i) {
    for (const json& warning : summary.at("runtimes").at(i).at("warnings"))
      all.push_back({&warning, i, warning.at("last_ns").get<double>()});
  }
  std::ranges::sort(all, std::greater<>(), &found::last_ns);
  table shown{cut(fmt::format("{:>8} {:>7}  {}", "ago", "times", "warning"), width), {}};
  for (const auto& [warning, runtime, last_ns] : all) {
    std::string text =
        fmt::format("{:>8} {:>7}  {}", long_time(ago_ns_of(summary, *warning, "last_ns")),
                    short_count(warning->at("times").get<double>()), text_of(*warning));
    shown.lines.push_back({.text = cut(std::move(text), width),
                           .runtime = runtime,
                           .of_class = warning->at("class").get<std::string>(),
                           .actor = warning->at("actor").get<std::uint64_t>(),
                           .warning = key_of(*warning),
                           .how_bad = severity_of(summary, *warning)});
  }
  return shown;
}

table warning_text(const json& summary, std::size_t runtime, const std::string& warning,
                   std::size_t width) {
  if (runtime < summary.at("runtimes").size()) {
    for (const json& known : summary.at("runtimes").at(runtime).at("warnings")) {
      if (key_of(known) != warning) continue;
      table shown{known.at("kind").get<std::string>(), {}};
      const auto actor = known.at("actor").get<std::uint64_t>();
      const auto add = [&](std::string text) {
        shown.lines.push_back({.text = std::move(text),
                               .runtime = runtime,
                               .of_class = known.at("class").get<std::string>(),
                               .actor = actor});
      };
      for (std::string& line : wrapped(text_of(known), width)) add(std::move(line));
      add("");
      add(fmt::format("{} times, first {} ago, last {} ago, longest {}",
                      short_count(known.at("times").get<double>()),
                      long_time(ago_ns_of(summary, known, "since_ns")),
                      long_time(ago_ns_of(summary, known, "last_ns")),
                      long_time(known.value("longest_ns", 0.0))));
      if (actor != 0) add(fmt::format("actor #{}", actor));
      return shown;
    }
  }
  return {"warning", {{.text = "the program keeps this warning no longer"}}};
}

severity worst_warning_of(const json& summary, std::size_t runtime) {
  severity worst = severity::none;
  for (const json& warning : summary.at("runtimes").at(runtime).at("warnings"))
    worst = std::max(worst, severity_of(summary, warning));
  return worst;
}

}  // namespace troupe_tool
