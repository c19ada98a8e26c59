#include "troupe/io/unix_socket.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/text/zero_byte.hpp"
#include "io/sockets/adopted.hpp"
#include "io/sockets/unix_address.hpp"

namespace troupe {
namespace io {

socket_file::socket_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return;
  path_ = path;
  device_ = found.st_dev;
  number_ = found.st_ino;
}

socket_file& socket_file::operator=(socket_file&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  number_ = other.number_;
  return *this;
}

void socket_file::remove() noexcept {
  struct stat found {};
  if (!path_.empty() && ::stat(path_.c_str(), &found) == 0 && found.st_dev == device_ &&
      found.st_ino == number_) {
    static_cast<void>(::unlink(path_.c_str()));
  }
  path_.clear();
}

unix_address::unix_address(const std::string& path) {
  if (path.empty() || path.size() >= sizeof name_.sun_path) {
    throw option_error("troupe: unix socket \"" + path + "\": a path has 1 to " +
                       std::to_string(sizeof name_.sun_path - 1) + " bytes; this one has " +
                       std::to_string(path.size()));
  }
  // A name that begins with a zero byte is no path, and may have more of them.
  if (path.front() != '\0') base::refuse_zero_byte(path, "unix socket", "the path");
  name_.sun_family = AF_UNIX;
  std::memcpy(name_.sun_path, path.data(), path.size());
  bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() +
                                  (path.front() == '\0' ? 0 : 1));
}

namespace {

bool is_file(const std::string& path) { return path.front() != '\0'; }

// True for the file of a socket whose listener no longer runs.
bool is_left_over(kernel& calls, const std::string& path, const unix_address& at, int type) {
  struct stat found {};
  if (!is_file(path) || ::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const descriptor probe = make_socket(AF_UNIX, type, path);
  return calls.connect(probe.fd(), at.data(), at.size()) == -ECONNREFUSED;
}

}  // namespace

socket_file bind_unix(const descriptor& socket, const std::string& path, int type) {
  const unix_address at(path);
  kernel& calls = kernel_of(socket);
  int bound = calls.bind(socket.fd(), at.data(), at.size());
  if (bound == -EADDRINUSE && is_left_over(calls, path, at, type) && ::unlink(path.c_str()) == 0) {
    bound = calls.bind(socket.fd(), at.data(), at.size());
  }
  checked(bound, "bind", path);
  return is_file(path) && &calls == &system_kernel() ? socket_file(path) : socket_file();
}

}  // namespace io

unix_stream unix_stream::connect(const std::string& path) {
  const io::unix_address address(path);
  io::descriptor socket = io::make_socket(AF_UNIX, SOCK_STREAM, path);
  io::checked(io::kernel_of(socket).connect(socket.fd(), address.data(), address.size()), "connect",
              path);
  return unix_stream(std::move(socket));
}

void unix_stream::shutdown_write() { io::shutdown_write_of(descriptor_); }

unix_listener unix_listener::listen(const std::string& path, const listen_options& options) {
  static_cast<void>(io::unix_address(path));  // checks the path before anything else is done
  unix_listener listener;
  listener.weak_ = options.weak;
  listener.descriptor_ = io::make_socket(AF_UNIX, SOCK_STREAM, path);
  listener.file_ = io::bind_unix(listener.descriptor_, path, SOCK_STREAM);
  // No client can connect before listen().
  if (options.permissions && listener.file_.is_kept()) {
    const int changed = ::chmod(path.c_str(), *options.permissions & 07777);
    io::checked(changed == 0 ? 0 : -errno, "chmod", path);
  }
  io::checked(io::kernel_of(listener.descriptor_).listen(listener.fd(), options.backlog), "listen",
              path);
  return listener;
}

unix_listener unix_listener::adopt(int fd, const listen_options& options) {
  if (io::listening_family_of(fd) != AF_UNIX) {
    throw option_error("troupe: unix_listener::adopt: descriptor " + std::to_string(fd) +
                       " is no listening Unix socket");
  }
  unix_listener listener;
  listener.weak_ = options.weak;
  listener.descriptor_ = io::adopt_listening(fd);
  return listener;
}

}  // namespace troupe
