// tcp: listeners, and streams to a peer.
#pragma once

#include "troupe/base/language.hpp"

#include <utility>

#include "troupe/io/endpoint.hpp"
#include "troupe/io/operations/accept.hpp"
#include "troupe/io/stream.hpp"

namespace troupe {

class tcp_stream;

namespace io {

class connect_job {
 public:
  using result = tcp_stream;
  static constexpr action opcode = action::connect;
  explicit connect_job(const endpoint& endpoint) noexcept : endpoint_(endpoint) {}
  descriptor& prepare(operation_suspension& wait);
  tcp_stream finish(operation_suspension& wait);

 private:
  endpoint endpoint_;
  descriptor connected_;
};

}  // namespace io

// A TCP connection. Move-only; the destructor closes it. Small writes are sent at once
// (TCP_NODELAY).
//
// Example (declarations):
//     troupe::task<std::string> ask_for_time(troupe::endpoint server) {
//       troupe::tcp_stream peer =
//           co_await troupe::tcp_stream::connect(server).timeout(std::chrono::seconds(5));
//       co_await peer.write_all("time?\n");
//       std::array<char, 64> line;
//       const std::size_t bytes = co_await peer.read(line);
//       co_return std::string(line.data(), bytes);
//     }
class tcp_stream : public stream {
 public:
  tcp_stream() = default;

  // Connects to a server. Await it in a handler or a task. Throws io_error: connection_refused,
  // host_unreachable, …
  static io::awaitable<io::connect_job> connect(const endpoint& to) noexcept {
    return io::awaitable<io::connect_job>(std::in_place, to);
  }

  // Ends the stream to the peer, which then reads the end of the stream. Reading is still possible.
  // Throws io_error.
  void shutdown_write();
  // Off: the system delays small writes by up to 40 ms to send them in one packet. Throws io_error.
  void set_no_delay(bool on);
  // The addresses of the two ends. Throw io_error if the connection no longer exists.
  endpoint local() const;
  endpoint peer() const;

 private:
  friend io::accept_job<tcp_stream>;
  friend io::connect_job;
  explicit tcp_stream(io::descriptor&& open) noexcept
      : stream(std::move(open), io::stream_kind::socket) {}
};

// Accepts TCP connections at an address. Move-only; the destructor closes it, and calls of accept()
// that are under way then end as cancelled.
//
// Example (declarations):
//     troupe::task<> echo(troupe::tcp_stream peer) {
//       std::array<char, 4096> buffer;
//       for (;;) {
//         const std::size_t bytes = co_await peer.read(buffer);
//         if (bytes == 0) co_return;
//         co_await peer.write_all(std::string_view(buffer.data(), bytes));
//       }
//     }
//     troupe::task<> serve(troupe::runtime& rt, troupe::tcp_listener listener) {
//       for (;;) {
//         troupe::tcp_stream peer = co_await listener.accept();
//         rt.spawn(echo(std::move(peer)));
//       }
//     }
class tcp_listener {
 public:
  tcp_listener() = default;  // not open

  // Opens a listener. Port 0: the system chooses a port; see local(). Thread: any; under the
  // simulated policy in a handler or a task. Throws io_error: address_in_use, permission_denied, …
  static tcp_listener listen(const endpoint& at, const listen_options& options = {});

  // Takes over a listening socket of the system, which a parent process has opened, for example. It
  // becomes non-blocking, for all processes that have it, and is closed with this object. Only the
  // option `weak` applies. Thread: as listen(). Throws option_error if it is no listening TCP
  // socket; then it stays open, and belongs to the caller.
  static tcp_listener adopt(int fd, const listen_options& options = {});

  // Waits for the next connection. Several calls may wait at a time. If the process has no
  // descriptor left, it throws io_error, too_many_files_open, and the connection stays in the
  // queue: accept it after other descriptors were closed.
  io::awaitable<io::accept_job<tcp_stream>> accept() noexcept {
    return io::awaitable<io::accept_job<tcp_stream>>(std::in_place, descriptor_, weak_);
  }

  // The same for a server: if no descriptor or no memory is left, it does not throw. It waits for a
  // short time of at most 25 ms, and tries again; connections stay in the system's queue meanwhile.
  // Errors: throws cancelled after a stop, at the latest with the next try. Lifetime: the listener
  // must outlive the task.
  task<tcp_stream> accept_when_able(std::stop_token end = {});

  endpoint local() const;
  bool is_open() const noexcept { return descriptor_.is_open(); }
  void close() noexcept { descriptor_.close(); }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  io::descriptor descriptor_;
  bool weak_ = false;
};

}  // namespace troupe
