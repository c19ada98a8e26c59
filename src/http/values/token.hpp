// token: the letters of which names of fields, cookies and parameters are made.
#pragma once

#include <algorithm>
#include <string_view>

namespace troupe::http {

// tchar of RFC 9110, 5.6.2.
constexpr bool is_token_letter(char one) noexcept {
  const char letter = static_cast<char>(one | 0x20);
  return (letter >= 'a' && letter <= 'z') || (one >= '0' && one <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(one) != std::string_view::npos;
}

constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_letter);
}

}  // namespace troupe::http
