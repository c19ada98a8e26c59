#include "troupe/io/tcp.hpp"

#include <netinet/tcp.h>

#include "io/kernel/peer.hpp"
#include "io/sockets/adopted.hpp"
#include "io/sockets/sockets.hpp"

namespace troupe {
namespace io {

descriptor& connect_job::prepare(operation_suspension& wait) {
  connected_ = make_socket(endpoint_.data()->sa_family, SOCK_STREAM, endpoint_.to_string());
  checked(kernel_of(connected_).set_option(connected_.fd(), IPPROTO_TCP, TCP_NODELAY, 1),
          "setsockopt", endpoint_.to_string());
  wait.address = endpoint_.data();
  wait.address_bytes = endpoint_.size();
  return connected_;
}

tcp_stream connect_job::finish(operation_suspension& wait) {
  // A socket that is not connected cannot name its peer: the name is taken from here.
  if (wait.result < 0 && wait.result != -ECANCELED)
    throw io_error("connect", endpoint_.to_string(), -wait.result);
  wait.check("connect");
  return tcp_stream(std::move(connected_));
}

}  // namespace io

void tcp_stream::shutdown_write() { io::shutdown_write_of(descriptor_); }

void tcp_stream::set_no_delay(bool on) {
  io::checked(io::kernel_of(descriptor_).set_option(fd(), IPPROTO_TCP, TCP_NODELAY, on ? 1 : 0),
              "setsockopt", descriptor_.peer());
}

endpoint tcp_stream::local() const { return io::local_of(descriptor_); }

endpoint tcp_stream::peer() const {
  endpoint name;
  socklen_t bytes = endpoint::capacity();
  io::checked(io::kernel_of(descriptor_).peer_name(fd(), name.data(), &bytes), "getpeername",
              "descriptor " + std::to_string(fd()));
  return name;
}

tcp_listener tcp_listener::listen(const endpoint& at, const listen_options& options) {
  const std::string name = at.to_string();
  tcp_listener listener;
  listener.weak_ = options.weak;
  listener.descriptor_ = io::make_socket(at.data()->sa_family, SOCK_STREAM, name);
  io::kernel& calls = io::kernel_of(listener.descriptor_);
  const int fd = listener.fd();
  const auto set = [&](int level, int option) {
    io::checked(calls.set_option(fd, level, option, 1), "setsockopt", name);
  };
  set(SOL_SOCKET, SO_REUSEADDR);  // the port may have been in use until a moment ago
  if (options.reuse_port) set(SOL_SOCKET, SO_REUSEPORT);
  set(IPPROTO_TCP, TCP_NODELAY);  // accepted connections inherit it
  io::checked(calls.bind(fd, at.data(), at.size()), "bind", name);
  io::checked(calls.listen(fd, options.backlog), "listen", name);
  return listener;
}

tcp_listener tcp_listener::adopt(int fd, const listen_options& options) {
  const int family = io::listening_family_of(fd);
  if (family != AF_INET && family != AF_INET6) {
    throw option_error("troupe: tcp_listener::adopt: descriptor " + std::to_string(fd) +
                       " is no listening TCP socket");
  }
  tcp_listener listener;
  listener.weak_ = options.weak;
  listener.descriptor_ = io::adopt_listening(fd);
  // accepted connections inherit it
  io::checked(io::system_kernel().set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1), "setsockopt",
              "descriptor " + std::to_string(fd));
  return listener;
}

endpoint tcp_listener::local() const { return io::local_of(descriptor_); }

}  // namespace troupe
