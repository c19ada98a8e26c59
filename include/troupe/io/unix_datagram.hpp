// unix_datagram: datagrams in the Unix domain, between processes of one machine, addressed by a
// path. No datagram is lost, and they arrive in order.
#pragma once

#include "troupe/base/language.hpp"

#include <sys/un.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/io/operations/suspension.hpp"
#include "troupe/io/udp.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe {

// A received datagram; the first `bytes` bytes of the buffer hold its content.
struct unix_message {
  std::size_t bytes = 0;
  std::string from;        // the sender's path; empty if it has none
  bool truncated = false;  // the datagram was larger than the buffer; the rest is lost
};

namespace io {

class unix_receive_job {
 public:
  using result = unix_message;
  static constexpr action opcode = action::receive;
  unix_receive_job(descriptor& at, std::span<std::byte> buffer, bool weak) noexcept
      : at_(&at), buffer_(buffer), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  unix_message finish(operation_suspension& wait) const;

 private:
  descriptor* at_;
  std::span<std::byte> buffer_;
  sockaddr_un from_{};
  bool weak_;
};

}  // namespace io

// Options of a unix_datagram.
struct unix_datagram_options {
  // True: the program may be out of work while this waits for datagrams. Default false.
  bool weak = false;
};

// A socket for such datagrams. Move-only; the destructor closes it and removes the file that it
// created. Await operations as with a udp_socket. Limits: a datagram has at most about 200 KB
// (net.core.wmem_default), or send throws io_error, message_size; about ten datagrams wait to be
// received (net.unix.max_dgram_qlen).
//
// Example (declarations):
//     troupe::task<> answer(troupe::unix_datagram socket) {
//       std::array<char, 1500> buffer;
//       for (;;) {
//         const troupe::unix_message came = co_await socket.receive(buffer);
//         const std::string_view text(buffer.data(), came.bytes);
//         if (!came.from.empty() && !socket.try_send(text, came.from))
//           std::cerr << came.from << " is full\n";
//       }
//     }
class unix_datagram {
 public:
  unix_datagram() = default;  // not open

  // Opens a socket that receives at that path. A path that begins with '\0' is a name without a
  // file. A file that a dead process left there is replaced. Errors: io_error: address_in_use, …;
  // option_error for a path that is empty or longer than 107 bytes. Thread: any; under the
  // simulated policy in a handler or a task, where all paths are simulated.
  static unix_datagram bind(const std::string& path, const unix_datagram_options& options = {});
  // Opens a socket for one peer only. With `own`, it has a path to which the peer may answer.
  // Throws the same, and io_error: no_such_file_or_directory, connection_refused.
  static unix_datagram connect(const std::string& to, const std::string& own = {},
                               const unix_datagram_options& options = {});

  // Waits for the next datagram.
  io::awaitable<io::unix_receive_job> receive(std::span<std::byte> to) noexcept {
    return io::awaitable<io::unix_receive_job>(std::in_place, descriptor_, to, weak_);
  }
  io::awaitable<io::unix_receive_job> receive(std::span<char> to) noexcept {
    return receive(std::as_writable_bytes(to));
  }

  // Sends one datagram to the connected peer, and waits until the peer has space for it. The caller
  // keeps the bytes until the operation has ended. Throws io_error, connection_refused, if the peer
  // has closed its socket.
  io::awaitable<io::send_job> send(std::string_view bytes) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes);
  }
  // Sends one datagram to any path. Returns false if the receiver has no space now. It does not
  // wait, since the system does not report when there is space again; connect() to a peer to which
  // you send much. Throws io_error: no_such_file_or_directory, connection_refused, message_size.
  [[nodiscard]] bool try_send(std::string_view bytes, const std::string& to);

  bool is_open() const noexcept { return descriptor_.is_open(); }
  // Operations that are under way end as cancelled.
  void close() noexcept {
    file_.remove();
    descriptor_.close();
  }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  static unix_datagram make(const std::string& own, const unix_datagram_options& options);
  io::descriptor descriptor_;
  io::socket_file file_;
  bool weak_ = false;
};

}  // namespace troupe
