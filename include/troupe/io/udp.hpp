// udp: datagrams to and from any address.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "troupe/io/endpoint.hpp"
#include "troupe/io/operations/suspension.hpp"

namespace troupe {

// A received datagram; the first `bytes` bytes of the buffer hold its content.
struct datagram {
  std::size_t bytes = 0;
  endpoint from;
  bool truncated = false;  // the datagram was larger than the buffer; the rest is lost
};

namespace io {

class receive_job {
 public:
  using result = datagram;
  static constexpr action opcode = action::receive;
  receive_job(descriptor& at, std::span<std::byte> buffer, bool weak) noexcept
      : at_(&at), buffer_(buffer), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  datagram finish(operation_suspension& wait) const;

 private:
  descriptor* at_;
  std::span<std::byte> buffer_;
  endpoint from_;
  bool weak_;
};

class send_job {
 public:
  using result = void;
  static constexpr action opcode = action::send;
  send_job(descriptor& from, std::string_view bytes) noexcept : from_(&from), bytes_(bytes) {}
  send_job(descriptor& from, std::string_view bytes, const endpoint& endpoint) noexcept
      : from_(&from), bytes_(bytes), endpoint_(endpoint), has_address_(true) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  void finish(operation_suspension& wait) const;

 private:
  descriptor* from_;
  std::string_view bytes_;
  endpoint endpoint_;
  bool has_address_ = false;
};

}  // namespace io

// Options of a udp_socket.
struct udp_options {
  // Several sockets share the port, and the system distributes the senders among them. Default
  // false.
  bool reuse_port = false;
  // Allows datagrams to a network's broadcast address. Default false.
  bool broadcast = false;
  // True: the program may be out of work while this waits for datagrams. Default false.
  bool weak = false;
};

// A UDP socket. Move-only; the destructor closes it. As with a stream, await operations at once,
// optionally with .timeout(span) and .stop(token); they throw io_error, timed_out or cancelled. A
// datagram arrives once, twice or not at all, but never in part, and datagrams arrive in any order.
// The simulated network changes the order, and drops datagrams for which a socket has no space (200
// KiB for each socket). Limits: a datagram has at most 65,507 bytes (over IPv4); one above 1,472
// bytes may be split by the network.
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

  // Opens a socket that receives at this address. Port 0: the system chooses a port; see local().
  // Thread: any; under the simulated policy in a handler or a task. Throws io_error:
  // address_in_use, permission_denied, …
  static udp_socket bind(const endpoint& at, const udp_options& options = {});
  // Opens a socket for one peer only. Does not wait, and does not find out whether the peer exists:
  // if the peer's system reports that no socket is there, a later operation throws io_error,
  // connection_refused.
  static udp_socket connect(const endpoint& peer, const udp_options& options = {});

  // Waits for the next datagram.
  io::awaitable<io::receive_job> receive(std::span<std::byte> to) noexcept {
    return io::awaitable<io::receive_job>(std::in_place, descriptor_, to, weak_);
  }
  io::awaitable<io::receive_job> receive(std::span<char> to) noexcept {
    return receive(std::as_writable_bytes(to));
  }

  // Sends one datagram to the connected peer, or to `to`. The caller keeps the bytes until the
  // operation has ended.
  io::awaitable<io::send_job> send(std::string_view bytes) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes);
  }
  io::awaitable<io::send_job> send(std::string_view bytes, const endpoint& to) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes, to);
  }

  // The local address. Throws io_error.
  endpoint local() const;
  bool is_open() const noexcept { return descriptor_.is_open(); }
  // Operations that are under way end as cancelled.
  void close() noexcept { descriptor_.close(); }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  static udp_socket make(const endpoint& like, const udp_options& options);
  io::descriptor descriptor_;
  bool weak_ = false;
};

}  // namespace troupe
