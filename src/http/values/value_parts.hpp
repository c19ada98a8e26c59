// value_parts: how the values of fields are taken apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "troupe/http/fields.hpp"

namespace troupe::http {

constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the text up to `end` off `left`, without the spaces around it. An `end` inside a quoted
// string ends nothing.
constexpr std::string_view take_part(std::string_view& left, char end) noexcept {
  bool quoted = false;
  std::size_t at = 0;
  for (; at < left.size(); ++at) {
    if (left[at] == '"') quoted = !quoted;
    if (quoted && left[at] == '\\') {
      ++at;
      continue;
    }
    if (!quoted && left[at] == end) break;
  }
  const std::string_view part = left.substr(0, at);
  left.remove_prefix(at < left.size() ? at + 1 : left.size());
  return trimmed(part);
}

// A parameter of the Content-Disposition of a part, as parameter_of_media; browsers write a quote
// as
// \", and leave the backslashes of a path as they are.
std::string parameter_of_part(std::string_view disposition, std::string_view name);

// Whether a field Accept-Encoding accepts or refuses answers without a coding.
inline bool names_identity(std::string_view accepted) noexcept {
  while (!accepted.empty()) {
    std::string_view element = take_part(accepted, ',');
    const std::string_view name = take_part(element, ';');
    if (name == "*" || same_word(name, "identity")) return true;
  }
  return false;
}

}  // namespace troupe::http
