// operation: one request to the system. For the library's own use; users meet streams and the
// return values of their methods.
#pragma once

#include "troupe/base/language.hpp"

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace troupe::io {

struct slot;

// The action of an operation. The comments name the members of `operation` that it uses.
enum class action : std::uint8_t {
  read,      // from a stream
  write,     // to a stream
  accept,    // the result is a descriptor; `address` gets the peer's address
  connect,   // to `address`
  readable,  // only whether a read would not block; the result is poll(2)'s
  writable,
  receive,    // a datagram; `address` gets the sender's address
  send,       // a datagram, to `address` if there is one
  send_file,  // to a stream, from the file `extra` at `offset`
  // only whether the peer has disconnected, even if unread data is left. `extra` holds the events
  // of poll(2) that mean this, besides POLLHUP and POLLERR; the result is poll's. One at a time for
  // each descriptor
  ended,
  // The rest are for files. `offset` may be own_position; `begun`: a thread that may block executes
  // it.
  // the result is a descriptor; `data` is the path, `extra` the flags, `bytes` the permissions
  open,
  read_at,
  write_at,
  sync,    // `extra`: not 0 if the file's properties need not be written
  close,   // `extra`: not 0 if there is nothing to do
  status,  // into the struct statx at `data`
};

inline constexpr std::size_t actions = static_cast<std::size_t>(action::status) + 1;
constexpr bool is_of_file(action does) noexcept { return does >= action::open; }
// Whether the result of an operation that is given up is kept for the descriptor's next one
// (src/io/buffers/kept_input.hpp).
constexpr bool can_be_kept(action does) noexcept {
  return does == action::read || does == action::receive || does == action::accept;
}
// the position at which the file's last read or write ended
inline constexpr std::int64_t own_position = -1;

// The operation and its buffer must not move until it has completed. It completes once, with the
// system's result or with -ECANCELED.
struct operation {
  operation(action does, bool is_awaited) noexcept : opcode(does), awaited(is_awaited) {
    if (does == action::read) behind = 0;
  }
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  // Called on the thread that found the operation done; the operation may be destroyed afterwards.
  // Not called if it was done at once.
  void completed() noexcept;

  std::byte* data = nullptr;
  std::size_t bytes = 0, done = 0;  // bytes to transfer, and bytes transferred
  union {
    sockaddr* address = nullptr;  // for sockets
    std::int64_t offset;          // for files
    // for reads of streams: the number of bytes that were put back and belong to an earlier reader
    // (read_ahead.hpp); this operation reads behind them
    std::size_t behind;
  };
  union {
    socklen_t address_bytes = 0;  // the capacity, then the bytes that were filled
    int extra;
  };
  int result = 0;  // >= 0 (for transfers: the result of the last call), or -errno
  slot* at = nullptr;
  operation* next = nullptr;  // belongs to the slot
  std::uint64_t began = 0;    // while the runtime is observed (src/io/reactor/operation_counts.hpp)
  const action opcode;
  const bool awaited : 1;  // an operation_suspension; otherwise an arrival
  // These members are set before the operation starts.
  bool whole : 1 = false;  // a transfer that continues until all bytes are done
  bool weak : 1 = false;   // does not keep the program alive
  bool socket : 1 = true;  // the transfer goes over a socket
  // a read that takes a buffer from the reactor's pool when data has arrived
  bool leased : 1 = false;
  // the descriptor is shared and may block: the call is made only after the system reports that it
  // would not
  bool asks_first : 1 = false;
  // may be marked as due, and is then executed by the coroutine that awaits it (reactor::carry_out)
  bool in_turn : 1 = false;
  bool pending = false;  // the backend has it
  bool due = false;      // it was marked as due
  // These members are only used under the mutex of the slot.
  bool begun : 1 = false;  // a connect has begun; a leased read: the ring had no buffer left
  bool aside : 1 = false;  // a thread that may block executes it
};

}  // namespace troupe::io
