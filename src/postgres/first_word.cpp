#include "postgres/first_word.hpp"

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
      at = std::min(text.find('\n', at), text.size());
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

const char* why_refused(std::string_view text) {
  const std::string word = take_word(text);
  if (word == "COPY") return "COPY is not a statement for this call; use copy_in or copy_out";
  if (word == "ROLLBACK") {
    std::string next = take_word(text);
    if (next == "WORK" || next == "TRANSACTION") next = take_word(text);
    if (next == "TO") return nullptr;  // a savepoint
  }
  if (word == "BEGIN" || word == "START" || word == "COMMIT" || word == "END" ||
      word == "ROLLBACK" || word == "ABORT" ||
      (word == "PREPARE" && take_word(text) == "TRANSACTION"))
    return "a statement may not begin or end a transaction; use in_transaction";
  return nullptr;
}

}  // namespace troupe::postgres
