// ring_entries: fills in the longer entries of an io_uring, and defines the marks of completions.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "io/buffers/buffer_ring.hpp"
#include "io/operations/attempt.hpp"

namespace troupe::io {

// The mark of a slot that shoots: its address, its generation in the upper bits, and two low bits
// that the address of a slot leaves free.
inline constexpr std::uint64_t shot = 2, accepts = 4;
inline constexpr int mark_generation_shift = 48;
inline std::uint64_t mark_of(const slot& at) noexcept {
  return reinterpret_cast<std::uintptr_t>(&at) |
         std::uint64_t{at.generation} << mark_generation_shift | (at.listens ? accepts : 0) | shot;
}
inline slot& slot_of(std::uint64_t mark) noexcept {
  return *reinterpret_cast<slot*>(mark & ((std::uint64_t{1} << mark_generation_shift) - 1) &
                                  ~(accepts | shot));
}

// True when the ring only reports that the operation is ready. `provides`: the system can take
// buffers from the ring of buffers.
inline bool is_polled(const operation& one, bool provides) noexcept {
  switch (one.what) {
    case action::accept:
    case action::connect:
    case action::open:
    case action::read_at:
    case action::write_at:
    case action::sync:
    case action::close:
      return false;
    case action::read:
      return !one.socket || (one.leased && (one.begun || !provides));
    case action::write:
      return !one.socket;
    default:
      return true;
  }
}

inline void prepare_of_file(io_uring_sqe& entry, operation& one) noexcept {
  const int fd = one.at->fd;
  const auto bytes = static_cast<unsigned>(std::min(one.bytes - one.done, step_bytes_max));
  const auto offset = static_cast<std::uint64_t>(
      one.offset == own_position ? own_position : one.offset + static_cast<std::int64_t>(one.done));
  if (one.what == action::open) {
    io_uring_prep_openat(&entry, fd, reinterpret_cast<const char*>(one.data), one.extra,
                         static_cast<mode_t>(one.bytes));
  } else if (one.what == action::read_at) {
    io_uring_prep_read(&entry, fd, one.data + one.done, bytes, offset);
  } else if (one.what == action::write_at) {
    io_uring_prep_write(&entry, fd, one.data + one.done, bytes, offset);
  } else if (one.what == action::sync) {
    io_uring_prep_fsync(&entry, fd, one.extra != 0 ? IORING_FSYNC_DATASYNC : 0);
  } else {
    io_uring_prep_close(&entry, fd);
  }
}

// For a Unix socket the system may say (Linux 6.18 does) that nothing follows the last bytes,
// although the end of the stream follows. A slot that shoots would then wait without end.
inline bool tells_of_its_end(int socket) noexcept {
  int domain = AF_UNIX;
  socklen_t bytes = sizeof domain;
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain != AF_UNIX;
}

// Receives into a buffer of the ring of buffers. If the socket had nothing more to read, the system
// waits first and does not try.
inline void prepare_lease(io_uring_sqe& entry, const slot& at) noexcept {
  io_uring_prep_recv(&entry, at.fd, nullptr, 0, 0);
  entry.flags |= IOSQE_BUFFER_SELECT;
  entry.buf_group = buffer_ring::group;
  if (!at.can_read) entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
}

}  // namespace troupe::io
