// The state of one socket in the simulated network.
//
// Invariants
//   E1  Only a connection that is being made becomes connected or is refused.
//   E2  No byte arrives behind the end of the peer's bytes. A lost connection stays lost.
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

#include "base/invariant.hpp"
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
  enum class kind : std::uint8_t { tcp, udp, unix_stream, unix_datagrams } socket = kind::tcp;
  endpoint local, peer;
  std::string path, peer_path;  // of a Unix socket, which has no endpoints
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
  std::int64_t last_due_ns = 0;  // when the last packet on its way here arrives
  int error = 0;
  enum class peer_state : std::uint8_t { sends, finished, gone } peer_is = peer_state::sends;
  enum class close_by : std::uint8_t { end, reset } closes_by = close_by::end;
  bool written = false;  // this side writes no more
  bool wants_room = false;
  bool lost = false;  // nothing arrives here, and nothing that this side sends arrives
  sched::connection_choices choices;
  std::uint64_t tag = 0;
  std::uint32_t interests = 0, raised = 0;

  bool is_unix() const noexcept {
    return socket == kind::unix_stream || socket == kind::unix_datagrams;
  }
  // A UDP socket has a peer when it is connected, and is never full.
  bool has_datagrams() const noexcept {
    return socket == kind::udp || socket == kind::unix_datagrams;
  }
  bool is_bound() const noexcept { return local.port() != 0; }

  void end_connecting(state to) noexcept {
    TROUPE_INVARIANT(is == state::connecting, "E1");
    is = to;
  }
  // The peer writes no more.
  bool has_finished() const noexcept { return peer_is != peer_state::sends; }
  // The peer was closed, or the connection was reset.
  bool is_gone() const noexcept { return peer_is == peer_state::gone; }
  void take_bytes(const std::string& bytes) {
    TROUPE_INVARIANT(peer_is != peer_state::finished, "E2");
    received += bytes;
  }
  void finish() noexcept {
    if (!is_gone()) peer_is = peer_state::finished;
  }
  void go() noexcept { peer_is = peer_state::gone; }

  bool can_read() const noexcept {
    return !received.empty() || has_finished() || error != 0 || !connections.empty() ||
           !packets.empty();
  }
  bool can_write() const noexcept {
    if (is == state::failed || has_datagrams()) return !wants_room;
    if (is != state::connected) return false;
    const simulated_end_ptr far_end = other.lock();
    return is_gone() || far_end == nullptr ||
           far_end->received.size() + far_end->under_way < far_end->capacity;
  }
  std::uint32_t level() const noexcept {
    std::uint32_t now = 0;
    if (can_read()) now |= EPOLLIN;
    if (can_write()) now |= EPOLLOUT;
    if (has_finished()) now |= EPOLLRDHUP;
    if (error != 0) now |= EPOLLERR | EPOLLHUP;
    if (is_gone()) now |= EPOLLHUP;  // even after its error was reported
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
  // The port of a sockaddr_in lies at the same position as the port of a sockaddr_in6.
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
