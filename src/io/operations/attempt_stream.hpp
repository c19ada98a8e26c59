// attempt_stream: a stream's transfers by system calls, here and now. Inline: message_calls.hpp
// says why.
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "io/operations/message_calls.hpp"
#include "io/reactor/reactor.hpp"

namespace troupe::io {

// Interrupted calls are made again; a signal a call would be much.
template <class Call>
TROUPE_INLINE std::ptrdiff_t uninterrupted(Call call) noexcept {
  constexpr int interruptions_max = 1000;
  std::ptrdiff_t result = call();
  for (int i = 1; result == -EINTR && i < interruptions_max; ++i) [[unlikely]] result = call();
  return result;
}

inline bool would_block(std::ptrdiff_t result) noexcept { return result == -EAGAIN; }

inline bool finish(operation& one, std::ptrdiff_t result) noexcept {
  one.result = result > INT32_MAX ? INT32_MAX : static_cast<int>(result);
  return true;
}

// Of a socket a part that is short says that there is no more: of what is there, or of room. So the
// next call would be in vain, unless the peer has closed: of that no further edge tells.
template <class Transfer>
TROUPE_INLINE bool stream(slot& at, operation& one, Transfer transfer) noexcept {
  bool& can = one.what == action::read ? at.can_read : at.can_write;
  for (;;) {
    const std::ptrdiff_t result = uninterrupted(transfer);
    if (would_block(result)) {
      can = false;
      return false;
    }
    if (result < 0) return finish(one, result);
    const auto part = static_cast<std::size_t>(result);
    const bool is_short = part < one.bytes - one.done;
    one.done += part;
    if (is_short && part != 0 && one.socket && !at.hung_up) can = false;
    if (!one.whole || part == 0 || one.done == one.bytes) return finish(one, result);
    if (!can) return false;
  }
}

// The buffer is taken when something may be there, and is given back when nothing is.
template <class Transfer>
TROUPE_INLINE bool lease(slot& at, operation& one, Transfer transfer) noexcept {
  buffer_pool& pool = *at.owner->buffers;
  one.data = pool.take();
  if (one.data == nullptr) return finish(one, -ENOMEM);
  one.bytes = buffer_pool::buffer_bytes;
  const bool over = stream(at, one, transfer);
  if (one.done == 0) pool.give(std::exchange(one.data, nullptr));
  return over;
}

// A read of a socket.
TROUPE_INLINE bool read_socket(kernel& calls, slot& at, operation& one) noexcept {
  const auto part = [&] {
    return receive_some(calls, at.fd, one.data + one.done, one.bytes - one.done);
  };
  return one.leased ? lease(at, one, part) : stream(at, one, part);
}

// To a socket, the slot's mutex held: how many bytes the system takes now, or -errno. It knows
// afterwards whether it can write more.
TROUPE_INLINE std::ptrdiff_t send_now(kernel& calls, slot& at, std::string_view bytes) noexcept {
  const std::ptrdiff_t result =
      uninterrupted([&] { return send_some(calls, at.fd, bytes.data(), bytes.size()); });
  const bool is_short = result > 0 && static_cast<std::size_t>(result) < bytes.size();
  if (would_block(result) || (is_short && !at.hung_up)) at.can_write = false;
  return would_block(result) ? 0 : result;
}

}  // namespace troupe::io
