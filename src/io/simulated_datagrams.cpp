// The part of the simulated network that is UDP: each datagram travels for itself, and finds its way by the address.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/simulated_end.hpp"

namespace troupe::io {
namespace {

constexpr std::size_t datagram_max = 65'507, queue_max = 200 * 1024;

}  // namespace

simulated_kernel::end_ptr simulated_kernel::receiver_at(const endpoint& to) const {
  for (const auto& [fd, one] : ends_) {
    if (one->datagrams && one->bound && accepts(one->local, to)) return one;
  }
  return nullptr;
}

// Whom nobody receives, or has room for, is lost.
std::ptrdiff_t simulated_kernel::send_packet(end& from, const void* data, std::size_t bytes, const sockaddr* to, socklen_t to_bytes) {
  if (to == nullptr && from.is != end::state::connected) return -EDESTADDRREQ;
  if (bytes > datagram_max) return -EMSGSIZE;
  name_if_unbound(from);
  const endpoint where = to == nullptr ? from.peer : endpoint_from(to, to_bytes);
  const auto sent = static_cast<std::ptrdiff_t>(bytes);
  const end_ptr at = receiver_at(where);
  if (ended_ || at == nullptr) return sent;
  // What was sent from everywhere was sent from here.
  endpoint sender = from.local;
  if (sender == with_port(endpoint::any(0), sender.port())) sender = endpoint::loopback(sender.port());
  if (sender == endpoint::any_v6(sender.port())) sender = endpoint::loopback_v6(sender.port());
  if (at->is == end::state::connected && at->peer != sender) return sent;
  std::size_t queued = at->under_way + bytes;
  for (const auto& [unused, one] : at->packets) queued += one.size();
  if (queued > queue_max) return sent;
  at->under_way += bytes;
  const std::int64_t due = simulation_.now_ns() + static_cast<std::int64_t>(simulation_.choose(delay_ns_max));
  under_way_.push({due, sent_++, at, news::packet, std::string(static_cast<const char*>(data), bytes), nullptr, sender});
  return sent;
}

std::ptrdiff_t simulated_kernel::receive_packet(end& at, void* data, std::size_t bytes, sockaddr* peer, socklen_t* peer_bytes) {
  if (at.packets.empty()) return -EAGAIN;
  const auto [from, packet] = std::move(at.packets.front());
  at.packets.pop_front();
  const std::size_t part = std::min(bytes, packet.size());
  if (part != 0) std::memcpy(data, packet.data(), part);
  give_name(from, peer, peer_bytes);
  return static_cast<std::ptrdiff_t>(peer == nullptr ? part : packet.size());
}

}  // namespace troupe::io
