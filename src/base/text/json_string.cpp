#include "base/text/json_string.hpp"

#include <cstddef>

namespace troupe::base {

namespace {

// How many bytes the UTF-8 sequence at the beginning of the text has; 0 if there is none.
std::size_t sequence_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) {
    const bool too_long = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !too_long && !surrogate ? 3 : 0;
  }
  if (first > 0xF4) return 0;
  const bool too_long = first == 0xF0 && byte(1) < 0x90;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return follows(1) && follows(2) && follows(3) && !too_long && !too_large ? 4 : 0;
}

void add_escaped(std::string& to, char one) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (one) {
    case '"':
      to += "\\\"";
      break;
    case '\\':
      to += "\\\\";
      break;
    case '\n':
      to += "\\n";
      break;
    case '\r':
      to += "\\r";
      break;
    case '\t':
      to += "\\t";
      break;
    default:
      to += "\\u00";
      to += digits[static_cast<unsigned char>(one) >> 4];
      to += digits[static_cast<unsigned char>(one) & 15];
  }
}

}  // namespace

void add_json_string(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && text[plain] >= ' ' && text[plain] < 127 && text[plain] != '"' &&
           text[plain] != '\\')
      ++plain;
    json.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t bytes = sequence_bytes(text);
    if (bytes == 0) {
      json += "\xEF\xBF\xBD";
    } else if (bytes > 1 || text[0] == 127) {
      json.append(text.substr(0, bytes));
    } else {
      add_escaped(json, text[0]);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  json += '"';
}

}  // namespace troupe::base
