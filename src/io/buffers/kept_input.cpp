#include "io/buffers/kept_input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/buffers/buffer_pool.hpp"

namespace troupe::io {

void kept_input::put_back(const operation& from) {
  const char* const data = reinterpret_cast<const char*>(from.data);
  if (from.what == action::read) {
    bytes_.insert(0, data, from.done);
  } else if (from.what == action::accept) {
    connections_.push_front(from.result);
  } else {
    datagram one{std::string(data, from.done), from.result, {}, 0};
    if (from.address != nullptr) {
      one.address_bytes = std::min<socklen_t>(from.address_bytes, sizeof one.address);
      std::memcpy(&one.address, from.address, one.address_bytes);
    }
    datagrams_.push_front(std::move(one));
  }
}

bool kept_input::give(operation& to, buffer_pool& leases) noexcept {
  if (to.what == action::read) return !bytes_.empty() && give_bytes(to, leases);
  if (to.what == action::accept) {
    if (connections_.empty()) return false;
    to.result = take_connection();
    return true;
  }
  if (to.what != action::receive || datagrams_.empty()) return false;
  give_datagram(to);
  return true;
}

int kept_input::take_connection() noexcept {
  if (connections_.empty()) return -1;
  const int first = connections_.front();
  connections_.pop_front();
  return first;
}

bool kept_input::give_bytes(operation& to, buffer_pool& leases) noexcept {
  if (to.leased) {
    to.data = leases.take();
    if (to.data == nullptr) {
      to.result = -ENOMEM;
      return true;
    }
    to.bytes = buffer_pool::buffer_bytes;
  }
  const std::size_t part = std::min(to.bytes - to.done, bytes_.size());
  std::memcpy(to.data + to.done, bytes_.data(), part);
  bytes_.erase(0, part);
  to.done += part;
  to.result = static_cast<int>(std::min<std::size_t>(part, INT32_MAX));
  return !to.whole || to.done == to.bytes;
}

void kept_input::give_datagram(operation& to) noexcept {
  const datagram& first = datagrams_.front();
  to.done = std::min(to.bytes, first.bytes.size());
  std::memcpy(to.data, first.bytes.data(), to.done);
  to.result = first.result;
  if (to.address != nullptr) {
    to.address_bytes = std::min(to.address_bytes, first.address_bytes);
    std::memcpy(to.address, &first.address, to.address_bytes);
  }
  datagrams_.pop_front();
}

}  // namespace troupe::io
