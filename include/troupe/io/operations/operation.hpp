// operation: one thing asked of the system. The library's own; users meet streams and what those
// return.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace troupe::io {

struct slot;

enum class action : std::uint8_t {
  read,      // from a stream
  write,     // to a stream
  accept,    // the result is a descriptor; the peer comes to `address`
  connect,   // to `address`
  readable,  // nothing but whether one may read: the result is what poll(2) says
  writable,
  receive,    // a datagram; the peer comes to `address`
  send,       // a datagram, to `address` if there is one
  send_file,  // to a stream, from the file `extra` at `offset`
  // nothing but whether the peer has gone, whatever is unread: `extra` are the events of poll(2)
  // that count as that, beside POLLHUP and POLLERR; the result is what poll says. One at a time of
  // each descriptor
  ended,
  // until a descriptor was closed since there had been `offset` such ends; nothing of `at`
  room,
  // Of files. `offset` may be own_position; `begun`: a thread that may block has it.
  // the result is a descriptor; `data` the path, `extra` the flags, `bytes` the permissions
  open,
  read_at,
  write_at,
  sync,    // `extra`: not 0 when what is said of the file need not be written
  close,   // `extra`: not 0 when there is nothing to do
  status,  // into the struct statx at `data`
};

constexpr bool is_of_file(action does) noexcept { return does >= action::open; }
inline constexpr std::int64_t own_position = -1;  // where the file's last read or write ended

// What it does stays where it is, buffer and all, until it has completed: once, by what the system
// said, or with -ECANCELED.
struct operation {
  operation(action does, bool is_awaited) noexcept : what(does), awaited(is_awaited) {}
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;

  // On the thread that found it done; the operation may be gone afterwards. Not called when it was
  // done at once.
  void completed() noexcept;

  std::byte* data = nullptr;
  std::size_t bytes = 0, done = 0;  // to do, and done
  union {
    sockaddr* address = nullptr;  // of sockets
    std::int64_t offset;          // of files, and of room
  };
  union {
    socklen_t address_bytes = 0;  // the room there, then what is filled
    int extra;
  };
  int result = 0;  // >= 0 (for transfers: that of the last call), or -errno
  slot* at = nullptr;
  operation* next = nullptr;  // the slot's
  const action what;
  const bool awaited : 1;  // an operation_wait; else an arrival
  // These are set before it starts.
  bool whole : 1 = false;  // a transfer that goes on until all is done
  bool weak : 1 = false;   // it does not keep the program alive
  bool socket : 1 = true;  // what is transferred goes over a socket
  // a read whose buffer comes from the reactor's pool when something has come
  bool leased : 1 = false;
  // an accept: connections may be accepted before they are asked for
  bool ahead : 1 = false;
  // the descriptor is shared, and blocks: only once the system says that it would not
  bool asks_first : 1 = false;
  // may be told that it is due, and is then carried out by who awaits it (reactor::carry_out)
  bool in_turn : 1 = false;
  bool pending = false;  // the backend has it
  bool due = false;      // it was told that it is
  // Only under the mutex of its slot.
  bool begun : 1 = false;  // of connect; a leased read: no ring's buffer was to be had
  bool aside : 1 = false;  // it goes to a thread that may block
};

}  // namespace troupe::io
