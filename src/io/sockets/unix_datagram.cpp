#include "troupe/io/unix_datagram.hpp"

#include <algorithm>
#include <cstring>

#include "io/sockets/unix_address.hpp"

namespace troupe {
namespace io {

descriptor& unix_receive_job::prepare(operation_suspension& wait) noexcept {
  wait.data = buffer_.data();
  wait.bytes = buffer_.size();
  wait.address = reinterpret_cast<sockaddr*>(&from_);
  wait.address_bytes = sizeof from_;
  wait.weak = weak_;
  return *at_;
}

unix_message unix_receive_job::finish(operation_suspension& wait) const {
  wait.check("receive");
  unix_message message{wait.done, {}, static_cast<std::size_t>(wait.result) > buffer_.size()};
  if (const std::size_t bytes = wait.address_bytes; bytes > offsetof(sockaddr_un, sun_path)) {
    const std::size_t most =
        std::min(bytes - offsetof(sockaddr_un, sun_path), sizeof from_.sun_path);
    // A path ends with a zero byte; an abstract name begins with a zero byte.
    message.from.assign(from_.sun_path,
                        from_.sun_path[0] == '\0' ? most : ::strnlen(from_.sun_path, most));
  }
  return message;
}

}  // namespace io

unix_datagram unix_datagram::make(const std::string& own, const unix_datagram_options& options) {
  if (!own.empty()) static_cast<void>(io::unix_address(own));
  unix_datagram socket;
  socket.weak_ = options.weak;
  socket.descriptor_ = io::make_socket(AF_UNIX, SOCK_DGRAM, own);
  if (!own.empty()) socket.file_ = io::bind_unix(socket.descriptor_, own, SOCK_DGRAM);
  return socket;
}

unix_datagram unix_datagram::bind(const std::string& path, const unix_datagram_options& options) {
  static_cast<void>(io::unix_address(path));
  return make(path, options);
}

unix_datagram unix_datagram::connect(const std::string& to, const std::string& own,
                                     const unix_datagram_options& options) {
  const io::unix_address at(to);
  unix_datagram socket = make(own, options);
  io::checked(io::kernel_of(socket.descriptor_).connect(socket.fd(), at.data(), at.size()),
              "connect", to);
  return socket;
}

bool unix_datagram::try_send(std::string_view bytes, const std::string& to) {
  const io::unix_address at(to);
  io::kernel& calls = io::kernel_of(descriptor_);
  std::ptrdiff_t sent = 0;
  do {
    sent = calls.send(fd(), bytes.data(), bytes.size(), at.data(), at.size());
  } while (sent == -EINTR);
  if (sent == -EAGAIN) return false;
  if (sent < 0) throw io_error("send", to, static_cast<int>(-sent));
  return true;
}

}  // namespace troupe
