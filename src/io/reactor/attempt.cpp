#include "io/reactor/attempt.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "io/kernel/attempt_file.hpp"
#include "io/kernel/attempt_result.hpp"
#include "io/reactor/attempt_stream.hpp"

namespace troupe::io {
namespace {

std::ptrdiff_t transfer(kernel& calls, const slot& at, operation& one) noexcept {
  std::byte* const data = one.data + one.done;
  std::size_t bytes = one.bytes - one.done;
  if (one.asks_first) {
    // a pipe that can be written has space for this much
    bytes = std::min<std::size_t>(bytes, PIPE_BUF);
    const int found = calls.poll(at.fd, one.what == action::read ? POLLIN : POLLOUT);
    if (found <= 0) return found == 0 ? -EAGAIN : found;
  }
  if (one.what == action::read) {
    return one.socket ? calls.receive(at.fd, data, bytes, nullptr, nullptr)
                      : calls.read(at.fd, data, bytes);
  }
  return one.socket ? calls.send(at.fd, data, bytes, nullptr, 0) : calls.write(at.fd, data, bytes);
}

bool datagram(kernel& calls, slot& at, operation& one) noexcept {
  const bool in = one.what == action::receive;
  const std::ptrdiff_t result = uninterrupted([&] {
    return in ? calls.receive(at.fd, one.data, one.bytes, one.address,
                              one.address == nullptr ? nullptr : &one.address_bytes)
              : calls.send(at.fd, one.data, one.bytes, one.address, one.address_bytes);
  });
  if (would_block(result)) {
    (in ? at.can_read : at.can_write) = false;
    return false;
  }
  if (result >= 0) one.done = std::min(static_cast<std::size_t>(result), one.bytes);
  return finish(one, result);
}

// A short part may mean that the socket is full or that the file has ended: the next call shows
// which.
bool send_file(kernel& calls, slot& at, operation& one) noexcept {
  while (one.done != one.bytes) {
    std::size_t bytes = std::min(one.bytes - one.done, step_bytes_max);
    if (one.asks_first) {
      bytes = std::min<std::size_t>(bytes, PIPE_BUF);
      const int found = calls.poll(at.fd, POLLOUT);
      if (found == 0) {
        at.can_write = false;
        return false;
      }
      if (found < 0) return finish(one, found);
    }
    const std::ptrdiff_t part = uninterrupted([&] {
      return calls.send_file(at.fd, one.extra, one.offset + static_cast<std::int64_t>(one.done),
                             bytes);
    });
    if (would_block(part)) {
      at.can_write = false;
      return false;
    }
    if (part <= 0) return finish(one, part);
    one.done += static_cast<std::size_t>(part);
    if (!one.whole) break;
  }
  return finish(one, 0);
}

bool accept(kernel& calls, slot& at, operation& one) noexcept {
  const socklen_t room = one.address_bytes;
  std::ptrdiff_t result = 0;
  do {
    one.address_bytes = room;
    result = uninterrupted([&] { return calls.accept(at.fd, one.address, &one.address_bytes); });
  } while (is_of_the_peer(result));
  if (!would_block(result)) return finish(one, result);
  at.can_read = false;
  return false;
}

// When a signal interrupts connect(), the connection is still made. Once begun, the socket becomes
// writable when it is connected or has failed.
bool connect(kernel& calls, slot& at, operation& one) noexcept {
  if (one.begun) {
    if (calls.poll(at.fd, POLLOUT) == 0) {
      at.can_write = false;
      return false;
    }
    return finish(one, -calls.pending_error(at.fd));
  }
  const int result = calls.connect(at.fd, one.address, one.address_bytes);
  if (result != -EINPROGRESS && result != -EINTR) return finish(one, result);
  one.begun = true;
  at.can_write = false;
  return false;
}

bool readiness(kernel& calls, slot& at, operation& one) noexcept {
  const bool in = one.what == action::readable;
  const int found = calls.poll(at.fd, in ? POLLIN : POLLOUT);
  if (found != 0) return finish(one, found > 0 && (found & POLLNVAL) != 0 ? -EBADF : found);
  (in ? at.can_read : at.can_write) = false;
  return false;
}

// Belongs to no direction: leaves `can_read` and `can_write` unchanged.
bool has_ended(kernel& calls, const slot& at, operation& one) noexcept {
  const int found = calls.poll(at.fd, static_cast<short>(one.extra));
  return found != 0 && finish(one, found > 0 && (found & POLLNVAL) != 0 ? -EBADF : found);
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

bool attempt(kernel& calls, slot& at, operation& one) noexcept {
  switch (one.what) {
    case action::read:
    case action::write: {
      const auto part = [&] { return transfer(calls, at, one); };
      return one.leased ? lease(at, one, part) : stream(at, one, part);
    }
    case action::accept:
      return accept(calls, at, one);
    case action::connect:
      return connect(calls, at, one);
    case action::readable:
    case action::writable:
      return readiness(calls, at, one);
    case action::ended:
      return has_ended(calls, at, one);
    case action::receive:
    case action::send:
      return datagram(calls, at, one);
    case action::send_file:
      return send_file(calls, at, one);
    default:
      break;
  }
  return finish(one, -EINVAL);
}

}  // namespace troupe::io
