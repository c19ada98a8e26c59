// mix_bits: the last steps of splitmix64. Each bit of the result depends on all bits of the number,
// and two numbers never have one result. Not for secrets.
#pragma once

#include <cstdint>

namespace troupe::base {

// The number that splitmix64 adds to its state for each result: the golden ratio, as a part of
// 2^64.
inline constexpr std::uint64_t golden_step = 0x9E3779B97F4A7C15u;

constexpr std::uint64_t mix_bits(std::uint64_t number) noexcept {
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9u;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
  return number ^ (number >> 31);
}

}  // namespace troupe::base
