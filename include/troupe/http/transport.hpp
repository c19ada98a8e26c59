// transport: the bytes of a connection, over any kind of stream. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "troupe/io/file.hpp"
#include "troupe/task/task.hpp"

namespace troupe::http {

class websocket;

// The slowest rate at which a peer may send a body or message that it has begun: `rate` bytes per
// second on average, while the receiver waits for them; `grace` is the total time by which the peer
// may be behind, and `early` limits the time that bytes can gain by arriving early. rate 0: no
// minimum.
struct slowest_pace {
  std::size_t rate = 0;
  std::chrono::nanoseconds grace{0};
  std::chrono::nanoseconds early = std::chrono::seconds(5);
};

// The peer's progress in sending or receiving one body or message. Only the time counts during
// which this end waits. Cancelled waits also count: otherwise a receiver that polls could wait
// without a limit.
class paced_arrival {
 public:
  explicit paced_arrival(std::uint64_t bytes = 0) noexcept : bytes_(bytes) {}

  void came(std::uint64_t bytes) noexcept { bytes_ += bytes; }
  void waited(std::chrono::nanoseconds span) noexcept { waited_ += span; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  // How much longer to wait for more bytes; the largest time if there is no slowest pace. Not
  // positive: the peer is too slow.
  std::chrono::nanoseconds patience(const slowest_pace& pace) noexcept {
    constexpr std::chrono::nanoseconds longest = std::chrono::nanoseconds::max();
    if (pace.rate == 0) return longest;
    constexpr std::uint64_t seconds_max = 1'000'000'000;  // 31 years: no sum overflows
    const double part_of_second =
        static_cast<double>(bytes_ % pace.rate) / static_cast<double>(pace.rate);
    const std::chrono::nanoseconds due =
        std::chrono::seconds(std::min<std::uint64_t>(bytes_ / pace.rate, seconds_max)) +
        std::chrono::nanoseconds(static_cast<std::int64_t>(part_of_second * 1e9));
    waited_ = std::max(waited_, due - pace.early);
    const std::chrono::nanoseconds credit = due - waited_;
    return credit > longest - pace.grace ? longest : pace.grace + credit;
  }

 private:
  std::uint64_t bytes_;
  std::chrono::nanoseconds waited_{0};
};

// A connection's stream, as the layers above see it. Thread: the task that owns the connection.
struct transport {
  // Receives at least one byte, or returns 0 at the end. Throws timed_out after `at_most`;
  // cancelled when the server stops.
  virtual task<std::size_t> receive(std::span<char> to, std::chrono::nanoseconds at_most) = 0;
  // Sends all bytes. Throws timed_out if the peer accepts nothing for too long.
  virtual task<> send(std::string_view bytes) = 0;
  // Sends a part of a file. Returns the number of bytes: less than requested if the file has fewer.
  // Throws as send().
  virtual task<std::uint64_t> send_file(const file& from, std::uint64_t offset,
                                        std::uint64_t bytes) = 0;
  // Sends all bytes, with no other bytes in between.
  virtual task<> send_owned(std::string bytes) = 0;

  // This end sends nothing more, and waits a moment for the peer's end if the connection needs this
  // for an orderly close.
  virtual task<> end_with_peer() { co_return; }

  // The layer above now keeps this number of the peer's bytes.
  virtual void retains(std::size_t bytes) noexcept { static_cast<void>(bytes); }
  // The layer above is asked to free its bytes by `free`, on any thread, but only while they are at
  // rest: after lay_down() and before take_up(), which returns whether they were at rest. It must
  // withdraw `free` by a null pointer before it is destroyed.
  using free_function = void (*)(websocket& keeper) noexcept;
  virtual void frees_by(free_function free, websocket* keeper) noexcept {
    static_cast<void>(free), static_cast<void>(keeper);
  }
  virtual void lay_down() noexcept {}
  virtual bool take_up() noexcept { return false; }
  // Whether too much is kept, and the layer above has to end. check_kept() throws then.
  virtual bool is_ended() const noexcept { return false; }
  virtual void check_kept() const {}

  // The slowest pace of an unfinished body or WebSocket message.
  virtual slowest_pace message_pace() const noexcept { return {}; }

 protected:
  ~transport() = default;
};

}  // namespace troupe::http
