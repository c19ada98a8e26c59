#include "dump/dump.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stacks/unwinder.hpp"
#include "tables.hpp"
#include "text/sort_stably.hpp"
#include "text/warnings.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

// "  Snake #12 "the python" in &Snake::eat waits at zoo.cpp:7 for …": the line without its actor,
// and the actor. A wait for a lock has the lock apart, "a lock held by &Bear::sleep since …".
struct waiting_line {
  std::string text, actor, lock{};
};

waiting_line without_lock(waiting_line line) {
  constexpr std::string_view before = " for a lock held by ";
  const std::size_t at = line.text.find(before);
  if (at == std::string::npos) return line;
  line.lock = line.text.substr(at + std::string_view(" for ").size());
  line.text.resize(at);
  return line;
}

std::optional<waiting_line> read_line(std::string_view line) {
  const std::size_t waits = line.find(" waits ");
  if (!line.starts_with("  ") || waits == std::string_view::npos) return std::nullopt;
  const std::size_t mark = line.find(" #");
  if (mark > waits) return without_lock({std::string(line), ""});  // a task, which has no number
  std::size_t end = std::min(line.find_first_not_of("0123456789", mark + 2), line.size());
  if (line.substr(end).starts_with(" \"")) {
    const std::size_t close = std::min(line.find("\" in ", end), line.find("\": ", end));
    if (close != std::string_view::npos) end = close + 1;
  }
  return without_lock({std::string(line.substr(0, mark)) + std::string(line.substr(end)),
                       std::string(line.substr(mark + 1, end - mark - 1))});
}

class line_groups {
 public:
  void add(std::string_view line, waiting_line read) {
    const auto [known, is_new] = by_text_.try_emplace(std::move(read.text), all_.size());
    if (is_new) all_.push_back({std::string(line), known->first});
    group& known_group = all_[known->second];
    ++known_group.lines;
    if (known_group.lines <= actors_shown && !read.actor.empty())
      known_group.actors += (known_group.actors.empty() ? "" : ", ") + read.actor;
  }

  // The text of all, after which there are none.
  std::string take(std::string_view indent = {}) {
    sort_stably(all_, std::greater<>(), &group::lines);
    std::string text;
    for (const group& counted : all_) {
      text += indent;
      text +=
          counted.lines == 1
              ? counted.first + "\n"
              : fmt::format("  {} x {}{}{}\n", counted.lines, counted.text.substr(2),
                            counted.actors.empty() ? "" : ": " + counted.actors,
                            counted.actors.empty() || counted.lines <= actors_shown ? "" : ", …");
    }
    all_.clear();
    by_text_.clear();
    return text;
  }

 private:
  static constexpr std::size_t actors_shown = 3;
  struct group {
    std::string first, text, actors{};
    std::size_t lines = 0;
  };
  std::vector<group> all_;
  std::unordered_map<std::string, std::size_t> by_text_;  // a dump of a hostile program is long
};

// The lines of waiting calls: those that wait for one lock are together, under the lock's holder.
class waiting_calls {
 public:
  void add(std::string_view line, waiting_line read) {
    if (read.lock.empty()) return others_.add(line, std::move(read));
    const auto [known, is_new] = by_lock_.try_emplace(read.lock, locks_.size());
    if (is_new) locks_.push_back({read.lock});
    lock& known_lock = locks_[known->second];
    ++known_lock.calls;
    const std::size_t shown = line.size() - read.lock.size() - std::string_view(" for ").size();
    known_lock.lines.add(line.substr(0, shown), std::move(read));
  }

  std::string take() {
    sort_stably(locks_, std::greater<>(), &lock::calls);
    std::string text;
    for (lock& counted : locks_)
      text += fmt::format("  {}: {} call{} wait{}\n", counted.holder, counted.calls,
                          counted.calls == 1 ? "" : "s", counted.calls == 1 ? "s" : "") +
              counted.lines.take("  ");
    locks_.clear();
    by_lock_.clear();
    return text + others_.take();
  }

 private:
  struct lock {
    std::string holder;
    line_groups lines{};
    std::size_t calls = 0;
  };
  std::vector<lock> locks_;
  std::unordered_map<std::string, std::size_t> by_lock_;
  line_groups others_;
};

void print_table(const table& all) {
  if (all.lines.empty()) return;
  print_line(all.head);
  for (const table_line& line : all.lines) print_line(line.text);
}

// "bank::Account::deposit" of the handler "&{anonymous}::bank::Account::deposit".
std::string method_of(const std::string& handler) {
  if (!handler.starts_with('&')) return "";
  std::string method = handler.substr(1);
  for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"}) {
    for (std::size_t at = 0; (at = method.find(unnamed)) != std::string::npos;)
      method.erase(at, unnamed.size());
  }
  return method;
}

// Where the handlers of these turns are in the source, by the names of their methods. Of programs
// of this user alone: another user's files may be made to harm the tool.
std::unordered_map<std::string, std::string> places_of(const program& asked, const json& turns) {
  if (asked.where().user != ::geteuid()) return {};
  std::set<std::string> methods;
  for (const json& turn : turns) methods.insert(method_of(turn.value("handler", "")));
  methods.erase("");
  if (methods.empty()) return {};
  try {
    return unwinder(asked.where().pid).places_of(methods);
  } catch (const failure&) {
    return {};  // without libdw, or the program's files cannot be read
  }
}

// The text of a turn, with the line of its handler.
std::string text_of(const json& turn, const std::unordered_map<std::string, std::string>& places) {
  auto text = turn.at("text").get<std::string>();
  const auto handler = turn.value("handler", "");
  const auto place = places.find(method_of(handler));
  const std::size_t at = place == places.end() ? std::string::npos : text.find(handler);
  if (at != std::string::npos) text.insert(at + handler.size(), " (" + place->second + ")");
  return text;
}

// The newest turns, if the program has a flight recorder.
void print_turns(program& asked, bool every_line) {
  constexpr int some = 40, many = 1000;
  json answer;
  try {
    answer = asked.ask(fmt::format("turns {}", every_line ? many : some));
  } catch (const failure&) {
    return;  // it has none, or its library is older
  }
  const json& turns = answer.at("turns");
  if (turns.empty()) return;
  print_line("the last turns, newest first");
  print_line("   before (ms)  thread           turn");
  const auto places = places_of(asked, turns);
  for (const json& turn : turns) {
    print_line(fmt::format("{:11.3f}{}   {:<16} {}",
                           static_cast<double>(turn.at("before_ns").get<std::int64_t>()) / 1e6,
                           turn.at("estimate").get<bool>() ? '~' : ' ',
                           turn.at("thread").get<std::string>(), text_of(turn, places)));
  }
}

}  // namespace

std::string grouped(std::string_view dump) {
  std::string text;
  waiting_calls waiting;
  while (!dump.empty()) {
    const std::size_t end = std::min(dump.find('\n'), dump.size());
    const std::string_view line = dump.substr(0, end);
    if (auto read = read_line(line)) {
      waiting.add(line, std::move(*read));
    } else {
      text += waiting.take() + std::string(line) + "\n";
    }
    dump.remove_prefix(std::min(end + 1, dump.size()));
  }
  return text + waiting.take();
}

void show_dump(program& asked, bool every_line) {
  constexpr std::size_t width = 120;
  const table warnings = warning_table(asked.ask("warnings"), SIZE_MAX);
  print_table(warnings);
  print_line(warnings.lines.empty() ? "no warnings" : "");
  const json answer = asked.ask("dump");
  for (const json& dump : answer.at("dumps")) {
    const auto text = dump.get<std::string>();
    put(every_line ? text : grouped(text));
  }
  const json summary = asked.ask("summary");
  for (const json& runtime : summary.at("runtimes")) {
    for (const std::string& line : page_lines(runtime)) print_line(line);
  }
  print_table(work_table({json(), summary}, width));
  print_table(member_table(summary, width));
  print_turns(asked, every_line);
}

}  // namespace troupe_tool
