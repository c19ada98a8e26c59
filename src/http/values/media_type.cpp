#include "troupe/http/values/media_type.hpp"

#include <cstdint>

#include "http/values/token.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

namespace {

// The bytes before which a backslash is removed.
enum class escapes : std::uint8_t {
  all,
  quotes,  // and backslashes: other ones belong to the text, as in a path of Windows
};

// The text in quotes, without the backslashes; "" if it does not end with the quote that it begins
// with.
std::string unquoted(std::string_view text, escapes which) {
  std::string plain;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    const bool may_escape = text[at] == '\\' && at + 1 < text.size();
    if (may_escape && (which == escapes::all || text[at + 1] == '"' || text[at + 1] == '\\')) ++at;
    plain += text[at];
  }
  return at + 1 == text.size() ? plain : std::string();
}

std::string parameter_in(std::string_view content_type, std::string_view name, escapes which) {
  take_part(content_type, ';');
  while (!content_type.empty()) {
    const std::string_view parameter = take_part(content_type, ';');
    const std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !same_word(parameter.substr(0, equals), name)) continue;
    const std::string_view value = parameter.substr(equals + 1);
    if (value.starts_with('"')) return unquoted(value, which);
    return is_token(value) ? std::string(value) : std::string();
  }
  return {};
}

}  // namespace

std::string_view type_of_media(std::string_view content_type) noexcept {
  return take_part(content_type, ';');
}

std::string parameter_of_media(std::string_view content_type, std::string_view name) {
  return parameter_in(content_type, name, escapes::all);
}
std::string parameter_of_part(std::string_view disposition, std::string_view name) {
  return parameter_in(disposition, name, escapes::quotes);
}

void values::check_json(std::string_view field) {
  const std::string_view type = type_of_media(field);
  const auto ends = [&](std::string_view end) {
    return type.size() > end.size() && same_word(type.substr(type.size() - end.size()), end);
  };
  const auto begins = [&](std::string_view begin) {
    return same_word(type.substr(0, begin.size()), begin);
  };
  const std::string charset = parameter_of_media(field, "charset");
  if ((same_word(type, "application/json") ||
       (type.size() > 17 && begins("application/") && ends("+json"))) &&
      (charset.empty() || same_word(charset, "utf-8")))
    return;
  throw status_error(415, "Content-Type: application/json in UTF-8 is needed");
}

}  // namespace troupe::http
