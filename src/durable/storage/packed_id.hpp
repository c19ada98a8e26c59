// packed_id: a message_id as the 16 bytes that databases keep.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "troupe/durable/message_id.hpp"

namespace troupe::durable {

using packed_id = std::array<std::byte, 16>;

constexpr packed_id packed(const message_id& id) noexcept {
  packed_id result{};
  for (std::size_t at = 0; at < 8; ++at) {
    result[at] = static_cast<std::byte>(id.high >> (56 - 8 * at));
    result[8 + at] = static_cast<std::byte>(id.low >> (56 - 8 * at));
  }
  return result;
}

// Of bytes that are no id: none.
constexpr message_id unpacked(std::span<const std::byte> from) noexcept {
  message_id id;
  if (from.size() != 16) return id;
  for (std::size_t at = 0; at < 8; ++at) {
    id.high = id.high << 8 | static_cast<std::uint64_t>(from[at]);
    id.low = id.low << 8 | static_cast<std::uint64_t>(from[8 + at]);
  }
  return id;
}

}  // namespace troupe::durable
