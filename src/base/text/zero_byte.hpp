// zero_byte: texts that the system reads up to a zero byte.
#pragma once

#include <string>
#include <string_view>

#include "troupe/base/error.hpp"

namespace troupe::base {

// Throws option_error for a text with a zero byte, before a function of C gets the text: that
// function takes the part before the zero byte for the whole, and opens another file. `where` is
// the operation, `value_name` names the text; the message has both, and not the text.
inline void refuse_zero_byte(std::string_view text, const char* where, const char* value_name) {
  if (text.find('\0') == std::string_view::npos) return;
  throw option_error(std::string("troupe: ") + where + ": " + value_name +
                     " has a zero byte, at which it would be cut");
}

}  // namespace troupe::base
