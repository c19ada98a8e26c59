#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "text/short_text.hpp"
#include "text/warnings.hpp"

namespace troupe_tool {
namespace {

constexpr double ns_per_second = 1e9;

struct row {
  std::string name;
  std::size_t runtime = 0;
  std::string of_class;
  double alive = 0, messages = 0, busy = 0, blocked = 0;
  double wait_p99 = 0, busy_p50 = 0, busy_p99 = 0, failures = 0;
  bool fails_now = false;

  // A share of a thread, which a handler has whether it computes or is blocked.
  double held() const noexcept { return busy + blocked; }
  severity how_bad() const noexcept {
    constexpr double busy_notice = 0.5, busy_trouble = 0.8, wait_notice_ns = 1e9;
    if (held() >= busy_trouble || fails_now) return severity::trouble;
    return held() >= busy_notice || wait_p99 >= wait_notice_ns ? severity::notice : severity::none;
  }
};

using previous = std::map<std::string, const json*>;
std::string key_of(std::size_t runtime, const json& of_class, const json& handler) {
  return fmt::format("{} {} {}", runtime, of_class.at("class").get<std::string>(),
                     handler.at("handler").get<std::string>());
}

template <class Look>
void for_each_handler(const json& summary, Look look) {
  if (summary.is_null()) return;
  for (std::size_t i = 0; i < summary.at("runtimes").size(); ++i) {
    const json& runtime = summary.at("runtimes").at(i);
    if (!runtime.contains("classes")) continue;
    for (const json& of_class : runtime.at("classes")) {
      for (const json& handler : of_class.at("handlers"))
        look(key_of(i, of_class, handler), i, of_class, handler);
    }
  }
}

double seconds_between(const moment& seen) {
  const double now = seen.now.at("now_ns").get<double>();
  const double since = seen.before.is_null()
                           ? now - seen.now.at("runtimes").at(0).at("up_ns").get<double>()
                           : seen.before.at("now_ns").get<double>();
  return std::max((now - since) / ns_per_second, 1e-3);
}

// The class is left out where the handler's name begins with it.
std::string name_of(const json& of_class, const json& handler) {
  const auto owner = of_class.at("class").get<std::string>();
  auto name = handler.at("handler").get<std::string>();
  if (name.starts_with('&')) name.erase(0, 1);
  return name.starts_with(owner) ? name : owner + " " + name;
}

std::vector<row> rows_of(const moment& seen) {
  previous before;
  for_each_handler(seen.before, [&](const std::string& key, std::size_t, const json&,
                                    const json& handler) { before.emplace(key, &handler); });
  const double seconds = seconds_between(seen);
  std::vector<row> rows;
  for_each_handler(seen.now, [&](const std::string& key, std::size_t runtime, const json& of_class,
                                 const json& now) {
    const auto found = before.find(key);
    const auto since = [&](const char* member) {
      return now.value(member, 0.0) -
             (found == before.end() ? 0.0 : found->second->value(member, 0.0));
    };
    rows.push_back(
        {name_of(of_class, now), runtime, of_class.at("class").get<std::string>(),
         of_class.at("alive").get<double>(), (since("messages") + since("resumed")) / seconds,
         since("busy_ns") / ns_per_second / seconds, since("blocked_ns") / ns_per_second / seconds,
         now.at("wait_p99_ns").get<double>(), now.at("busy_p50_ns").get<double>(),
         now.at("busy_p99_ns").get<double>(), now.at("failures").get<double>(),
         found != before.end() && since("failures") > 0});
  });
  return rows;
}

void sort_by(std::vector<row>& rows, order by) {
  const auto value = [by](const row& sorted) {
    switch (by) {
      case order::busy:
        return sorted.held();
      case order::wait:
        return sorted.wait_p99;
      case order::alive:
        return sorted.alive;
      case order::failures:
        return sorted.failures;
      default:
        return sorted.messages;
    }
  };
  std::sort(rows.begin(), rows.end(), [&](const row& a, const row& b) {
    if (by != order::name && value(a) != value(b)) return value(a) > value(b);
    return a.name < b.name;
  });
}

// The class of an actor, and the name that it was given.
std::string class_and_name(const json& actor) {
  const auto name = actor.value("name", std::string());
  return actor.at("class").get<std::string>() + (name.empty() ? "" : " \"" + name + "\"");
}

// Two lines for each node of a cluster that the runtime has.
void add_nodes(std::vector<table_line>& lines, const json& runtime, const json& before,
               double seconds) {
  for (const json& node : runtime.value("cluster", json::array())) {
    if (node.size() == 1) continue;  // it has just gone
    json old;
    for (const json& other : before.value("cluster", json::array()))
      if (other.contains("id") && other.at("id") == node.at("id")) old = other;
    const auto rate = [&](const char* key) {
      const double since = old.is_null() ? 0.0 : old.at(key).get<double>();
      return short_count(std::max(node.at(key).get<double>() - since, 0.0) / seconds);
    };
    const bool has_joined = node.at("joined") != 0, is_connected = node.at("connected") != 0;
    lines.push_back(
        {.text = fmt::format("node {} of {}: {} of 1024 shards, {} node{}, {} actors{}",
                             node.at("node").get<std::string>(), node.at("of").get<std::string>(),
                             node.at("shards").get<int>(), node.at("members").get<int>(),
                             node.at("members") == 1 ? "" : "s",
                             short_count(node.at("actors").get<double>()),
                             !has_joined     ? ", has not joined"
                             : !is_connected ? ", is not connected"
                                             : ""),
         .how_bad = has_joined && is_connected ? severity::none : severity::trouble});
    lines.push_back(
        {.text = fmt::format("  {} here/s, {} sent/s, {} served/s, {} waiting, {} failed",
                             rate("local"), rate("sent"), rate("served"),
                             short_count(node.at("waiting").get<double>()),
                             short_count(node.at("failed").get<double>()))});
  }
}

// How many of the workers compute, and how many are blocked in handlers.
std::string workers_text(const json& now, const json& before, double seconds) {
  double busy = 0, blocked = 0;
  const json& workers = now.at("workers");
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto share = [&](const char* member) {
      const double old = before.is_null() ? 0.0 : before.at("workers").at(i).value(member, 0.0);
      return (workers.at(i).value(member, 0.0) - old) / ns_per_second / seconds;
    };
    busy += share("busy_ns");
    blocked += share("blocked_ns");
  }
  return fmt::format("{:.1f} of {} workers busy, {:.1f} blocked", busy, workers.size(), blocked);
}

std::uint64_t warnings_of(const json& runtime) {
  std::uint64_t sum = 0;
  for (const json& count : runtime.at("warning_counts")) sum += count.get<std::uint64_t>();
  return sum;
}

}  // namespace

// The addresses of the program's pages, or of its node's page, and of the pages of other nodes.
std::vector<std::string> page_lines(const json& runtime) {
  std::vector<std::string> lines;
  for (const json& server : runtime.value("http", json::array())) {
    if (server.contains("page")) lines.push_back("page: " + server.at("page").get<std::string>());
  }
  for (const json& node : runtime.value("cluster", json::array())) {
    for (const json& node_row : node.value("nodes", json::array())) {
      if (!node_row.contains("page")) continue;
      std::string line = node_row.at("id") == node.at("id")
                             ? "page: "
                             : "page of " + node_row.at("name").get<std::string>() + ": ";
      line += node_row.at("page").get<std::string>();
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<table_line> head_lines(const moment& seen, std::size_t width) {
  std::vector<table_line> lines;
  const double seconds = seconds_between(seen);
  const json& runtimes = seen.now.at("runtimes");
  constexpr std::size_t pages_max = 4;  // a cluster may have many nodes
  const auto add = [&](std::string text, severity how_bad = severity::none) {
    lines.push_back({.text = std::move(text), .how_bad = how_bad});
  };
  add(fmt::format("{} ({}), {} runtime{}", seen.now.at("program").get<std::string>(),
                  seen.now.at("pid").get<int>(), runtimes.size(), runtimes.size() == 1 ? "" : "s"));
  for (std::size_t i = 0; i < runtimes.size(); ++i) {
    const json& now = runtimes.at(i);
    const bool known = !seen.before.is_null() && i < seen.before.at("runtimes").size();
    const double messages =
        now.at("total").at("messages").get<double>() -
        (known ? seen.before.at("runtimes").at(i).at("total").at("messages").get<double>() : 0);
    const json& metrics = now.at("metrics");
    const json old = known ? seen.before.at("runtimes").at(i) : json();
    add(fmt::format("up {}, {}, {} actors, {} suspended", long_time(now.at("up_ns").get<double>()),
                    workers_text(now, old, seconds),
                    short_count(metrics.at("actors").get<double>()),
                    short_count(metrics.at("suspended").get<double>())));
    add(fmt::format("{} messages/s, {} failures, {} dead letters, {} warnings",
                    short_count(messages / seconds), metrics.at("failures").get<std::uint64_t>(),
                    metrics.at("dead_letters").get<std::uint64_t>(), warnings_of(now)),
        worst_warning_of(seen.now, i));
    add_nodes(lines, now, known ? seen.before.at("runtimes").at(i) : json::object(), seconds);
    std::vector<std::string> pages = page_lines(now);
    const std::size_t others = pages.size() - std::min(pages.size(), pages_max);
    pages.resize(pages.size() - others);
    for (std::string& line : pages) add(std::move(line));
    if (others != 0) add(fmt::format("pages of {} other nodes: see the dump", others));
    add("running: " + now.at("running").get<std::string>());
  }
  for (table_line& line : lines) line.text = cut(std::move(line.text), width);
  return lines;
}

table handler_table(const moment& seen, order by, std::size_t width) {
  struct column {
    const char* title;
    std::size_t width;
    order sorts = order::name;
  };
  // block%, p50 and p99 sort nothing.
  constexpr std::array columns{column{"alive", 6, order::alive},
                               column{"msg/s", 8, order::messages},
                               column{"busy%", 7, order::busy},
                               column{"block%", 7},
                               column{"p50", 8},
                               column{"p99", 8},
                               column{"wait99", 8, order::wait},
                               column{"fail", 6, order::failures}};
  constexpr std::size_t numbers_width = 58;
  const std::size_t name_width = width > numbers_width + 10 ? width - numbers_width : 10;
  std::vector<row> rows = rows_of(seen);
  sort_by(rows, by);
  std::string head = fmt::format("{:<{}}", by == order::name ? "handler*" : "handler", name_width);
  for (const auto& [title, wide, sorts] : columns) {
    const bool is_sorted = sorts != order::name && sorts == by;
    head += fmt::format("{:>{}}", std::string(is_sorted ? "*" : "") + title, wide);
  }
  table shown{cut(std::move(head), width), {}};
  for (const row& shown_row : rows) {
    std::string text =
        fmt::format("{:<{}}{:>6}{:>8}{:>7.1f}{:>7.1f}{:>8}{:>8}{:>8}{:>6}",
                    cut(shown_row.name, name_width - 1), name_width, short_count(shown_row.alive),
                    short_count(shown_row.messages), 100 * shown_row.busy, 100 * shown_row.blocked,
                    short_time(shown_row.busy_p50), short_time(shown_row.busy_p99),
                    short_time(shown_row.wait_p99), short_count(shown_row.failures));
    shown.lines.push_back({.text = cut(std::move(text), width),
                           .runtime = shown_row.runtime,
                           .of_class = shown_row.of_class,
                           .how_bad = shown_row.how_bad()});
  }
  return shown;
}

table work_table(const moment& seen, std::size_t width) {
  struct list {
    const char *key, *name, *counted, *word;
  };
  constexpr std::array lists{list{"io", "operation", "done", "io"},
                             list{"lazies", "lazy", "computed", "lazy"},
                             list{"timers", "source", "armed", "timer"}};
  constexpr std::size_t numbers_width = 51;
  const std::size_t name_width = width > numbers_width + 10 ? width - numbers_width : 10;
  table shown{cut(fmt::format("{:<{}}{:>9}{:>8}{:>9}{:>8}{:>8}{:>9}", "I/O, lazies, timers",
                              name_width, "count", "/s", "bytes/s", "p50", "p99", "errors"),
                  width),
              {}};
  const double seconds = seconds_between(seen);
  for (std::size_t i = 0; i < seen.now.at("runtimes").size(); ++i) {
    const json& runtime = seen.now.at("runtimes").at(i);
    for (const auto& [key, name, counted, word] : lists) {
      for (const json& listed : runtime.value(key, json::array())) {
        const auto its_name = listed.at(name).get<std::string>();
        const double count = listed.at(counted).get<double>();
        if (count == 0) continue;
        json old;
        if (!seen.before.is_null() && i < seen.before.at("runtimes").size()) {
          for (const json& other : seen.before.at("runtimes").at(i).value(key, json::array()))
            if (other.at(name) == its_name) old = other;
        }
        const auto rate = [&](const char* member) {
          const double before = old.is_null() ? 0.0 : old.value(member, 0.0);
          return short_count(std::max(listed.value(member, 0.0) - before, 0.0) / seconds);
        };
        const std::string bytes = listed.contains("bytes") ? rate("bytes") : "-";
        const std::string errors =
            listed.contains("errors") ? short_count(listed.at("errors").get<double>()) : "-";
        std::string text = fmt::format("{:<{}}{:>9}{:>8}{:>9}{:>8}{:>8}{:>9}",
                                       cut(fmt::format("{} {}", word, its_name), name_width - 1),
                                       name_width, short_count(count), rate(counted), bytes,
                                       short_time(listed.value("p50_ns", 0.0)),
                                       short_time(listed.value("p99_ns", 0.0)), errors);
        shown.lines.push_back({.text = cut(std::move(text), width), .runtime = i});
      }
    }
  }
  return shown;
}

table member_table(const json& summary, std::size_t width) {
  table shown{cut(fmt::format("{:>7}  {:<33} {}", "shards", "id of the node", "name"), width), {}};
  for (std::size_t i = 0; i < summary.at("runtimes").size(); ++i) {
    for (const json& node : summary.at("runtimes").at(i).value("cluster", json::array())) {
      for (const json& node_row : node.value("nodes", json::array())) {
        std::string text = fmt::format("{:>7}  {:<33} {}{}{}", node_row.at("shards").get<int>(),
                                       node_row.at("id").get<std::string>(),
                                       node_row.at("name").get<std::string>(),
                                       node_row.at("id") == node.at("id") ? " (this program)" : "",
                                       node_row.at("leaving").get<bool>() ? ", leaves" : "");
        shown.lines.push_back({.text = cut(std::move(text), width), .runtime = i});
      }
      if (node.contains("last_failure"))
        shown.lines.push_back({.text = cut("the last failure of its leases: " +
                                               node.at("last_failure").get<std::string>(),
                                           width),
                               .runtime = i,
                               .how_bad = severity::notice});
    }
  }
  return shown;
}

// "waits 3.2s at bank.cpp:12 for the answer of &Bank::pay (#7)".
std::string wait_text(const json& call) {
  std::string text = "waits";
  if (call.contains("waits_ns")) text += " " + short_time(call.at("waits_ns").get<double>());
  if (const auto at = call.at("at").get<std::string>(); !at.empty()) text += " at " + at;
  text += " for " + call.at("for").get<std::string>();
  const auto asked = call.value("asked", std::uint64_t{0});
  return asked == 0 ? text : text + fmt::format(" (#{})", asked);
}

// A mailbox is long, or a call waits long, as far as the program's warnings are concerned.
severity severity_of_actor(const json& actor) {
  constexpr double mail_notice = 100, mail_trouble = 10'000, wait_notice_ns = 5e9;
  const double mail = actor.at("mail").get<double>();
  const double waits_ns = actor.value("waits", json::object()).value("waits_ns", 0.0);
  if (mail >= mail_trouble) return severity::trouble;
  return mail >= mail_notice || waits_ns >= wait_notice_ns ? severity::notice : severity::none;
}

table actor_table(const json& page, std::size_t runtime, order by, std::size_t width) {
  table shown{cut(fmt::format("{:>10} {:>8}  {:<10} {}", by == order::name ? "*id" : "id",
                              by == order::name ? "mail" : "*mail", "state",
                              "class \"name\"  last handler  what it waits for"),
                  width),
              {}};
  for (const json& actor : page.at("actors")) {
    const auto id = actor.at("id").get<std::uint64_t>();
    const auto of_class = actor.at("class").get<std::string>();
    std::string text =
        fmt::format("{:>10} {:>8}  {:<10} {}  {}", id, actor.at("mail").get<std::uint64_t>(),
                    actor.at("state").get<std::string>(), class_and_name(actor),
                    actor.value("last_handler", std::string()));
    if (actor.contains("waits")) text += "  " + wait_text(actor.at("waits"));
    shown.lines.push_back({.text = cut(std::move(text), width),
                           .runtime = runtime,
                           .of_class = of_class,
                           .actor = id,
                           .how_bad = severity_of_actor(actor)});
  }
  return shown;
}

table call_table(const json& story, std::size_t runtime, std::size_t width) {
  table calls{
      cut(fmt::format("{:>6} {:>10}  {:<20} {}", "calls", "of", "waits at", "handler, for"), width),
      {}};
  struct kind {
    std::uint64_t asked;
    std::string at, text;
    std::size_t calls;
  };
  std::vector<kind> kinds;
  for (const json& call : story.at("calls")) {
    const kind found{
        call.value("asked", std::uint64_t{0}), call.at("at").get<std::string>(),
        call.at("handler").get<std::string>() + ", " + call.at("for").get<std::string>(), 1};
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const kind& other) {
      return other.asked == found.asked && other.at == found.at && other.text == found.text;
    });
    same == kinds.end() ? kinds.push_back(found) : void(++same->calls);
  }
  for (const kind& shown : kinds) {
    const std::string asked = shown.asked == 0 ? "-" : fmt::format("#{}", shown.asked);
    std::string text = fmt::format("{:>6} {:>10}  {:<20} {}", shown.calls, asked,
                                   shown.at.empty() ? "-" : shown.at, shown.text);
    calls.lines.push_back(
        {.text = cut(std::move(text), width), .runtime = runtime, .actor = shown.asked});
  }
  return calls;
}

std::string story_line(const json& story, std::uint64_t id, std::size_t width) {
  const json& actor = story.at("actor");
  if (actor.is_null()) return cut(fmt::format("#{} has ended", id), width);
  const auto last = actor.value("last_handler", std::string());
  const auto parent = actor.value("parent", std::uint64_t{0});
  return cut(
      fmt::format("{} #{}: {}, {} messages in its mailbox, {} suspended calls{}{}",
                  class_and_name(actor), id, actor.at("state").get<std::string>(),
                  actor.at("mail").get<std::uint64_t>(), story.at("suspended").get<std::uint64_t>(),
                  last.empty() ? "" : ", last handler " + last,
                  parent == 0 ? "" : fmt::format(", child of #{}", parent)),
      width);
}

}  // namespace troupe_tool
