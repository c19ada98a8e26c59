// kept_input: the bytes that the system gave to an operation whose wait was given up. The next
// operation of the same descriptor gets them (docs/protocols/given_up_waits.md).
// Thread: the one that reads the descriptor, of which there is one at a time; the slot's mutex
// guards the pointer to it against close().
#pragma once

#include <sys/socket.h>

#include <deque>
#include <string>
#include <string_view>

#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

class buffer_pool;

class kept_input {
 public:
  // Takes the bytes that the operation was given, in front of the bytes that are kept already.
  // Throws std::bad_alloc; then nothing has changed.
  void put_back(const operation& from);
  // Puts bytes of a stream behind the first `behind` ones. Throws std::bad_alloc.
  void insert(std::size_t behind, std::string_view bytes);
  void drop_first(std::size_t bytes) noexcept { bytes_.erase(0, bytes); }
  // Gives it to an operation. True: the operation is done by that.
  bool give(operation& operation, buffer_pool& leases) noexcept;
  bool empty() const noexcept {
    return bytes_.empty() && datagrams_.empty() && connections_.empty();
  }
  // A descriptor that was accepted, for the caller to close; negative if there is none.
  int take_connection() noexcept;

 private:
  struct datagram {
    std::string bytes;
    int result;  // how long it was, of which the buffer may have taken a part
    sockaddr_storage address;
    socklen_t address_bytes;
  };
  bool give_bytes(operation& operation, buffer_pool& leases) noexcept;
  void give_datagram(operation& operation) noexcept;

  std::string bytes_;
  std::deque<datagram> datagrams_;
  std::deque<int> connections_;
};

}  // namespace troupe::io
