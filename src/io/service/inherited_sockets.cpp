#include "troupe/io/service/inherited_sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "io/service/ready_pipe.hpp"
#include "io/service/variables.hpp"
#include "io/sockets/adopted.hpp"
#include "troupe/base/error.hpp"

namespace troupe::service {
namespace {

void close_at_exec(int fd) noexcept { static_cast<void>(::fcntl(fd, F_SETFD, FD_CLOEXEC)); }

// The file of a bound Unix socket; "" for one without a file.
std::string path_of(int fd) {
  sockaddr_un at{};
  socklen_t bytes = sizeof at;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes) != 0) return "";
  constexpr std::size_t before = offsetof(sockaddr_un, sun_path);
  if (bytes <= before || at.sun_path[0] == '\0') return "";
  return std::string(at.sun_path, ::strnlen(at.sun_path, bytes - before));
}

}  // namespace

inherited_sockets inherited_sockets::take() {
  const variables seen{std::getenv("LISTEN_FDS"), std::getenv("LISTEN_PID"),
                       std::getenv("LISTEN_FDNAMES"), std::getenv("TROUPE_PREDECESSOR")};
  std::optional<passed> all = read_variables(seen, ::getpid(), ::getppid());
  for (const char* name : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "TROUPE_PREDECESSOR"})
    ::unsetenv(name);
  inherited_sockets sockets;
  if (!all) return sockets;
  sockets.all_.reserve(all->names.size());
  for (std::size_t i = 0; i < all->names.size(); ++i) {
    const int fd = first_socket + static_cast<int>(i);
    close_at_exec(fd);
    sockets.all_.push_back({fd, std::move(all->names[i]), all->from && all->from->files[i] == '1'});
  }
  if (all->from) {
    close_at_exec(all->from->ready_fd);
    keep_ready_pipe(all->from->ready_fd);
  }
  return sockets;
}

inherited_sockets::~inherited_sockets() {
  for (const inherited_socket& each : all_) ::close(each.fd);
}

// Returns the descriptor; -1 if there is none.
int inherited_sockets::take_one(std::string_view name, bool is_unix, bool& removes_file) {
  bool is_named = false;
  for (auto at = all_.begin(); at != all_.end(); ++at) {
    if (!name.empty() && at->name != name) continue;
    is_named = true;
    const int family = io::listening_family_of(at->fd);
    if (is_unix ? family != AF_UNIX : family != AF_INET && family != AF_INET6) continue;
    const int fd = at->fd;
    removes_file = at->removes_file;
    all_.erase(at);
    return fd;
  }
  if (is_named && !name.empty()) {
    throw option_error("troupe: the inherited socket \"" + std::string(name) +
                       "\" is no listening " + (is_unix ? "Unix" : "TCP") + " socket");
  }
  return -1;
}

std::optional<tcp_listener> inherited_sockets::tcp(std::string_view name,
                                                   const listen_options& options) {
  bool removes_file = false;
  const int fd = take_one(name, false, removes_file);
  if (fd < 0) return std::nullopt;
  return tcp_listener::adopt(fd, options);
}

std::optional<unix_listener> inherited_sockets::unix_socket(std::string_view name,
                                                            const listen_options& options) {
  bool removes_file = false;
  const int fd = take_one(name, true, removes_file);
  if (fd < 0) return std::nullopt;
  unix_listener listener = unix_listener::adopt(fd, options);
  if (removes_file) listener.file_ = io::socket_file(path_of(fd));
  return listener;
}

}  // namespace troupe::service
