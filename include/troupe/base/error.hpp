// error: the exceptions that the library throws at its user's face.
//
// Each is typed and its text says what the caller can do. A handler's own exception is never wrapped:
// run() throws it as it was thrown.
#pragma once

#include <stdexcept>
#include <string>

namespace troupe {

// Base of all the exceptions that the library itself throws.
//
// Example:
//     try { troupe::runtime rt({.workers = 100'000}); }
//     catch (const troupe::error& e) { std::cerr << e.what() << '\n'; }
class error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option or an environment variable has a value that makes no sense. Nothing was started.
class option_error : public error {
  using error::error;
};

// A call that this thread, or this moment, does not allow (run() inside a handler, say). Nothing was changed.
class usage_error : public error {
  using error::error;
};

// stop() ran into its deadline: the text names the handlers that were still running.
class deadline_error : public error {
  using error::error;
};

}  // namespace troupe
