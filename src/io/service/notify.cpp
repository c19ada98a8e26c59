#include "troupe/io/service/notify.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "io/operations/broken_pipes.hpp"
#include "io/service/ready_pipe.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"

namespace troupe::service {
namespace {

constexpr int none = -1;
std::atomic<int> ready_pipe{none};

// Sends one datagram. Returns 0, or an error number.
int send_to(const sockaddr_un& at, socklen_t bytes, std::string_view text) noexcept {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const timeval second{.tv_sec = 1, .tv_usec = 0};
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second));
  ssize_t sent = -1;
  do {
    sent = ::sendto(fd, text.data(), text.size(), MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&at), bytes);
  } while (sent < 0 && errno == EINTR);
  const int number = sent < 0 ? errno : 0;
  ::close(fd);
  return number;
}

}  // namespace

// order: relaxed (both)  the descriptor is the process's; nothing else is published
void keep_ready_pipe(int fd) noexcept {
  const int before = ready_pipe.exchange(fd, std::memory_order_relaxed);
  if (before != none) ::close(before);
}
void tell_predecessor() noexcept {
  const int fd = ready_pipe.exchange(none, std::memory_order_relaxed);
  if (fd == none) return;
  io::ignore_broken_pipes();
  static_cast<void>(!::write(fd, "R", 1));  // if it has gone, nobody has to know
  ::close(fd);
}

bool notify(std::string_view lines) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return false;
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::size_t bytes = std::strlen(path);
  if ((path[0] != '/' && path[0] != '@') || bytes >= sizeof at.sun_path) {
    throw option_error(std::string("troupe: NOTIFY_SOCKET=\"") + path +
                       "\" in the environment: only Unix sockets are supported");
  }
  std::memcpy(at.sun_path, path, bytes);
  if (path[0] == '@') at.sun_path[0] = '\0';  // a name without a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
  if (const int number = send_to(at, size, lines); number != 0)
    throw io_error("service::notify", path, number);
  return true;
}

void ready() {
  tell_predecessor();
  notify("READY=1\n");
}

void stopping() { notify("STOPPING=1\n"); }

// systemd wants the time, to tell this message from the ready() of an earlier one.
void reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  notify("RELOADING=1\nMONOTONIC_USEC=" +
         std::to_string(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000) + "\n");
}

}  // namespace troupe::service
