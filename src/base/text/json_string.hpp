// json_string: strings as JSON writes them.
#pragma once

#include <string>
#include <string_view>

namespace troupe::base {

// Appends the text in quotes. Bytes that are not UTF-8 become U+FFFD, one each.
void add_json_string(std::string& json, std::string_view text);

}  // namespace troupe::base
