// hex: bytes as two lower-case hexadecimal digits each, and the value of such a digit.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/digit.hpp"

namespace troupe::base {

constexpr std::array<char, 2> hex_of(std::uint8_t byte) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[byte >> 4], digits[byte & 15]};
}

constexpr void append_hex(std::string& text, std::uint8_t byte) {
  const std::array<char, 2> digits = hex_of(byte);
  text.append(digits.data(), digits.size());
}

// `Bytes` is a range of std::uint8_t or std::byte.
template <class Bytes>
constexpr void append_hex(std::string& text, const Bytes& bytes) requires requires {
  bytes.begin();
}
{
  for (const auto byte : bytes) append_hex(text, static_cast<std::uint8_t>(byte));
}

// -1 if it is no digit; a capital letter is none.
constexpr int hex_value(char digit) noexcept {
  if (is_digit(digit)) return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

}  // namespace troupe::base
