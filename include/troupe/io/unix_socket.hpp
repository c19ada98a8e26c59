// Sockets of the Unix domain: streams between processes of one machine, by a path.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "troupe/io/operations/accept.hpp"
#include "troupe/io/stream.hpp"

namespace troupe {

namespace io {

// The file of a socket that was bound; it is removed with this, unless another one has taken its
// place.
class socket_file {
 public:
  socket_file() = default;  // none
  explicit socket_file(const std::string& path);
  socket_file(socket_file&& other) noexcept { *this = std::move(other); }
  socket_file& operator=(socket_file&& other) noexcept;
  ~socket_file() { remove(); }
  void remove() noexcept;

 private:
  std::string path_;
  std::uint64_t device_ = 0, number_ = 0;
};

}  // namespace io

// A connection. Move-only; closed when it goes.
//
// Example (declarations):
//     troupe::task<> tell(std::string path) {
//       troupe::unix_stream peer = troupe::unix_stream::connect(path);
//       co_await peer.write_all("hello\n");
//     }
class unix_stream : public stream {
 public:
  unix_stream() = default;

  // To who listens at that path; one that begins with '\0' is no file's, but a name (the abstract
  // namespace of Linux). Does not wait: the system connects at once or refuses. Throws io_error:
  // no_such_file_or_directory, connection_refused (nobody listens any more),
  // resource_unavailable_try_again (too many wait to be accepted); option_error for a path that is
  // empty, longer than 107 bytes, or has a zero byte within. Under the simulated policy in a
  // handler or a task.
  static unix_stream connect(const std::string& path);

  // Nothing more is written; the peer reads to the end. Throws io_error.
  void shutdown_write();

 private:
  friend io::accept_job<unix_stream>;
  explicit unix_stream(io::descriptor&& open) noexcept
      : stream(std::move(open), io::stream_kind::socket) {}
};

// Listens at a path, and removes its file when it goes.
class unix_listener {
 public:
  unix_listener() = default;  // not open

  // A file that was left there by one that has died is replaced; one at which somebody listens is
  // not: io_error, address_in_use. (To find out it connects there: a listener that lives sees a
  // connection that ends at once.) Of the options `backlog` and `weak` are for these. Throws
  // io_error, and option_error as connect() does. Under the simulated policy in a handler or a
  // task; paths are the simulation's own then.
  static unix_listener listen(const std::string& path, const listen_options& options = {});

  // As tcp_listener::accept().
  io::awaitable<io::accept_job<unix_stream>> accept() noexcept {
    return io::awaitable<io::accept_job<unix_stream>>(std::in_place, descriptor_, weak_, ahead_);
  }

  // As tcp_listener::accept_when_able().
  task<unix_stream> accept_when_able(std::stop_token end = {});

  bool is_open() const noexcept { return descriptor_.is_open(); }
  void close() noexcept {
    file_.remove();  // first: who finds it finds somebody who listens
    descriptor_.close();
  }
  int fd() const noexcept { return descriptor_.fd(); }

 private:
  io::descriptor descriptor_;
  io::socket_file file_;
  bool weak_ = false, ahead_ = false;
};

}  // namespace troupe
