// attempt_stream: tries transfers of a stream at once, by system calls. The functions are inline
// for the reason in message_calls.hpp.
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "io/kernel/attempt_result.hpp"
#include "io/kernel/kernel.hpp"
#include "io/kernel/message_calls.hpp"
#include "io/reactor/reactor.hpp"

namespace troupe::io {

// For the socket of a stream, like the kernel's receive and send.
TROUPE_INLINE std::ptrdiff_t receive_some(kernel& calls, int fd, void* data,
                                          std::size_t bytes) noexcept {
  return calls.is_real ? receive_from(fd, data, bytes, 0, nullptr, nullptr)
                       : calls.receive(fd, data, bytes, nullptr, nullptr);
}
TROUPE_INLINE std::ptrdiff_t send_some(kernel& calls, int fd, const void* data,
                                       std::size_t bytes) noexcept {
  return calls.is_real ? send_to(fd, data, bytes, MSG_NOSIGNAL, nullptr, 0)
                       : calls.send(fd, data, bytes, nullptr, 0);
}

// For a socket, a short part means that the system has no more bytes, or no more space. The next
// call would fail and is skipped, unless the peer has closed: after that no further edge comes.
template <class Transfer>
TROUPE_INLINE bool stream(slot& at, operation& operation, Transfer transfer) noexcept {
  bool& can = operation.opcode == action::read ? at.can_read : at.can_write;
  for (;;) {
    const std::ptrdiff_t result = uninterrupted(transfer);
    if (would_block(result)) {
      can = false;
      return false;
    }
    if (result < 0) return finish(operation, result);
    const auto part = static_cast<std::size_t>(result);
    const bool is_short = part < operation.bytes - operation.done;
    operation.done += part;
    if (is_short && part != 0 && operation.socket && !at.hung_up) can = false;
    if (!operation.whole || part == 0 || operation.done == operation.bytes)
      return finish(operation, result);
    if (!can) return false;
  }
}

// Takes a buffer when there may be bytes, and gives it back when there are none.
template <class Transfer>
TROUPE_INLINE bool lease(slot& at, operation& operation, Transfer transfer) noexcept {
  buffer_pool& pool = *at.owner->buffers;
  operation.data = pool.take();
  if (operation.data == nullptr) return finish(operation, -ENOMEM);
  operation.bytes = buffer_pool::buffer_bytes;
  const bool over = stream(at, operation, transfer);
  if (operation.done == 0) pool.give(std::exchange(operation.data, nullptr));
  return over;
}

// Reads from a socket.
TROUPE_INLINE bool read_socket(kernel& calls, slot& at, operation& operation) noexcept {
  const auto part = [&] {
    return receive_some(calls, at.fd, operation.data + operation.done,
                        operation.bytes - operation.done);
  };
  return operation.leased ? lease(at, operation, part) : stream(at, operation, part);
}

// The caller holds the slot's mutex. Returns how many bytes the socket takes now, or -errno.
// Afterwards `can_write` shows whether it can take more.
TROUPE_INLINE std::ptrdiff_t send_now(kernel& calls, slot& at, std::string_view bytes) noexcept {
  const std::ptrdiff_t result =
      uninterrupted([&] { return send_some(calls, at.fd, bytes.data(), bytes.size()); });
  const bool is_short = result > 0 && static_cast<std::size_t>(result) < bytes.size();
  if (would_block(result) || (is_short && !at.hung_up)) at.can_write = false;
  return would_block(result) ? 0 : result;
}

}  // namespace troupe::io
