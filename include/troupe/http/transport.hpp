// transport: the bytes of a connection, over any kind of stream. For the library's own use.
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

// The slowest rate at which a peer may send what it has begun: `rate` bytes per second on average,
// while the receiver waits for them; `grace` is the total time by which the peer may be behind.
// rate 0: no minimum.
struct slowest_pace {
  std::size_t rate = 0;
  std::chrono::nanoseconds grace{0};
};

// A connection's stream, as the layers above see it. Thread: the task that owns the connection.
struct transport {
  // Receives at least one byte, or returns 0 at the end. Throws timed_out after `at_most`;
  // cancelled when the server stops.
  virtual task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) = 0;
  // Sends all bytes. Throws timed_out if the peer accepts nothing for too long.
  virtual task<> send(std::string_view bytes) = 0;
  // Sends a part of a file. Returns how much: less than requested if the file has less. Throws as
  // send().
  virtual task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                        std::uint64_t bytes) = 0;
  // Sends all bytes, with no other bytes in between.
  virtual task<> send_owned(std::string bytes) = 0;

  // The rate for an unfinished WebSocket message.
  virtual slowest_pace message_pace() const noexcept { return {}; }

 protected:
  ~transport() = default;
};

}  // namespace troupe::http
