// unix_address: a path in the form that the system takes, and sockets that are bound to a path.
#pragma once

#include <sys/un.h>

#include <string>

#include "io/sockets/sockets.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe::io {

class unix_address {
 public:
  // Throws option_error for a path that is empty or longer than 107 bytes.
  explicit unix_address(const std::string& path);
  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&name_); }
  socklen_t size() const noexcept { return bytes_; }

 private:
  sockaddr_un name_{};
  socklen_t bytes_ = 0;
};

// Binds the socket, and returns the file that this made, if any. Replaces the file of a socket of
// the same type whose process has ended. Throws io_error.
socket_file bind_unix(const descriptor& socket, const std::string& path, int type);

}  // namespace troupe::io
