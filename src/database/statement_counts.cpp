#include "database/statement_counts.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/text/digit.hpp"
#include "observe/numbers/registry.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::database {
namespace {

constexpr std::size_t label_bytes_max = 200, texts_max = 200;
constexpr std::array seconds_bounds{1e-5,   5e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                    2.5e-2, 0.1,  0.25, 0.5,  1.0,  2.5,    10.0};

struct statement_times {
  observe::distribution took;
  std::uint64_t failed = 0;
};
const observe::number_table<statement_times> statement_numbers{
    "troupe_database_statement",
    {"database", "statement"},
    {shows(observe::trouble::slow_statements,
           observe::histogram_of<&statement_times::took>(
               "duration_seconds", "Time from the start of a statement to the end of its answer.")),
     observe::counter_of<&statement_times::failed>("failures", "Statements that failed.")}};

struct counted_statement {
  observe::sharded_histogram took{seconds_bounds};
  observe::sharded_counter failed;
};

// The list of the process. Never destroyed: connections may end late.
class statement_list {
 public:
  static statement_list& get() {
    static statement_list& instance = *new statement_list;
    return instance;
  }
  counted_statement& find(const char* database, std::string_view text) {
    std::pair key(std::string_view(database), normalized(text));
    std::lock_guard held(mutex_);
    auto found = all_.find(key);
    if (found == all_.end() && all_.size() >= texts_max) {
      key.second = "(others)";
      found = all_.find(key);
    }
    if (found == all_.end())
      found = all_.try_emplace(std::move(key), std::make_unique<counted_statement>()).first;
    return *found->second;
  }

 private:
  statement_list()
      : shown_(statement_numbers, "",
               [this](observe::row_sink& to, const std::string&) { collect(to); }) {}
  void collect(observe::row_sink& rows) {
    std::lock_guard held(mutex_);
    for (const auto& [key, statement] : all_)
      rows.add(statement_numbers, {std::string(key.first), key.second},
               {statement->took.get(), statement->failed.get()});
  }

  std::mutex mutex_;
  std::map<std::pair<std::string_view, std::string>, std::unique_ptr<counted_statement>> all_;
  const observe::number_source shown_;
};

using base::is_digit;
bool is_word(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Takes the text up to and including `end`, or all of the rest if `end` is not in it.
void skip_behind(std::string_view& text, std::string_view end) noexcept {
  const std::size_t at = text.find(end);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
}

// A literal or a quoted name, which in SQLite may be a literal as well. A backslash in front of the
// mark may escape it or not, by the database's settings: then all of the rest is taken, since half
// of a value could show otherwise.
void skip_quoted(std::string_view& text) noexcept {
  const char mark = text.front();
  for (std::size_t at = 1; (at = text.find(mark, at)) != std::string_view::npos;) {
    if (text[at - 1] == '\\' && at > 1) break;
    const bool is_doubled = at + 1 < text.size() && text[at + 1] == mark;
    if (!is_doubled) return text.remove_prefix(at + 1);
    at += 2;
  }
  text.remove_prefix(text.size());
}

// PostgreSQL's comments nest.
void skip_comment(std::string_view& text) noexcept {
  int depth = 0;
  while (!text.empty()) {
    if (text.starts_with("/*")) {
      ++depth;
      text.remove_prefix(2);
    } else if (text.starts_with("*/")) {
      text.remove_prefix(2);
      if (--depth == 0) return;
    } else {
      text.remove_prefix(1);
    }
  }
}

// `$tag$ … $tag$`; false if it begins a parameter instead.
bool skip_dollars(std::string_view& text) noexcept {
  std::size_t end = 1;
  while (end < text.size() && is_word(text[end])) ++end;
  if (end == text.size() || text[end] != '$' || is_digit(text[1])) return false;
  const std::string_view tag = text.substr(0, end + 1);
  text.remove_prefix(tag.size());
  skip_behind(text, tag);
  return true;
}

// A blank, a comment or a value at the begin of `text`; returns its replacement, or null.
const char* take_unnamed(std::string_view& text) noexcept {
  if (std::string_view(" \t\r\n\f\v").find(text.front()) != std::string_view::npos) {
    text.remove_prefix(1);
    return " ";
  }
  if (text.starts_with("--")) {
    skip_behind(text, "\n");
    return " ";
  }
  if (text.starts_with("/*")) {
    skip_comment(text);
    return " ";
  }
  if (text.front() == '\'' || text.front() == '"' || text.front() == '`') {
    skip_quoted(text);
    return "?";
  }
  if (text.front() == '$' && skip_dollars(text)) return "?";
  if (!is_digit(text.front())) return nullptr;
  while (!text.empty() && (is_word(text.front()) || text.front() == '.')) text.remove_prefix(1);
  return "?";
}

}  // namespace

std::string normalized(std::string_view statement) {
  std::string label;
  while (!statement.empty() && label.size() < label_bytes_max) {
    if (const char* const stands = take_unnamed(statement)) {
      if (*stands != ' ' || (!label.empty() && label.back() != ' ')) label += stands;
      continue;
    }
    // A word is taken whole: digits in it are no number, nor are the digits of a parameter.
    const bool is_name = is_word(statement.front()) || statement.front() == '$';
    do {
      label += statement.front();
      statement.remove_prefix(1);
    } while (is_name && !statement.empty() && is_word(statement.front()));
  }
  if (label.size() > label_bytes_max) label.resize(label_bytes_max);
  while (!label.empty() && label.back() == ' ') label.pop_back();
  return label;
}

std::int64_t statement_begins() noexcept {
  return observe::is_watched(observe::watched::counts) ? base::now_ns() : 0;
}

void statement_ends(const char* database, std::string_view text, std::int64_t began_ns,
                    bool failed) noexcept {
  if (began_ns == 0) return;
  constexpr double ns_per_second = 1e9;
  try {
    counted_statement& counted = statement_list::get().find(database, text);
    counted.took.add(static_cast<double>(base::now_ns() - began_ns) / ns_per_second);
    if (failed) counted.failed.add(1);
  } catch (...) {  // memory has run out: this one is not counted
  }
}

}  // namespace troupe::database
