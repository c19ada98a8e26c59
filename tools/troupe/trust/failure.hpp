#pragma once

#include <stdexcept>

namespace troupe_tool {

// What the user should know: the message says what to do.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace troupe_tool
