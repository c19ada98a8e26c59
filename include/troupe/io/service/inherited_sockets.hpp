// inherited_sockets: listening sockets that this process has from systemd, or from the process
// before it.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/io/tcp.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe::service {

// systemd opens the sockets of a service's `.socket` unit, and passes them when it starts the
// service (socket activation: LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES). A successor passes the
// sockets of the old process in the same way. Move-only; the destructor closes the sockets that
// were not taken.
//
// Example:
//     auto sockets = troupe::service::inherited_sockets::take();
//     auto listener = sockets.tcp("web");
//     if (!listener) listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
class inherited_sockets {
 public:
  // Takes the sockets over, and removes the variables from the environment, so that no process
  // which this one starts takes them for its own. Call it once, at the beginning of the program,
  // before it has other threads: a second call gives none. Errors: option_error for variables that
  // are malformed.
  static inherited_sockets take();

  inherited_sockets(inherited_sockets&& other) noexcept : all_(std::move(other.all_)) {
    other.all_.clear();
  }
  inherited_sockets& operator=(inherited_sockets&& other) noexcept {
    all_.swap(other.all_);
    return *this;
  }
  ~inherited_sockets();

  // The number of sockets that were not taken.
  std::size_t size() const noexcept { return all_.size(); }

  // The first TCP socket with that name, or the first one, if the name is empty; nothing if there
  // is none. The name is the unit's, or FileDescriptorName= in it. Of the options only `weak`
  // applies. Throws option_error if a socket has that name but is no listening TCP socket.
  std::optional<tcp_listener> tcp(std::string_view name = {}, const listen_options& options = {});
  // The same for Unix sockets. The listener removes its file if the process before this one would
  // have done so.
  std::optional<unix_listener> unix_socket(std::string_view name = {},
                                           const listen_options& options = {});

 private:
  struct inherited_socket {
    int fd;
    std::string name;
    bool removes_file;
  };
  inherited_sockets() = default;
  int take_one(std::string_view name, bool is_unix, bool& removes_file);
  std::vector<inherited_socket> all_;
};

}  // namespace troupe::service
