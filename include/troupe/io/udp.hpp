// UDP: datagrams to and from anybody.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "troupe/io/endpoint.hpp"
#include "troupe/io/operations/suspension.hpp"

namespace troupe {

// What came: its first `bytes` bytes are in the buffer.
struct datagram {
  std::size_t bytes = 0;
  endpoint from;
  bool truncated = false;  // the rest did not fit, and is lost
};

namespace io {

class receive_job {
 public:
  using result = datagram;
  static constexpr action what = action::receive;
  receive_job(descriptor& at, std::span<std::byte> to, bool weak) noexcept
      : at_(&at), to_(to), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  datagram finish(operation_suspension& wait) const;

 private:
  descriptor* at_;
  std::span<std::byte> to_;
  endpoint from_;
  bool weak_;
};

class send_job {
 public:
  using result = void;
  static constexpr action what = action::send;
  send_job(descriptor& from, std::string_view bytes) noexcept : from_(&from), bytes_(bytes) {}
  send_job(descriptor& from, std::string_view bytes, const endpoint& to) noexcept
      : from_(&from), bytes_(bytes), to_(to), has_address_(true) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  void finish(operation_suspension& wait) const;

 private:
  descriptor* from_;
  std::string_view bytes_;
  endpoint to_;
  bool has_address_ = false;
};

}  // namespace io

struct udp_options {
  // Several sockets share the port, and the system spreads the senders over them. Default false.
  bool reuse_port = false;
  // May send to a network's broadcast address. Default false.
  bool broadcast = false;
  // True: the program may be out of work while this waits for datagrams. Default false.
  bool weak = false;
};

// A socket of UDP. Move-only; closed when it goes. As with a stream, operations are awaited at
// once, with .timeout(span) and .stop(token) if you like, and throw io_error, timed_out or
// cancelled. A datagram comes whole, twice, or not at all, and in any order: the simulated network
// changes the order, and loses what finds no room (200 KiB a socket). At most 65,507 bytes (over
// IPv4) are sent at a time; past 1,472 the network may have to cut them up.
//
// Example (declarations):
//     troupe::task<> answer(troupe::udp_socket socket) {
//       std::array<char, 1500> buffer;
//       for (;;) {
//         const troupe::datagram came = co_await socket.receive(buffer);
//         co_await socket.send(std::string_view(buffer.data(), came.bytes), came.from);
//       }
//     }
class udp_socket {
 public:
  udp_socket() = default;  // not open

  // Receives what is sent there. Port 0: the system chooses one; see local(). Anywhere; under the
  // simulated policy in a handler or a task. Throws io_error: address_in_use, permission_denied, …
  static udp_socket bind(const endpoint& at, const udp_options& options = {});
  // To one peer, and from it alone. Does not wait, and does not know whether somebody is there:
  // when the peer's system says that nobody is, a later operation throws io_error,
  // connection_refused.
  static udp_socket connect(const endpoint& to, const udp_options& options = {});

  // The next datagram.
  io::awaitable<io::receive_job> receive(std::span<std::byte> to) noexcept {
    return io::awaitable<io::receive_job>(std::in_place, descriptor_, to, weak_);
  }
  io::awaitable<io::receive_job> receive(std::span<char> to) noexcept {
    return receive(std::as_writable_bytes(to));
  }

  // One datagram, to the peer that it was connected to, or to this one. The bytes stay the caller's
  // until it is sent.
  io::awaitable<io::send_job> send(std::string_view bytes) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes);
  }
  io::awaitable<io::send_job> send(std::string_view bytes, const endpoint& to) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes, to);
  }

  // Throws io_error.
  endpoint local() const;
  bool is_open() const noexcept { return descriptor_.is_open(); }
  // What is under way ends as cancelled.
  void close() noexcept { descriptor_.close(); }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  static udp_socket make(const endpoint& like, const udp_options& options);
  io::descriptor descriptor_;
  bool weak_ = false;
};

}  // namespace troupe
