// token: the letters of which names of fields, cookies and parameters are made, and the letters of
// values of fields.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::http {

// tchar of RFC 9110, 5.6.2.
constexpr bool is_token_letter(char character) noexcept {
  const char letter = static_cast<char>(character | 0x20);
  return (letter >= 'a' && letter <= 'z') || (character >= '0' && character <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(character) != std::string_view::npos;
}

constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_letter);
}

// Whether the value of a field has a control byte: a line end could add another field.
constexpr bool has_control(std::string_view value) noexcept {
  return std::ranges::any_of(value, [](char character) {
    return (static_cast<unsigned char>(character) < ' ' && character != '\t') || character == 127;
  });
}

// Adds the line of a field that follows a body. Throws usage_error, in the name of `caller`.
void add_trailer_line(std::string& to, std::string_view name, std::string_view value,
                      const char* caller);

}  // namespace troupe::http
