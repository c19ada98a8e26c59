#include "base/side_channels/bounded_write.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"

namespace troupe::base {
namespace {

constexpr std::size_t piece_bytes = 4096;  // PIPE_BUF
constexpr int write_signals[] = {SIGPIPE, SIGXFSZ};

// poll() and write() never block for a regular file.
bool is_regular(int fd) noexcept {
  struct ::stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

// 0: there is space, or write() has an error to report. Otherwise an error number.
int await_space(int fd, int patience_ms) noexcept {
  constexpr std::int64_t ms_ns = 1'000'000;
  const std::int64_t end_ns = now_ns() + patience_ms * ms_ns;
  for (;;) {
    const std::int64_t left_ns = std::max<std::int64_t>(end_ns - now_ns(), 0);
    ::pollfd ready{fd, POLLOUT, 0};
    const int found = ::poll(&ready, 1, static_cast<int>((left_ns + ms_ns - 1) / ms_ns));
    if (found > 0) return 0;
    if (found == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
}

}  // namespace

without_write_signals::without_write_signals() noexcept {
  sigemptyset(&ours_);
  for (const int signal : write_signals) sigaddset(&ours_, signal);
  sigemptyset(&pending_before_);
  ::sigpending(&pending_before_);
  ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

// A signal that a write has caused is pending for this thread alone, and is consumed here. One that
// was pending before is the program's.
without_write_signals::~without_write_signals() {
  sigset_t caused;
  sigemptyset(&caused);
  for (const int signal : write_signals) {
    if (sigismember(&pending_before_, signal) == 0) sigaddset(&caused, signal);
  }
  const ::timespec at_once{0, 0};
  int consumed = 0;
  do {
    consumed = ::sigtimedwait(&caused, nullptr, &at_once);
  } while (consumed > 0 || (consumed < 0 && errno == EINTR));
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bounded_write_result bounded_write(int fd, std::string_view text, int patience_ms) noexcept {
  const int errno_before = errno;
  const bool waits = !is_regular(fd);
  bounded_write_result result;
  {
    const without_write_signals guard;
    while (result.bytes < text.size()) {
      if (waits && (result.error = await_space(fd, patience_ms)) != 0) break;
      const std::size_t left = text.size() - result.bytes;
      const ::ssize_t written =
          ::write(fd, text.data() + result.bytes, waits ? std::min(left, piece_bytes) : left);
      if (written > 0) result.bytes += static_cast<std::size_t>(written);
      if (written < 0 && errno != EINTR && errno != EAGAIN) {
        result.error = errno;
        break;
      }
    }
  }
  errno = errno_before;
  return result;
}

}  // namespace troupe::base
