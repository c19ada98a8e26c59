#include "io/buffers/kept_input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/buffers/buffer_pool.hpp"
#include "troupe/io/read_ahead.hpp"

namespace troupe::io {
namespace {

std::size_t behind(const operation& read) noexcept { return read.behind & ~read_ahead::is_ahead; }

}  // namespace

void kept_input::put_back(const operation& from) {
  const char* const data = reinterpret_cast<const char*>(from.data);
  if (from.opcode == action::read) {
    insert(behind(from), {data, from.done});
  } else if (from.opcode == action::accept) {
    connections_.push_front(from.result);
  } else {
    datagram datagram{std::string(data, from.done), from.result, {}, 0};
    if (from.address != nullptr) {
      datagram.address_bytes = std::min<socklen_t>(from.address_bytes, sizeof datagram.address);
      std::memcpy(&datagram.address, from.address, datagram.address_bytes);
    }
    datagrams_.push_front(std::move(datagram));
  }
}

void kept_input::insert(std::size_t behind, std::string_view bytes) {
  bytes_.insert(std::min(behind, bytes_.size()), bytes);
}

bool kept_input::give(operation& operation, buffer_pool& leases) noexcept {
  if (operation.opcode == action::read)
    return bytes_.size() > behind(operation) && give_bytes(operation, leases);
  if (operation.opcode == action::accept) {
    if (connections_.empty()) return false;
    operation.result = take_connection();
    return true;
  }
  if (operation.opcode != action::receive || datagrams_.empty()) return false;
  give_datagram(operation);
  return true;
}

int kept_input::take_connection() noexcept {
  if (connections_.empty()) return -1;
  const int first = connections_.front();
  connections_.pop_front();
  return first;
}

bool kept_input::give_bytes(operation& operation, buffer_pool& leases) noexcept {
  if (operation.leased) {
    operation.data = leases.take();
    if (operation.data == nullptr) {
      operation.result = -ENOMEM;
      return true;
    }
    operation.bytes = buffer_pool::buffer_bytes;
  }
  const std::size_t first = behind(operation);
  const std::size_t part = std::min(operation.bytes - operation.done, bytes_.size() - first);
  std::memcpy(operation.data + operation.done, bytes_.data() + first, part);
  bytes_.erase(first, part);
  operation.done += part;
  operation.result = static_cast<int>(std::min<std::size_t>(part, INT32_MAX));
  return !operation.whole || operation.done == operation.bytes;
}

void kept_input::give_datagram(operation& operation) noexcept {
  const datagram& first = datagrams_.front();
  operation.done = std::min(operation.bytes, first.bytes.size());
  std::memcpy(operation.data, first.bytes.data(), operation.done);
  operation.result = first.result;
  if (operation.address != nullptr) {
    operation.address_bytes = std::min(operation.address_bytes, first.address_bytes);
    std::memcpy(operation.address, &first.address, operation.address_bytes);
  }
  datagrams_.pop_front();
}

}  // namespace troupe::io
