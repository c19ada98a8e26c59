// reason_of: the text of an exception, for a message or a count of failures.
#pragma once

#include <exception>
#include <string>

namespace troupe::base {

inline std::string reason_of(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown";
  }
}

}  // namespace troupe::base
