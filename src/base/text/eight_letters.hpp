// eight_letters: operations on eight characters of a text at once, in a word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace troupe::base {

inline constexpr std::uint64_t each_letter = 0x0101010101010101;
inline constexpr std::uint64_t high_bits = 0x80 * each_letter;

// The eight characters from `at` on, which exist.
inline std::uint64_t load_eight(const char* at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// At most eight characters, with zeros behind them.
inline std::uint64_t load_few(std::string_view text) noexcept {
  const std::size_t size = text.size();
  const char* const at = text.data();
  if (size >= 8) return load_eight(at);
  if (size >= 4) {
    std::uint32_t first, last;  // which overlap
    std::memcpy(&first, at, sizeof first);
    std::memcpy(&last, at + size - sizeof last, sizeof last);
    static_assert(std::endian::native == std::endian::little);
    return first | std::uint64_t{last} << (8 * (size - sizeof last));
  }
  std::uint64_t word = 0;
  for (std::size_t i = size; i-- > 0;) word = word << 8 | static_cast<unsigned char>(at[i]);
  return word;
}

// Whether the two are the same but for the case of ASCII letters.
constexpr bool is_same_but_case(std::uint64_t word, std::uint64_t other) noexcept {
  constexpr std::uint64_t case_bits = 0x20 * each_letter;
  const std::uint64_t differing = word ^ other;
  if (differing == 0) return true;
  if ((differing & ~case_bits) != 0) return false;
  const std::uint64_t lowered = word | case_bits, seven = lowered & ~high_bits;
  const std::uint64_t from_a = seven + (0x80 - 'a') * each_letter,
                      behind_z = seven + (0x80 - 'z' - 1) * each_letter;
  const std::uint64_t letters = from_a & ~behind_z & ~lowered & high_bits;
  return (differing & ~(letters >> 2)) == 0;
}

// Whether one of the eight is that character, or is less than `bound`, which is at most 128.
constexpr bool has_letter(std::uint64_t word, char wanted) noexcept {
  const std::uint64_t zero_there = word ^ each_letter * static_cast<unsigned char>(wanted);
  return ((zero_there - each_letter) & ~zero_there & high_bits) != 0;
}
constexpr bool has_less(std::uint64_t word, unsigned char bound) noexcept {
  return ((word - each_letter * bound) & ~word & high_bits) != 0;
}
constexpr bool has_beyond_ascii(std::uint64_t word) noexcept { return (word & high_bits) != 0; }

}  // namespace troupe::base
