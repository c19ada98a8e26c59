// utf8: checks whether text is valid UTF-8.
#pragma once

#include <string_view>

namespace troupe::http {

// Refuses overlong forms, surrogates, and code points above U+10FFFF.
inline bool is_utf8(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xC0) == 0x80; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned first = at(i);
    if (first < 0x80) {
      ++i;
    } else if (first >= 0xC2 && first <= 0xDF) {
      if (!follows(i + 1)) return false;
      i += 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
      const unsigned second = at(i + 1);
      if (!follows(i + 1) || !follows(i + 2) || (first == 0xE0 && second < 0xA0) ||
          (first == 0xED && second > 0x9F)) {
        return false;
      }
      i += 3;
    } else if (first >= 0xF0 && first <= 0xF4) {
      const unsigned second = at(i + 1);
      if (!follows(i + 1) || !follows(i + 2) || !follows(i + 3) ||
          (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
        return false;
      }
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace troupe::http
