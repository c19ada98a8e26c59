#include "base/text/json_string.hpp"
#include "base/text/hex.hpp"

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

// The letter behind the backslash of a short escape; 0 if the character has none.
char letter_of(char character) noexcept {
  switch (character) {
    case '"':
    case '\\':
      return character;
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

std::string_view escape_of(char character, std::array<char, 6>& room) noexcept {
  const auto digits = hex_of(static_cast<unsigned char>(character));
  const char letter = letter_of(character);
  room = {'\\', letter, '0', '0', digits[0], digits[1]};
  if (letter != '\0') return {room.data(), 2};
  room[1] = 'u';
  return {room.data(), room.size()};
}

}  // namespace

std::string_view next_json_piece(std::string_view& text, std::array<char, 6>& room) noexcept {
  const auto take = [&text](std::size_t bytes) {
    const std::string_view taken = text.substr(0, bytes);
    text.remove_prefix(bytes);
    return taken;
  };
  std::size_t plain = 0;
  while (plain < text.size() && text[plain] >= ' ' && text[plain] < 127 && text[plain] != '"' &&
         text[plain] != '\\')
    ++plain;
  if (plain != 0) return take(plain);
  const std::size_t bytes = sequence_bytes(text);
  if (bytes > 1 || text[0] == 127) return take(bytes);
  const char character = take(1)[0];
  return bytes == 0 ? std::string_view("\xEF\xBF\xBD") : escape_of(character, room);
}

}  // namespace troupe::base
