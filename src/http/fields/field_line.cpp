#include "http/fields/field_line.hpp"

#include <algorithm>

#include "troupe/base/error.hpp"
#include "troupe/http/values/content_type.hpp"

namespace troupe::http {

void check_field_name(std::string_view name, const char* caller) {
  if (!is_token(name))
    throw usage_error("troupe: http::" + std::string(caller) + ": '" + std::string(name) +
                      "' is not a valid field name");
}

void check_field_value(std::string_view name, std::string_view value, const char* caller) {
  if (has_control(value))
    throw usage_error("troupe: http::" + std::string(caller) + ": the value of '" +
                      std::string(name) + "' has a line end or another control byte");
}

content_type content_type::of_table(std::string_view text) {
  check_field_value("Content-Type", text, "content_type");
  content_type type;
  type.text_ = text;
  return type;
}

content_type::content_type(std::string_view text, std::nullptr_t) {
  check_field_value("Content-Type", text, "content_type");
  if (text.empty()) return;
  char* const copy = new char[text.size()];
  std::ranges::copy(text, copy);
  copy_ = copy;
  text_ = {copy, text.size()};
}

}  // namespace troupe::http
