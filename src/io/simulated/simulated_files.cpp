// Files in a simulation: the machine's own, but when they wait, what is interrupted, and what comes
// in parts is the seed's choice.
#include <algorithm>
#include <array>
#include <cerrno>

#include "io/simulated/simulated_end.hpp"

namespace troupe::io {

int simulated_kernel::open(const char* path, int flags, mode_t permissions, bool at_once) noexcept {
  if (interrupts()) return -EINTR;
  if (at_once && simulation_.choose(2) == 0) return -EAGAIN;
  return real_kernel().open(path, flags, permissions, false);
}

std::ptrdiff_t simulated_kernel::read_at(int fd, void* data, std::size_t bytes, std::int64_t offset,
                                         bool at_once) noexcept {
  if (interrupts()) return -EINTR;
  if (at_once && simulation_.choose(2) == 0) return -EAGAIN;
  const std::size_t most =
      bytes > 1 && simulation_.choose(4) == 0 ? 1 + simulation_.choose(bytes) : bytes;
  return real_kernel().read_at(fd, data, most, offset, false);
}

std::ptrdiff_t simulated_kernel::write_at(int fd, const void* data, std::size_t bytes,
                                          std::int64_t offset) noexcept {
  if (interrupts()) return -EINTR;
  const std::size_t most =
      bytes > 1 && simulation_.choose(4) == 0 ? 1 + simulation_.choose(bytes) : bytes;
  return real_kernel().write_at(fd, data, most, offset);
}

int simulated_kernel::sync(int fd, bool data_alone) noexcept {
  return interrupts() ? -EINTR : real_kernel().sync(fd, data_alone);
}

int simulated_kernel::status(int fd, struct statx* to) noexcept {
  return real_kernel().status(fd, to);
}

std::ptrdiff_t simulated_kernel::send_file(int to, int from, std::int64_t offset,
                                           std::size_t bytes) noexcept {
  {
    const lock_of lock(mutex_);
    if (find(to) == nullptr)
      return to >= first_fd ? -EBADF : real_kernel().send_file(to, from, offset, bytes);
  }
  std::array<char, 65'536> part;
  const std::ptrdiff_t got =
      real_kernel().read_at(from, part.data(), std::min(bytes, part.size()), offset, false);
  return got <= 0 ? got : send(to, part.data(), static_cast<std::size_t>(got), nullptr, 0);
}

}  // namespace troupe::io
