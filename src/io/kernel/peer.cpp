#include "io/kernel/peer.hpp"

#include <sys/socket.h>

#include "troupe/io/endpoint.hpp"

namespace troupe::io {

std::string peer_of(kernel& calls, int fd) {
  endpoint peer;
  socklen_t bytes = endpoint::capacity();
  if (calls.peer_name(fd, peer.data(), &bytes) >= 0 &&
      (peer.data()->sa_family == AF_INET || peer.is_v6())) {
    return peer.to_string();
  }
  return "descriptor " + std::to_string(fd);
}

}  // namespace troupe::io
