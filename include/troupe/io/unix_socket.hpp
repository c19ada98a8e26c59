// unix_socket: streams in the Unix domain, between processes of one machine, addressed by a path.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "troupe/io/operations/accept.hpp"
#include "troupe/io/stream.hpp"

namespace troupe {

namespace service {
class inherited_sockets;
class successor;
}  // namespace service

namespace io {

// The file of a bound socket. The destructor removes the file, unless another file has replaced it.
class socket_file {
 public:
  socket_file() = default;  // none
  explicit socket_file(const std::string& path);
  socket_file(socket_file&& other) noexcept { *this = std::move(other); }
  socket_file& operator=(socket_file&& other) noexcept;
  ~socket_file() { remove(); }
  void remove() noexcept;
  // The file has another owner from now on.
  void release() noexcept { path_.clear(); }
  bool is_kept() const noexcept { return !path_.empty(); }

 private:
  std::string path_;
  std::uint64_t device_ = 0, number_ = 0;
};

}  // namespace io

// A connection. Move-only; the destructor closes it.
//
// Example (declarations):
//     troupe::task<> tell(std::string path) {
//       troupe::unix_stream peer = troupe::unix_stream::connect(path);
//       co_await peer.write_all("hello\n");
//     }
class unix_stream : public stream {
 public:
  unix_stream() = default;

  // Connects to the listener at that path. A path that begins with '\0' is a name without a file
  // (the abstract namespace of Linux). Does not wait: the system connects at once or refuses.
  // Errors: io_error: no_such_file_or_directory, connection_refused (no listener exists any more),
  // resource_unavailable_try_again (too many connections wait to be accepted); option_error for a
  // path that is empty, longer than 107 bytes, or has a zero byte inside. Thread: any; under the
  // simulated policy in a handler or a task.
  static unix_stream connect(const std::string& path);

  // Ends the stream to the peer, which then reads the end of the stream. Reading is still possible.
  // Throws io_error.
  void shutdown_write();

 private:
  friend io::accept_job<unix_stream>;
  explicit unix_stream(io::descriptor&& open) noexcept
      : stream(std::move(open), io::stream_kind::socket) {}
};

// Listens at a path. Move-only; the destructor closes the listener and removes its file.
class unix_listener {
 public:
  unix_listener() = default;  // not open

  // Opens a listener. A file that a dead process left there is replaced; a file of a living
  // listener is not: io_error, address_in_use. (To find this out the function connects to it; a
  // living listener sees a connection that ends at once.) The options `backlog`, `weak`
  // and `permissions` apply. Throws io_error, and option_error as connect() does. Thread: any;
  // under the simulated policy in a handler or a task, where all paths are simulated.
  static unix_listener listen(const std::string& path, const listen_options& options = {});

  // As tcp_listener::adopt(), for a Unix socket. Its file is not removed by this object.
  static unix_listener adopt(int fd, const listen_options& options = {});

  // As tcp_listener::accept().
  io::awaitable<io::accept_job<unix_stream>> accept() noexcept {
    return io::awaitable<io::accept_job<unix_stream>>(std::in_place, descriptor_, weak_);
  }

  // As tcp_listener::accept_when_able().
  task<unix_stream> accept_when_able(std::stop_token end = {});

  bool is_open() const noexcept { return descriptor_.is_open(); }
  void close() noexcept {
    file_.remove();  // first, so that a client that finds the file finds a listener
    descriptor_.close();
  }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  friend service::inherited_sockets;
  friend service::successor;
  io::descriptor descriptor_;
  io::socket_file file_;
  bool weak_ = false;
};

}  // namespace troupe
