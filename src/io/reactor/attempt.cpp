#include "io/reactor/attempt.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "io/kernel/attempt_file.hpp"
#include "io/kernel/attempt_result.hpp"
#include "io/reactor/attempt_stream.hpp"

namespace troupe::io {
namespace {

std::ptrdiff_t transfer(kernel& calls, const slot& at, operation& operation) noexcept {
  std::byte* const data = operation.data + operation.done;
  std::size_t bytes = operation.bytes - operation.done;
  if (operation.asks_first) {
    // a pipe that can be written has space for this much
    bytes = std::min<std::size_t>(bytes, PIPE_BUF);
    const int found = calls.poll(at.fd, operation.opcode == action::read ? POLLIN : POLLOUT);
    if (found <= 0) return found == 0 ? -EAGAIN : found;
  }
  if (operation.opcode == action::read) {
    return operation.socket ? calls.receive(at.fd, data, bytes, nullptr, nullptr)
                            : calls.read(at.fd, data, bytes);
  }
  return operation.socket ? calls.send(at.fd, data, bytes, nullptr, 0)
                          : calls.write(at.fd, data, bytes);
}

bool datagram(kernel& calls, slot& at, operation& operation) noexcept {
  const bool receives = operation.opcode == action::receive;
  const std::ptrdiff_t result = uninterrupted([&] {
    return receives
               ? calls.receive(at.fd, operation.data, operation.bytes, operation.address,
                               operation.address == nullptr ? nullptr : &operation.address_bytes)
               : calls.send(at.fd, operation.data, operation.bytes, operation.address,
                            operation.address_bytes);
  });
  if (would_block(result)) {
    (receives ? at.can_read : at.can_write) = false;
    return false;
  }
  if (result >= 0) operation.done = std::min(static_cast<std::size_t>(result), operation.bytes);
  return finish(operation, result);
}

// A short part may mean that the socket is full or that the file has ended: the next call shows
// which.
bool send_file(kernel& calls, slot& at, operation& operation) noexcept {
  while (operation.done != operation.bytes) {
    std::size_t bytes = std::min(operation.bytes - operation.done, step_bytes_max);
    if (operation.asks_first) {
      bytes = std::min<std::size_t>(bytes, PIPE_BUF);
      const int found = calls.poll(at.fd, POLLOUT);
      if (found == 0) {
        at.can_write = false;
        return false;
      }
      if (found < 0) return finish(operation, found);
    }
    const std::ptrdiff_t part = uninterrupted([&] {
      return calls.send_file(at.fd, operation.extra,
                             operation.offset + static_cast<std::int64_t>(operation.done), bytes);
    });
    if (would_block(part)) {
      at.can_write = false;
      return false;
    }
    if (part <= 0) return finish(operation, part);
    operation.done += static_cast<std::size_t>(part);
    if (!operation.whole) break;
  }
  return finish(operation, 0);
}

bool accept(kernel& calls, slot& at, operation& operation) noexcept {
  const socklen_t room = operation.address_bytes;
  std::ptrdiff_t result = 0;
  do {
    operation.address_bytes = room;
    result = uninterrupted(
        [&] { return calls.accept(at.fd, operation.address, &operation.address_bytes); });
  } while (is_of_the_peer(result));
  if (!would_block(result)) return finish(operation, result);
  at.can_read = false;
  return false;
}

// When a signal interrupts connect(), the connection is still made. Once begun, the socket becomes
// writable when it is connected or has failed.
bool connect(kernel& calls, slot& at, operation& operation) noexcept {
  if (operation.begun) {
    if (calls.poll(at.fd, POLLOUT) == 0) {
      at.can_write = false;
      return false;
    }
    return finish(operation, -calls.pending_error(at.fd));
  }
  const int result = calls.connect(at.fd, operation.address, operation.address_bytes);
  if (result != -EINPROGRESS && result != -EINTR) return finish(operation, result);
  operation.begun = true;
  at.can_write = false;
  return false;
}

bool readiness(kernel& calls, slot& at, operation& operation) noexcept {
  const bool receives = operation.opcode == action::readable;
  const int found = calls.poll(at.fd, receives ? POLLIN : POLLOUT);
  if (found != 0) return finish(operation, found > 0 && (found & POLLNVAL) != 0 ? -EBADF : found);
  (receives ? at.can_read : at.can_write) = false;
  return false;
}

// Belongs to no direction: leaves `can_read` and `can_write` unchanged.
bool has_ended(kernel& calls, const slot& at, operation& operation) noexcept {
  const int found = calls.poll(at.fd, static_cast<short>(operation.extra));
  return found != 0 && finish(operation, found > 0 && (found & POLLNVAL) != 0 ? -EBADF : found);
}

}  // namespace

bool is_of_the_peer(std::ptrdiff_t result) noexcept {
  switch (-result) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

bool attempt(kernel& calls, slot& at, operation& operation) noexcept {
  switch (operation.opcode) {
    case action::read:
    case action::write: {
      const auto part = [&] { return transfer(calls, at, operation); };
      return operation.leased ? lease(at, operation, part) : stream(at, operation, part);
    }
    case action::accept:
      return accept(calls, at, operation);
    case action::connect:
      return connect(calls, at, operation);
    case action::readable:
    case action::writable:
      return readiness(calls, at, operation);
    case action::ended:
      return has_ended(calls, at, operation);
    case action::receive:
    case action::send:
      return datagram(calls, at, operation);
    case action::send_file:
      return send_file(calls, at, operation);
    default:
      break;
  }
  return finish(operation, -EINVAL);
}

}  // namespace troupe::io
