// unix_address: a path as the system takes it, and sockets that are bound to one.
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

// The file that it made, if it is one. What a dead one of the same type has left there is replaced.
// Throws io_error.
socket_file bind_unix(const descriptor& made, const std::string& path, int type);

}  // namespace troupe::io
