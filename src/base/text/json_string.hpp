// json_string: strings as JSON writes them.
#pragma once

#include <array>
#include <string_view>

namespace troupe::base {

// Removes the first characters of the text, which is not empty, and returns them as they are in a
// JSON string: a part of the text itself, the escape of one character in `room`, or the constant
// U+FFFD. Signal handlers may call it.
std::string_view next_json_piece(std::string_view& text, std::array<char, 6>& room) noexcept;

// Appends the text without quotes. Bytes that are not UTF-8 become U+FFFD, one each.
template <class Sink>
void add_json_characters(Sink& out, std::string_view text) {
  std::array<char, 6> room;
  while (!text.empty()) out.append(next_json_piece(text, room));
}

// Appends the text in quotes.
template <class Sink>
void add_json_string(Sink& out, std::string_view text) {
  constexpr std::string_view quote = "\"";
  out.append(quote);
  add_json_characters(out, text);
  out.append(quote);
}

}  // namespace troupe::base
