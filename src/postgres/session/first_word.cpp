#include "postgres/session/first_word.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::postgres {
namespace {

// Comments of this kind lie within each other.
std::size_t end_of_comment(std::string_view text, std::size_t at) noexcept {
  int depth = 0;
  while (at < text.size()) {
    if (text.substr(at, 2) == "/*") {
      ++depth;
      at += 2;
    } else if (text.substr(at, 2) == "*/") {
      at += 2;
      if (--depth == 0) return at;
    } else {
      ++at;
    }
  }
  return at;
}

}  // namespace

std::string take_word(std::string_view& text) {
  std::size_t at = 0;
  for (;;) {
    at = std::min(text.find_first_not_of(" \t\r\n\f\v;", at), text.size());
    if (text.substr(at, 2) == "--") {
      at = std::min(text.find_first_of("\r\n", at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      at = end_of_comment(text, at);
    } else {
      break;
    }
  }
  std::string word;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c >= 'a' && c <= 'z') {
      word += static_cast<char>(c - 'a' + 'A');
    } else if (c >= 'A' && c <= 'Z') {
      word += c;
    } else {
      break;
    }
  }
  text.remove_prefix(at);
  return word;
}

namespace {

bool begins_or_ends_transaction(std::string_view text) {
  const std::string word = take_word(text);
  if (word == "ROLLBACK") {
    std::string next = take_word(text);
    if (next == "WORK" || next == "TRANSACTION") next = take_word(text);
    return next != "TO";  // a savepoint
  }
  return word == "BEGIN" || word == "START" || word == "COMMIT" || word == "END" ||
         word == "ABORT" || (word == "PREPARE" && take_word(text) == "TRANSACTION");
}

bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// Behind the quote that ends the text beginning at `at`.
std::size_t end_of_quoted(std::string_view text, std::size_t at, bool backslashes) noexcept {
  const char quote = text[at++];
  for (; at < text.size(); ++at) {
    if (backslashes && quote == '\'' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (text.substr(at + 1, 1) != text.substr(at, 1)) return at + 1;
      ++at;
    }
  }
  return text.size();
}

// The same for a text such as $body$…$body$; `at` + 1 if none begins there.
std::size_t end_of_dollars(std::string_view text, std::size_t at) noexcept {
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != '$' && is_name_character(text[end])) ++end;
  const bool is_number = end > at + 1 && text[at + 1] >= '0' && text[at + 1] <= '9';
  if (end >= text.size() || text[end] != '$' || is_number) return at + 1;
  const std::string_view mark = text.substr(at, end + 1 - at);
  const std::size_t closes = text.find(mark, end + 1);
  return closes == std::string_view::npos ? text.size() : closes + mark.size();
}

bool makes_function(std::string_view statement) {
  if (take_word(statement) != "CREATE") return false;
  std::string word = take_word(statement);
  if (word == "OR" && take_word(statement) == "REPLACE") word = take_word(statement);
  return word == "FUNCTION" || word == "PROCEDURE";
}

// Cuts a script at the semicolons between its statements, as psql does.
class script_reader {
 public:
  script_reader(std::string_view text, bool backslashes) noexcept
      : rest_(text), backslashes_(backslashes) {}
  bool is_done() const noexcept { return rest_.empty(); }
  std::string_view statement() const noexcept { return rest_; }
  // Begins at the next statement.
  void skip() {
    std::string_view head = rest_;
    makes_ = makes_function(head);
    blocks_ = parentheses_ = 0;
    std::size_t at = 0;
    while (at < rest_.size() && !(rest_[at] == ';' && blocks_ == 0 && parentheses_ == 0))
      at = behind(at);
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
  }

 private:
  std::size_t behind(std::size_t at) {
    const char c = rest_[at];
    if (rest_.substr(at, 2) == "--") return end_of_line(at);
    if (rest_.substr(at, 2) == "/*") return end_of_comment(rest_, at);
    if (c == '\'' || c == '"') return end_of_quoted(rest_, at, backslashes_);
    if (c == '$') return end_of_dollars(rest_, at);
    if (is_name_character(c)) return behind_name(at);
    if (c == '(') ++parentheses_;
    if (c == ')' && parentheses_ > 0) --parentheses_;
    return at + 1;
  }
  // A text continues in quotes behind a line end, by the same rules; comments may lie between.
  std::size_t end_of_escaped(std::size_t at) const noexcept {
    for (;;) {
      at = end_of_quoted(rest_, at, true);
      std::size_t next = at;
      while (next < rest_.size() && (is_space(rest_[next]) || rest_.substr(next, 2) == "--"))
        next = is_space(rest_[next]) ? next + 1 : end_of_line(next);
      const bool is_behind_line =
          rest_.substr(at, next - at).find_first_of("\r\n") != std::string_view::npos;
      if (!is_behind_line || rest_.substr(next, 1) != "'") return at;
      at = next;
    }
  }
  std::size_t end_of_line(std::size_t at) const noexcept {
    return std::min(rest_.find_first_of("\r\n", at), rest_.size());
  }
  // The body of a function may be a block with statements of its own.
  std::size_t behind_name(std::size_t at) {
    std::size_t end = at;
    while (end < rest_.size() && is_name_character(rest_[end])) ++end;
    std::string_view name = rest_.substr(at, end - at);
    const bool escapes = (name == "e" || name == "E") && rest_.substr(end, 1) == "'";
    if (escapes) return end_of_escaped(end);
    const std::string word = take_word(name);
    if (!makes_ || parentheses_ > 0 || !name.empty()) return end;
    std::string_view behind = rest_.substr(end);
    const bool begins = word == "BEGIN" && take_word(behind) == "ATOMIC";  // it may be a name
    if (begins || (word == "CASE" && blocks_ > 0)) ++blocks_;
    if (word == "END" && blocks_ > 0) --blocks_;
    return end;
  }

  std::string_view rest_;
  const bool backslashes_;
  bool makes_ = false;  // the statement makes a function or a procedure
  int blocks_ = 0, parentheses_ = 0;
};

constexpr const char* use_in_transaction =
    "a statement may not begin or end a transaction; use in_transaction";

}  // namespace

const char* why_refused(std::string_view text) {
  if (begins_or_ends_transaction(text)) return use_in_transaction;
  if (take_word(text) == "COPY")
    return "COPY is not a statement for this call; use copy_in or copy_out";
  return nullptr;
}

const char* why_script_refused(std::string_view text, bool backslashes) {
  for (script_reader reads(text, backslashes); !reads.is_done(); reads.skip()) {
    if (begins_or_ends_transaction(reads.statement())) return use_in_transaction;
  }
  return nullptr;
}

bool may_commit_inside(std::string_view text) {
  const std::string word = take_word(text);
  if (word == "CALL" || word == "DO" || word == "VACUUM" || word == "CLUSTER" || word == "REINDEX")
    return true;
  if (word != "CREATE" && word != "DROP" && word != "ALTER") return false;
  std::string words(text);
  std::ranges::transform(words, words.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return words.contains("CONCURRENTLY");
}

}  // namespace troupe::postgres
