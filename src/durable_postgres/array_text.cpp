#include "durable_postgres/array_text.hpp"
#include "base/text/hex.hpp"

#include <cstdint>

namespace troupe::durable {
namespace {

// How many bytes the character in front has; 0 if it is none of UTF-8.
std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const auto continues = [&](std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; ++at) {
      if ((byte(at) & 0xc0u) != 0x80) return false;
    }
    return true;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return continues(1, 2) ? 2 : 0;
  if (first < 0xf0) {
    // Neither longer than needed, nor half of a surrogate pair.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    return continues(1, 3) ? 3 : 0;
  }
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return continues(1, 4) ? 4 : 0;
}

}  // namespace

std::string stored_text(std::string_view any) {
  std::string text;
  text.reserve(any.size());
  while (!any.empty()) {
    std::size_t size = character_size(any);
    if (size == 0 || any.front() == '\0') {
      size = 1;
      text += "\\x";
      base::append_hex(text, static_cast<std::uint8_t>(any.front()));
    } else {
      if (any.front() == '\\') text += '\\';
      text += any.substr(0, size);
    }
    any.remove_prefix(size);
  }
  return text;
}

std::string text_of_stored(std::string_view stored) {
  std::string text;
  text.reserve(stored.size());
  for (std::size_t at = 0; at < stored.size(); ++at) {
    if (stored[at] != '\\' || at + 1 == stored.size()) {
      text += stored[at];
    } else if (stored[at + 1] == 'x' && at + 3 < stored.size() &&
               base::hex_value(stored[at + 2]) >= 0 && base::hex_value(stored[at + 3]) >= 0) {
      text +=
          static_cast<char>(16 * base::hex_value(stored[at + 2]) + base::hex_value(stored[at + 3]));
      at += 3;
    } else {
      text += stored[++at];
    }
  }
  return text;
}

std::vector<std::string> places_of_prefix(std::string_view prefix) {
  std::vector<std::string> places{stored_text(prefix)};
  constexpr std::size_t character_max = 4;
  for (std::size_t part = 1; part < character_max && part <= prefix.size(); ++part) {
    const std::string_view begun = prefix.substr(prefix.size() - part);
    // Continued by the smallest bytes with which it is a character; some first bytes demand more.
    for (const char next : {'\x80', '\x90', '\xa0'}) {
      std::string whole(begun);
      if (part > 1 && next != '\x80') break;
      whole += next;
      while (character_size(whole) != whole.size() && whole.size() < character_max) whole += '\x80';
      if (character_size(whole) != whole.size()) continue;
      places.push_back(stored_text(prefix.substr(0, prefix.size() - part)) + whole);
      return places;
    }
  }
  return places;
}

void array_text::add_text(std::string_view any) {
  begin_value();
  text_ += '"';
  for (const char c : stored_text(any)) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}

void array_text::add_bytes(std::span<const std::byte> bytes) {
  begin_value();
  text_ += "\"\\\\x";
  base::append_hex(text_, bytes);
  text_ += '"';
}

std::string array_text::take() {
  text_ += '}';
  return std::exchange(text_, "{");
}

}  // namespace troupe::durable
