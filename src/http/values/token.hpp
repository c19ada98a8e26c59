// token: the letters of which names of fields, cookies and parameters are made, and the letters of
// values of fields.
#pragma once

#include <algorithm>
#include <string>
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

// Whether the value of a field has a control byte: a line end could add another field.
constexpr bool has_control(std::string_view value) noexcept {
  return std::ranges::any_of(value, [](char one) {
    return (static_cast<unsigned char>(one) < ' ' && one != '\t') || one == 127;
  });
}

// Adds the line of a field that follows a body. Throws usage_error, in the name of `of`.
void add_trailer_line(std::string& to, std::string_view name, std::string_view value,
                      const char* of);

}  // namespace troupe::http
