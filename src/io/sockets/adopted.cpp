#include "io/sockets/adopted.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <string>

#include "io/sockets/sockets.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::io {
namespace {

int option_of(int fd, int option) noexcept {
  int value = -1;
  socklen_t bytes = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}

}  // namespace

int listening_family_of(int fd) noexcept {
  if (option_of(fd, SO_TYPE) != SOCK_STREAM || option_of(fd, SO_ACCEPTCONN) != 1) return -1;
  return option_of(fd, SO_DOMAIN);
}

descriptor adopt_listening(int fd) {
  const int mode = ::fcntl(fd, F_GETFL);
  const bool done = mode >= 0 && ::fcntl(fd, F_SETFL, mode | O_NONBLOCK) >= 0 &&
                    ::fcntl(fd, F_SETFD, FD_CLOEXEC) >= 0;
  checked(done ? 0 : -errno, "fcntl", "descriptor " + std::to_string(fd));
  return descriptor(fd);
}

}  // namespace troupe::io
