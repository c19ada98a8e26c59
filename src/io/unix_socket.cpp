#include "troupe/io/unix_socket.hpp"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "io/sockets.hpp"

namespace troupe {
namespace {

struct unix_address {
  explicit unix_address(const std::string& path) {
    if (path.empty() || path.size() >= sizeof name.sun_path) {
      throw option_error("troupe: unix socket \"" + path + "\": a path has 1 to " + std::to_string(sizeof name.sun_path - 1) +
                         " bytes; this one has " + std::to_string(path.size()));
    }
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (path.front() == '\0' ? 0 : 1));
  }
  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&name); }
  sockaddr_un name{};
  socklen_t bytes = 0;
};

bool is_file(const std::string& path) { return path.front() != '\0'; }

// A socket's file at which nobody listens any more.
bool is_left_over(io::kernel& calls, const std::string& path, const unix_address& at) {
  struct stat found {};
  if (!is_file(path) || ::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const io::descriptor probe = io::make_socket(AF_UNIX, SOCK_STREAM, path);
  return calls.connect(probe.fd(), at.data(), at.bytes) == -ECONNREFUSED;
}

}  // namespace

unix_stream unix_stream::connect(const std::string& path) {
  const unix_address to(path);
  io::descriptor made = io::make_socket(AF_UNIX, SOCK_STREAM, path);
  io::checked(io::kernel_of(made).connect(made.fd(), to.data(), to.bytes), "connect", path);
  return unix_stream(std::move(made));
}

void unix_stream::shutdown_write() { io::shutdown_write_of(descriptor_); }

unix_listener unix_listener::listen(const std::string& path, const listen_options& options) {
  const unix_address at(path);
  unix_listener made;
  made.weak_ = options.weak;
  made.ahead_ = options.accept_ahead;
  made.descriptor_ = io::make_socket(AF_UNIX, SOCK_STREAM, path);
  io::kernel& calls = io::kernel_of(made.descriptor_);
  int bound = calls.bind(made.fd(), at.data(), at.bytes);
  if (bound == -EADDRINUSE && is_left_over(calls, path, at) && ::unlink(path.c_str()) == 0) {
    bound = calls.bind(made.fd(), at.data(), at.bytes);
  }
  io::checked(bound, "bind", path);
  struct stat file {};
  if (is_file(path) && &calls == &io::system_kernel() && ::stat(path.c_str(), &file) == 0) {
    made.file_ = path;
    made.device_ = file.st_dev;
    made.number_ = file.st_ino;
  }
  io::checked(calls.listen(made.fd(), options.backlog), "listen", path);
  return made;
}

unix_listener& unix_listener::operator=(unix_listener&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::move(other.descriptor_);
  file_ = std::exchange(other.file_, {});
  device_ = other.device_;
  number_ = other.number_;
  weak_ = other.weak_;
  ahead_ = other.ahead_;
  return *this;
}

// The file first: who finds it finds somebody who listens.
void unix_listener::close() noexcept {
  struct stat found {};
  if (!file_.empty() && ::stat(file_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == number_) {
    static_cast<void>(::unlink(file_.c_str()));
  }
  file_.clear();
  descriptor_.close();
}

}  // namespace troupe
