// media_type: the parts of a field Content-Type.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <string_view>

namespace troupe::http {

// "text/html" of "text/html; charset=utf-8", without spaces.
std::string_view type_of_media(std::string_view content_type) noexcept;

// The value of a parameter, without its quotes: "utf-8" for "charset"; "" if there is none, or if
// it is malformed. Of two parameters with that name the first counts.
std::string parameter_of_media(std::string_view content_type, std::string_view name);

namespace values {

// Throws status_error 415 unless it is JSON in UTF-8: application/json or application/…+json.
void check_json(std::string_view content_type);

}  // namespace values

}  // namespace troupe::http
