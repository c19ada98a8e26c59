// The floor: a bare loop over epoll, edge-triggered, that reads once and writes back.
#include "../floor/loopback.hpp"

int main() {
  const int listener = loopback::listen_and_tell(SOCK_NONBLOCK);
  if (listener < 0) return 1;
  std::array<char, 4096> buffer;
  loopback::serve_by_epoll(listener, EPOLLIN | EPOLLET, [&buffer](int fd) {
    const ssize_t part = ::recv(fd, buffer.data(), buffer.size(), 0);
    return part > 0 &&
           ::send(fd, buffer.data(), static_cast<std::size_t>(part), MSG_NOSIGNAL) == part;
  });
}
