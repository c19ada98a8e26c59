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

// Which of `count` parts a key belongs to: by the fraction of its multiple of the golden ratio,
// which spreads keys that follow each other, or that leave out each second one, evenly.
constexpr std::uint32_t part_of(std::uint64_t key, std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>((key * golden_step >> 32) * count >> 32);
}

}  // namespace troupe::base
