#include "troupe/task/trace_context.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>

#include "task/running/running.hpp"
#include "task/running/runtime_state.hpp"
#include "troupe/base/platform.hpp"

namespace troupe {
namespace {

// xoroshiro128++ 1.0 of Blackman and Vigna: 16 bytes for each thread, where std::mt19937_64 takes
// 2,504.
class generator {
 public:
  bool is_seeded() const noexcept { return (low_ | high_) != 0; }
  void seed() {
    std::random_device source;
    low_ = std::uint64_t{source()} << 32 | source();
    high_ = (std::uint64_t{source()} << 32 | source()) | 1;  // not all bits may be zero
  }
  std::uint64_t next() noexcept {
    const std::uint64_t number = std::rotl(low_ + high_, 17) + low_;
    const std::uint64_t mixed = high_ ^ low_;
    low_ = std::rotl(low_, 49) ^ mixed ^ mixed << 21;
    high_ = std::rotl(mixed, 28);
    return number;
  }

 private:
  std::uint64_t low_ = 0, high_ = 0;
};

// Never inlined: a coroutine must not keep the address of the generator across a suspension.
TROUPE_NOINLINE std::uint64_t random_number() {
  if (const tasks::runtime_state* const simulation = tasks::simulation_here())
    return simulation->runtime.choose_number();
  thread_local constinit generator own;
  if (!own.is_seeded()) own.seed();
  return own.next();
}

// Zero alone stands for no number.
template <std::size_t Bytes>
void fill_randomly(std::array<std::uint8_t, Bytes>& bytes) {
  for (std::size_t at = 0; at < Bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t number = random_number() | 1u;
    std::memcpy(bytes.data() + at, &number, sizeof number);
  }
}

int value_of(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Whether all of the text is lower-case hexadecimal; fills `bytes`, which is half as long.
bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return true;
}

void append_hex(std::string& to, std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  for (const std::uint8_t byte : bytes) {
    to += digits[byte / 16];
    to += digits[byte % 16];
  }
}

bool is_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

// 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01
constexpr std::size_t trace_at = 3, span_at = 36, flags_at = 53, field_length = 55;

}  // namespace

trace_context trace_context::begin() {
  trace_context trace;
  fill_randomly(trace.trace_id);
  fill_randomly(trace.span_id);
  return trace;
}

trace_context trace_context::child() const {
  trace_context trace = *this;
  fill_randomly(trace.span_id);
  return trace;
}

// A later version may append more behind another `-`; its first four parts are read as those of
// version 0, as the standard says.
std::optional<trace_context> trace_context::parse(std::string_view field) noexcept {
  if (field.size() < field_length || field[trace_at - 1] != '-' || field[span_at - 1] != '-' ||
      field[flags_at - 1] != '-')
    return std::nullopt;
  std::array<std::uint8_t, 1> version{}, flags{};
  trace_context read;
  if (!read_hex(field, version) || !read_hex(field.substr(trace_at), read.trace_id) ||
      !read_hex(field.substr(span_at), read.span_id) || !read_hex(field.substr(flags_at), flags))
    return std::nullopt;
  const bool has_more = field.size() > field_length;
  if (version[0] == 0xff || (has_more && (version[0] == 0 || field[field_length] != '-')) ||
      is_zero(read.trace_id) || is_zero(read.span_id))
    return std::nullopt;
  read.sampled = (flags[0] & 1) != 0;
  return read;
}

std::string trace_context::traceparent() const {
  std::string field;
  field.reserve(field_length);
  field += "00-";
  append_hex(field, trace_id);
  field += '-';
  append_hex(field, span_id);
  field += sampled ? "-01" : "-00";
  return field;
}

}  // namespace troupe
