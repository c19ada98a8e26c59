#include "troupe/durable/message_id.hpp"

#include <random>

#include "base/mix_bits.hpp"
#include "base/text/hex.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::durable {
namespace {

// FNV-1a of 64 bits, from another beginning for each half.
std::uint64_t hash_of(std::string_view text, std::uint64_t begin) noexcept {
  std::uint64_t value = begin;
  for (const char character : text)
    value = (value ^ static_cast<unsigned char>(character)) * 0x100000001B3u;
  return base::mix_bits(value);
}

// Two sequences of 64 bits each, which begin at random numbers of the operating system.
TROUPE_NOINLINE message_id next_random() {
  const auto begin = [] {
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
  };
  thread_local std::uint64_t high = begin(), low = begin();
  high += base::golden_step;
  low += 0xD1342543DE82EF95u;
  return {base::mix_bits(high), base::mix_bits(low)};
}

}  // namespace

message_id message_id::random() {
  message_id id;
  do {
    id = kit::is_simulated() ? message_id{kit::random_number(), kit::random_number()}
                             : next_random();
  } while (id.is_none());
  return id;
}

message_id message_id::of(std::string_view text) noexcept {
  return {hash_of(text, 0xCBF29CE484222325u), hash_of(text, 0x9AE16A3B2F90404Fu) | 1};
}

message_id message_id::part(std::uint64_t number) const noexcept {
  return {base::mix_bits(high + base::mix_bits(number + base::golden_step)),
          base::mix_bits(low ^ base::mix_bits(high + number)) | 1};
}

std::string message_id::to_string() const {
  std::string text;
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      base::append_hex(text, static_cast<std::uint8_t>(half >> shift));
    }
  }
  return text;
}

}  // namespace troupe::durable
