// bounded_write: writes to a descriptor that others read, or do not: standard error, a pipe, a
// file.
//
// The write can neither end the process by a signal (SIGPIPE when the reader has closed, SIGXFSZ
// when a file has reached its limit) nor hold its thread up for longer than the caller allows.
// Thread: any; a signal handler may call all of this.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::base {

// While it exists, a write of this thread that fails has an error number and no signal.
class without_write_signals {
 public:
  without_write_signals() noexcept;
  without_write_signals(const without_write_signals&) = delete;
  without_write_signals& operator=(const without_write_signals&) = delete;
  ~without_write_signals();

 private:
  sigset_t ours_, before_, pending_before_;
};

struct bounded_write_result {
  std::size_t bytes = 0;  // that were written
  int error = 0;          // errno; ETIMEDOUT if the reader has taken nothing for the whole patience
};

// Writes all of it, unless the descriptor takes no byte for `patience_ms`. A pipe gets pieces that
// it takes whole, so that the write does not block once poll() has reported space.
bounded_write_result bounded_write(int fd, std::string_view text, int patience_ms) noexcept;

}  // namespace troupe::base
