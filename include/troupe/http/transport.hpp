// transport: the bytes of a connection, whatever stream it has. The library's own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "troupe/io/file.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

// How slowly a peer may send what it has begun: so many bytes a second on average, while they are
// waited for, and so late altogether before that counts. 0: as slowly as it likes.
struct slowest_pace {
  std::size_t rate = 0;
  std::chrono::nanoseconds grace{0};
};

struct transport {
  // One byte at least, or 0 at the end. Throws timed_out after `at_most`; cancelled when the server
  // stops.
  virtual task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) = 0;
  // All of it. Throws timed_out when the peer takes nothing for too long.
  virtual task<> send(std::string_view bytes) = 0;
  // A part of a file; how much of it, less than asked when the file has less. Throws as send().
  virtual task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                        std::uint64_t bytes) = 0;
  // All of it, without another's bytes in between.
  virtual task<> send_owned(std::string bytes) = 0;

  // Of an unfinished message of a WebSocket.
  virtual slowest_pace message_pace() const noexcept { return {}; }

 protected:
  ~transport() = default;
};

}  // namespace troupe::http
