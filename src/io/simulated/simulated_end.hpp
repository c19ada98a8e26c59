// The state of one socket in the simulated network.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sched/policies/simulated.hpp"
#include "troupe/io/endpoint.hpp"

namespace troupe::io {

struct simulated_end;
using simulated_end_ptr = std::shared_ptr<simulated_end>;

// One side of a connection, a listener, or a datagram socket.
struct simulated_end {
  enum class state : std::uint8_t {
    fresh,
    listening,
    connecting,
    connected,
    failed
  } is = state::fresh;
  endpoint local, peer;
  bool bound = false;
  // A UDP socket: it has a peer when it is connected, and is never full.
  bool datagrams = false;
  std::string path, peer_path;  // of a Unix socket, which has no endpoints
  bool is_unix = false;
  std::weak_ptr<simulated_end> other;
  std::string received;                       // bytes that came and were not read yet
  std::size_t under_way = 0;                  // bytes on their way here
  std::size_t capacity = 65'536;              // the most bytes in both of these together
  std::deque<simulated_end_ptr> connections;  // of a listener
  struct packet {
    endpoint from;
    std::string path;  // or the sender's path, for a Unix socket
    std::string bytes;
  };
  std::deque<packet> packets;  // datagrams that came
  std::size_t packets_under_way = 0;
  std::int64_t last_due_ns = 0;  // when the last of what is on its way here arrives
  int error = 0;
  bool finished = false;  // the peer writes no more
  bool written = false;   // this side writes no more
  bool gone = false;      // the peer was closed
  bool resets = false;    // the end of this side is a reset
  bool wants_room = false;
  bool lost = false;  // nothing arrives here, and nothing that this side sends arrives
  sched::connection_choices choices;
  std::uint64_t tag = 0;
  std::uint32_t interests = 0, raised = 0;

  bool can_read() const noexcept {
    return !received.empty() || finished || error != 0 || !connections.empty() || !packets.empty();
  }
  bool can_write() const noexcept {
    if (is == state::failed || datagrams) return !wants_room;
    if (is != state::connected) return false;
    const simulated_end_ptr far_end = other.lock();
    return gone || far_end == nullptr ||
           far_end->received.size() + far_end->under_way < far_end->capacity;
  }
  std::uint32_t level() const noexcept {
    std::uint32_t now = 0;
    if (can_read()) now |= EPOLLIN;
    if (can_write()) now |= EPOLLOUT;
    if (finished) now |= EPOLLRDHUP;
    if (error != 0) now |= EPOLLERR | EPOLLHUP;
    if (gone) now |= EPOLLHUP;  // also after its error was reported
    return now;
  }
};

using lock_of = std::lock_guard<std::recursive_mutex>;

inline endpoint endpoint_from(const sockaddr* from, socklen_t bytes) noexcept {
  endpoint result;
  std::memcpy(result.data(), from, std::min(bytes, endpoint::capacity()));
  return result;
}

inline int give_name(const endpoint& from, sockaddr* to, socklen_t* bytes) noexcept {
  if (to == nullptr) return 0;
  std::memcpy(to, from.data(), std::min(*bytes, from.size()));
  *bytes = from.size();
  return 0;
}

inline endpoint with_port(endpoint address, std::uint16_t port) {
  const bool v6 = address.is_v6();
  // The port of a sockaddr_in lies at the same position as that of a sockaddr_in6.
  reinterpret_cast<sockaddr_in*>(address.data())->sin_port = htons(port);
  static_cast<void>(v6);
  return address;
}

inline bool accepts(const endpoint& listener, const endpoint& address) {
  return listener == address ||
         (listener.port() == address.port() &&
          with_port(endpoint::any(0), address.port()) == listener && !address.is_v6()) ||
         (listener.port() == address.port() && listener == endpoint::any_v6(address.port()));
}

inline std::string path_from(const sockaddr* from, socklen_t bytes) {
  const auto* text = reinterpret_cast<const char*>(from) + offsetof(sockaddr, sa_data);
  std::string path(text, bytes - offsetof(sockaddr, sa_data));
  if (path.front() != '\0') path.resize(std::strlen(path.c_str()));
  return path;
}

}  // namespace troupe::io
