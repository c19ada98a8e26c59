// The part of the simulated network that is datagrams: those of UDP travel each for itself, and
// find their way by the address; those of the Unix domain by the path, one behind the other.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/simulated/simulated_end.hpp"

namespace troupe::io {
namespace {

constexpr std::size_t datagram_max = 65'507, queue_max = 200 * 1024;
constexpr std::size_t unix_datagram_max = 200 * 1024, unix_queue_max = 10;  // bytes; datagrams

void give_path(const std::string& path, sockaddr* to, socklen_t* bytes) noexcept {
  if (to == nullptr) return;
  to->sa_family = AF_UNIX;
  const std::size_t most = std::min<std::size_t>(path.size(), *bytes - sizeof(sa_family_t));
  std::memcpy(to->sa_data, path.data(), most);
  *bytes = static_cast<socklen_t>(sizeof(sa_family_t) + most);
}

}  // namespace

simulated_kernel::end_ptr simulated_kernel::receiver_at(const std::string& path) const {
  for (const auto& [fd, one] : ends_) {
    if (one->datagrams && one->is_unix && !path.empty() && one->path == path) return one;
  }
  return nullptr;
}

int simulated_kernel::connect_to_receiver(end& at, const std::string& path) const {
  if (receiver_at(path) == nullptr) return -ENOENT;
  at.peer_path = path;
  at.is = end::state::connected;
  return 0;
}

// None is lost, and they come in order; who sends to a peer waits for room.
std::ptrdiff_t simulated_kernel::send_by_path(const end_ptr& from, const void* data,
                                              std::size_t bytes, const sockaddr* to,
                                              socklen_t to_bytes) {
  if (to == nullptr && from->is != end::state::connected) return -ENOTCONN;
  if (bytes > unix_datagram_max) return -EMSGSIZE;
  const end_ptr at = receiver_at(to == nullptr ? from->peer_path : path_from(to, to_bytes));
  if (at == nullptr) return to == nullptr ? -ECONNREFUSED : -ENOENT;
  if (at->is == end::state::connected && at->peer_path != from->path) return -EPERM;
  if (at->packets.size() + at->packets_under_way >= unix_queue_max) {
    from->wants_room = to == nullptr;
    return -EAGAIN;
  }
  ++at->packets_under_way;
  send_news(at, news::packet, std::string(static_cast<const char*>(data), bytes), from);
  return static_cast<std::ptrdiff_t>(bytes);
}

void simulated_kernel::tell_of_room(const end& at) {
  for (const auto& [fd, one] : ends_) {
    if (!one->wants_room || !one->datagrams || !one->is_unix || one->peer_path != at.path) continue;
    one->wants_room = false;
    send_news(one, news::room);
  }
}

simulated_kernel::end_ptr simulated_kernel::receiver_at(const endpoint& to) const {
  for (const auto& [fd, one] : ends_) {
    if (one->datagrams && !one->is_unix && one->bound && accepts(one->local, to)) return one;
  }
  return nullptr;
}

// Whom nobody receives, or has room for, is lost.
std::ptrdiff_t simulated_kernel::send_packet(end& from, const void* data, std::size_t bytes,
                                             const sockaddr* to, socklen_t to_bytes) {
  if (to == nullptr && from.is != end::state::connected) return -EDESTADDRREQ;
  if (bytes > datagram_max) return -EMSGSIZE;
  name_if_unbound(from);
  const endpoint where = to == nullptr ? from.peer : endpoint_from(to, to_bytes);
  const auto sent = static_cast<std::ptrdiff_t>(bytes);
  const end_ptr at = receiver_at(where);
  if (ended_ || at == nullptr) return sent;
  // What was sent from everywhere was sent from here.
  endpoint sender = from.local;
  if (sender == with_port(endpoint::any(0), sender.port()))
    sender = endpoint::loopback(sender.port());
  if (sender == endpoint::any_v6(sender.port())) sender = endpoint::loopback_v6(sender.port());
  if (at->is == end::state::connected && at->peer != sender) return sent;
  std::size_t queued = at->under_way + bytes;
  for (const end::packet& one : at->packets) queued += one.bytes.size();
  if (queued > queue_max) return sent;
  at->under_way += bytes;
  ++at->packets_under_way;
  const std::int64_t due =
      simulation_.now_ns() + static_cast<std::int64_t>(simulation_.choose(delay_ns_max));
  under_way_.push({due, sent_++, at, news::packet,
                   std::string(static_cast<const char*>(data), bytes), nullptr, sender});
  return sent;
}

std::ptrdiff_t simulated_kernel::receive_packet(end& at, void* data, std::size_t bytes,
                                                sockaddr* peer, socklen_t* peer_bytes) {
  if (at.packets.empty()) return -EAGAIN;
  const end::packet first = std::move(at.packets.front());
  at.packets.pop_front();
  const std::size_t part = std::min(bytes, first.bytes.size());
  if (part != 0) std::memcpy(data, first.bytes.data(), part);
  if (at.is_unix) {
    give_path(first.path, peer, peer_bytes);
    tell_of_room(at);
  } else {
    give_name(first.from, peer, peer_bytes);
  }
  return static_cast<std::ptrdiff_t>(peer == nullptr ? part : first.bytes.size());
}

}  // namespace troupe::io
