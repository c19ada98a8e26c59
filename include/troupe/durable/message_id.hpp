// message_id: the name of one message to a durable actor, 128 bits.
#pragma once

#include "troupe/base/language.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::durable {

// A message from outside has an id that its sender chose, or a random one. A message from a handler
// has an id that is made of the id of the handled message and of a number, so that a handler that
// runs again after a crash sends under the same ids. Zero is no id.
//
// Example:
//     const auto id = troupe::durable::message_id::of("order 17");
//     std::cout << (id == troupe::durable::message_id::of("order 17")) << '\n';  // 1
struct message_id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // From the operating system's random numbers; from the seed in a simulated program. Thread: any.
  static message_id random();
  // The id that belongs to a text of the sender, for instance the number of an order. Two texts
  // have the same id with a probability of 2^-128; this does not protect against texts that were
  // chosen to collide.
  static message_id of(std::string_view text) noexcept;
  // The id of the part with that number of this message.
  message_id part(std::uint64_t number) const noexcept;

  bool is_none() const noexcept { return high == 0 && low == 0; }
  // 32 hexadecimal digits.
  std::string to_string() const;
  auto operator<=>(const message_id&) const = default;
};

}  // namespace troupe::durable

template <>
struct std::hash<troupe::durable::message_id> {
  std::size_t operator()(const troupe::durable::message_id& id) const noexcept {
    return static_cast<std::size_t>(id.low ^ (id.high * 0x9E3779B97F4A7C15u));
  }
};
