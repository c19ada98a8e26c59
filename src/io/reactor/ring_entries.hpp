// ring_entries: fills in the longer entries of an io_uring.
#pragma once

#include <liburing.h>

#include <algorithm>
#include <cstdint>

#include "io/buffers/buffer_ring.hpp"
#include "io/kernel/attempt_file.hpp"
#include "io/reactor/slot.hpp"

namespace troupe::io {

// True when the ring only reports that the operation is ready. `provides`: the system can take
// buffers from the ring of buffers.
inline bool is_polled(const operation& operation, bool provides) noexcept {
  switch (operation.opcode) {
    case action::accept:
    case action::connect:
    case action::open:
    case action::read_at:
    case action::write_at:
    case action::sync:
    case action::close:
      return false;
    case action::read:
      return !operation.socket || (operation.leased && (operation.begun || !provides));
    case action::write:
      return !operation.socket;
    default:
      return true;
  }
}

inline void prepare_of_file(io_uring_sqe& entry, operation& operation) noexcept {
  const int fd = operation.at->fd;
  const auto bytes =
      static_cast<unsigned>(std::min(operation.bytes - operation.done, step_bytes_max));
  const auto offset = static_cast<std::uint64_t>(
      operation.offset == own_position
          ? own_position
          : operation.offset + static_cast<std::int64_t>(operation.done));
  if (operation.opcode == action::open) {
    io_uring_prep_openat(&entry, fd, reinterpret_cast<const char*>(operation.data), operation.extra,
                         static_cast<mode_t>(operation.bytes));
  } else if (operation.opcode == action::read_at) {
    io_uring_prep_read(&entry, fd, operation.data + operation.done, bytes, offset);
  } else if (operation.opcode == action::write_at) {
    io_uring_prep_write(&entry, fd, operation.data + operation.done, bytes, offset);
  } else if (operation.opcode == action::sync) {
    io_uring_prep_fsync(&entry, fd, operation.extra != 0 ? IORING_FSYNC_DATASYNC : 0);
  } else {
    io_uring_prep_close(&entry, fd);
  }
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
