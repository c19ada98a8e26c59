// Datagrams of the Unix domain: between processes of one machine, by a path. None is lost, and they
// come in order.
#pragma once

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

// What came: its first `bytes` bytes are in the buffer.
struct unix_message {
  std::size_t bytes = 0;
  std::string from;        // the sender's path; empty when it has none
  bool truncated = false;  // the rest did not fit, and is lost
};

namespace io {

class unix_receive_job {
 public:
  using result = unix_message;
  static constexpr action what = action::receive;
  unix_receive_job(descriptor& at, std::span<std::byte> to, bool weak) noexcept
      : at_(&at), to_(to), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  unix_message finish(operation_suspension& wait) const;

 private:
  descriptor* at_;
  std::span<std::byte> to_;
  sockaddr_un from_{};
  bool weak_;
};

}  // namespace io

struct unix_datagram_options {
  // True: the program may be out of work while this waits for datagrams. Default false.
  bool weak = false;
};

// Move-only; closed when it goes, and the file that it made is removed. Operations are awaited as
// those of a udp_socket. A datagram has at most some 200 KB (net.core.wmem_default), or io_error,
// message_size; some ten wait to be received (net.unix.max_dgram_qlen).
//
// Example (declarations):
//     troupe::task<> answer(troupe::unix_datagram socket) {
//       std::array<char, 1500> buffer;
//       for (;;) {
//         const troupe::unix_message came = co_await socket.receive(buffer);
//         const std::string_view text(buffer.data(), came.bytes);
//         if (!came.from.empty() && !socket.try_send(text, came.from)) std::cerr << came.from << "
//         is full\n";
//       }
//     }
class unix_datagram {
 public:
  unix_datagram() = default;  // not open

  // Receives what is sent to that path; one that begins with '\0' is no file's, but a name. A file
  // that was left there by one that has died is replaced. Throws io_error: address_in_use, …;
  // option_error for a path that is empty or longer than 107 bytes. Under the simulated policy in a
  // handler or a task; paths are the simulation's own then.
  static unix_datagram bind(const std::string& path, const unix_datagram_options& options = {});
  // To one peer, and from it alone; with a path of its own, that the peer may answer to, or
  // without. Throws io_error as well: no_such_file_or_directory, connection_refused.
  static unix_datagram connect(const std::string& to, const std::string& own = {},
                               const unix_datagram_options& options = {});

  // The next datagram.
  io::awaitable<io::unix_receive_job> receive(std::span<std::byte> to) noexcept {
    return io::awaitable<io::unix_receive_job>(std::in_place, descriptor_, to, weak_);
  }
  io::awaitable<io::unix_receive_job> receive(std::span<char> to) noexcept {
    return receive(std::as_writable_bytes(to));
  }

  // One datagram to the peer that it was connected to: waits until that has room. The bytes stay
  // the caller's until it is sent. Throws io_error, connection_refused, when the peer has gone.
  io::awaitable<io::send_job> send(std::string_view bytes) noexcept {
    return io::awaitable<io::send_job>(std::in_place, descriptor_, bytes);
  }
  // One to anybody. False when that has no room just now: it does not wait, since the system tells
  // nobody when there is room again. Connect to whom you send much. Throws io_error:
  // no_such_file_or_directory, connection_refused, message_size.
  [[nodiscard]] bool try_send(std::string_view bytes, const std::string& to);

  bool is_open() const noexcept { return descriptor_.is_open(); }
  // What is under way ends as cancelled.
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
