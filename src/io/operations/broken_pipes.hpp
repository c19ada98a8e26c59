// A write to a pipe without a reading end is an error, and does not end the program.
#pragma once

#include <csignal>

namespace troupe::io {

// Turns off SIGPIPE, once, unless the program handles it. For calls without a flag against it.
inline void ignore_broken_pipes() {
  static const bool done = [] {
    struct sigaction seen {};
    if (::sigaction(SIGPIPE, nullptr, &seen) == 0 && seen.sa_handler == SIG_DFL)
      ::signal(SIGPIPE, SIG_IGN);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace troupe::io
