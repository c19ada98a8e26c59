// field_line: the one place where the library makes lines of a head or of a trailer. Whatever a
// program or a peer gives for a name or a value passes it, on both protocols and both sides:
// docs/protocols/outgoing.md has the table.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "http/values/token.hpp"
#include "troupe/base/time_span.hpp"

namespace troupe::http {

// Throw usage_error, in the name of `caller`, for a text that is no field name; and for a value
// with a control byte, which could add a field or end the head.
void check_field_name(std::string_view name, const char* caller);
void check_field_value(std::string_view name, std::string_view value, const char* caller);

// Adds "Name: value\r\n", which it checks.
template <class Text>
void append_field(Text& head, std::string_view name, std::string_view value, const char* caller) {
  check_field_name(name, caller);
  check_field_value(name, value, caller);
  head.append(name).append(": ").append(value).append("\r\n");
}

// Whole seconds, as max-age has them; the part of a second counts as a whole one.
inline std::string seconds_text(time_span span) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(span).count());
}

}  // namespace troupe::http
