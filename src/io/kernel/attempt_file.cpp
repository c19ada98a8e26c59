#include "io/kernel/attempt_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "io/kernel/attempt_result.hpp"

namespace troupe::io {

bool attempt_file(kernel& calls, int fd, operation& operation, bool at_once) noexcept {
  for (;;) {
    const std::size_t bytes = std::min(operation.bytes - operation.done, step_bytes_max);
    const std::int64_t offset = operation.offset == own_position
                                    ? own_position
                                    : operation.offset + static_cast<std::int64_t>(operation.done);
    bool transfers = false;
    const std::ptrdiff_t result = uninterrupted([&]() -> std::ptrdiff_t {
      switch (operation.opcode) {
        case action::status:
          return calls.status(fd, reinterpret_cast<struct statx*>(operation.data));
        case action::open:
          // Creating or truncating writes a directory entry to the disk.
          if (at_once && (operation.extra & (O_CREAT | O_TRUNC)) != 0) return -EAGAIN;
          return calls.open(reinterpret_cast<const char*>(operation.data), operation.extra,
                            static_cast<mode_t>(operation.bytes), at_once);
        case action::read_at:
          transfers = true;
          return calls.read_at(fd, operation.data + operation.done, bytes, offset, at_once);
        case action::close:
          if (operation.extra != 0) return 0;
          break;
        default:
          break;
      }
      if (at_once) return -EAGAIN;
      switch (operation.opcode) {
        case action::write_at:
          transfers = true;
          return calls.write_at(fd, operation.data + operation.done, bytes, offset);
        case action::sync:
          return calls.sync(fd, operation.extra != 0);
        // Even when it is interrupted, the descriptor is closed, and its number may already be used
        // again.
        case action::close: {
          const int closed = calls.close(fd);
          return closed == -EINTR ? 0 : closed;
        }
        default:
          return -EINVAL;
      }
    });
    if (at_once && would_block(result)) return false;
    if (!transfers || result <= 0) return finish(operation, result);
    operation.done += static_cast<std::size_t>(result);
    if (!operation.whole || operation.done == operation.bytes) return finish(operation, result);
  }
}

}  // namespace troupe::io
