// field_line: the one place where the library makes lines of a head or of a trailer. Whatever a
// program or a peer gives for a name or a value passes it, on both protocols and both sides:
// docs/protocols/outgoing.md has the table.
#pragma once

#include <string>
#include <string_view>

#include "http/values/token.hpp"

namespace troupe::http {

// Throw usage_error, in the name of `of`, for what is no name of a field; and for a value with a
// control byte, which could add a field or end the head.
void check_field_name(std::string_view name, const char* of);
void check_field_value(std::string_view name, std::string_view value, const char* of);

// Adds "Name: value\r\n", which it checks.
template <class Text>
void append_field(Text& to, std::string_view name, std::string_view value, const char* of) {
  check_field_name(name, of);
  check_field_value(name, value, of);
  to.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace troupe::http
