// loopback: the start of a floor that serves: a listener on this machine. The driver reads its port
// from the first line.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace loopback {

// Returns -1 on failure. `flags`: SOCK_NONBLOCK or 0.
inline int listen_and_tell(int flags) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const int listener = ::socket(AF_INET, SOCK_STREAM | flags, 0);
  const int yes = 1;
  ::setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), bytes) < 0 || ::listen(listener, 4096) < 0)
    return -1;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes);
  std::printf("%d\n", ntohs(at.sin_port));
  std::fflush(stdout);
  return listener;
}

// Never returns. Calls serve(fd) when bytes have come. When serve() returns false, the connection
// is over and is closed. `how`: EPOLLIN, with or without edges.
template <class Serve>
[[noreturn]] void serve_by_epoll(int listener, std::uint32_t how, Serve serve) {
  const int set = ::epoll_create1(0);
  const auto add = [&](int fd) {
    epoll_event wanted{};
    wanted.events = how;
    wanted.data.fd = fd;
    ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted);
  };
  add(listener);
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        for (int made; (made = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;)
          add(made);
      } else if (!serve(fd)) {
        ::close(fd);
      }
    }
  }
}

}  // namespace loopback
