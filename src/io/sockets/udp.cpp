#include "troupe/io/udp.hpp"

#include "io/sockets/sockets.hpp"

namespace troupe {
namespace io {

descriptor& receive_job::prepare(operation_suspension& wait) noexcept {
  wait.data = buffer_.data();
  wait.bytes = buffer_.size();
  wait.address = from_.data();
  wait.address_bytes = endpoint::capacity();
  wait.weak = weak_;
  return *at_;
}

datagram receive_job::finish(operation_suspension& wait) const {
  wait.check("receive");
  return {wait.done, from_, static_cast<std::size_t>(wait.result) > buffer_.size()};
}

descriptor& send_job::prepare(operation_suspension& wait) noexcept {
  // The system does not write to these bytes.
  wait.data = reinterpret_cast<std::byte*>(const_cast<char*>(bytes_.data()));
  wait.bytes = bytes_.size();
  if (has_address_) {
    wait.address = endpoint_.data();
    wait.address_bytes = endpoint_.size();
  }
  return *from_;
}

void send_job::finish(operation_suspension& wait) const {
  // The socket does not have this peer's name: the name is taken from here.
  if (has_address_ && wait.result < 0 && wait.result != -ECANCELED)
    throw io_error("send", endpoint_.to_string(), -wait.result);
  wait.check("send");
}

}  // namespace io

udp_socket udp_socket::make(const endpoint& like, const udp_options& options) {
  udp_socket socket;
  socket.weak_ = options.weak;
  socket.descriptor_ = io::make_socket(like.data()->sa_family, SOCK_DGRAM, like.to_string());
  const auto set = [&](int option) {
    io::checked(io::kernel_of(socket.descriptor_).set_option(socket.fd(), SOL_SOCKET, option, 1),
                "setsockopt", like.to_string());
  };
  if (options.reuse_port) set(SO_REUSEPORT);
  if (options.broadcast) set(SO_BROADCAST);
  return socket;
}

udp_socket udp_socket::bind(const endpoint& at, const udp_options& options) {
  udp_socket socket = make(at, options);
  io::checked(io::kernel_of(socket.descriptor_).bind(socket.fd(), at.data(), at.size()), "bind",
              at.to_string());
  return socket;
}

udp_socket udp_socket::connect(const endpoint& peer, const udp_options& options) {
  udp_socket socket = make(peer, options);
  io::checked(io::kernel_of(socket.descriptor_).connect(socket.fd(), peer.data(), peer.size()),
              "connect", peer.to_string());
  return socket;
}

endpoint udp_socket::local() const { return io::local_of(descriptor_); }

}  // namespace troupe
