#include "troupe/http/values/media_type.hpp"

#include "http/values/parts.hpp"
#include "http/values/token.hpp"
#include "troupe/http/message.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::http {

namespace {

// The text in quotes, without the backslashes; "" if it does not end with the quote that it begins
// with.
std::string unquoted(std::string_view text) {
  std::string made;
  std::size_t at = 1;
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    made += text[at];
  }
  return at + 1 == text.size() ? made : std::string();
}

}  // namespace

std::string_view type_of_media(std::string_view content_type) noexcept {
  return take_part(content_type, ';');
}

std::string parameter_of_media(std::string_view content_type, std::string_view name) {
  take_part(content_type, ';');
  while (!content_type.empty()) {
    const std::string_view one = take_part(content_type, ';');
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || !same_word(one.substr(0, equals), name)) continue;
    const std::string_view value = one.substr(equals + 1);
    if (value.starts_with('"')) return unquoted(value);
    return is_token(value) ? std::string(value) : std::string();
  }
  return {};
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
