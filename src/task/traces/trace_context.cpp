#include "troupe/task/trace_context.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/text/digit.hpp"
#include "base/text/hex.hpp"
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

// Zero alone means no number.
template <std::size_t Bytes>
void fill_randomly(std::array<std::uint8_t, Bytes>& bytes) {
  for (std::size_t at = 0; at < Bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t number = random_number() | 1u;
    std::memcpy(bytes.data() + at, &number, sizeof number);
  }
}

// Whether all of the text is lower-case hexadecimal; fills `bytes`, which is half as long.
bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = base::hex_value(text[2 * i]), low = base::hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(16 * high + low);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

// 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01
constexpr std::size_t trace_at = 3, span_at = 36, flags_at = 53, field_length = 55;

// ---- tracestate: name=value,name=value ----

// The standard asks for at least as many characters; entries that are longer than `long_entry` are
// the first to be left out, then the last ones, which are the oldest.
constexpr std::size_t state_length_max = 512, long_entry = 128, entries_max = 32;

bool is_small_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }
using base::is_digit;

bool is_name_part(std::string_view part, std::size_t length_max, bool digit_may_begin) noexcept {
  if (part.empty() || part.size() > length_max) return false;
  if (!is_small_letter(part[0]) && !(digit_may_begin && is_digit(part[0]))) return false;
  return std::ranges::all_of(part, [](char c) {
    return is_small_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '*' || c == '/';
  });
}

// A vendor, or a tenant of a vendor: fw529a3039@dt.
bool is_state_name(std::string_view name) noexcept {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return is_name_part(name, 256, false);
  return is_name_part(name.substr(0, at), 241, true) &&
         is_name_part(name.substr(at + 1), 14, false);
}

bool is_state_value(std::string_view value) noexcept {
  return !value.empty() && value.size() <= 256 &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != '='; });
}

std::string_view without_blanks(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Nothing if the list breaks the rules.
std::vector<std::string_view> entries_in(std::string_view field) {
  std::vector<std::string_view> entries;
  while (!field.empty()) {
    const std::size_t comma = std::min(field.find(','), field.size());
    const std::string_view entry = without_blanks(field.substr(0, comma));
    field.remove_prefix(std::min(comma + 1, field.size()));
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_state_name(entry.substr(0, equals)) ||
        !is_state_value(entry.substr(equals + 1)) || entries.size() == entries_max)
      return {};
    entries.push_back(entry);
  }
  return entries;
}

// Null for none.
std::shared_ptr<const std::string> read_state(std::string_view field) {
  if (field.empty()) return nullptr;
  std::vector<std::string_view> entries = entries_in(field);
  const auto length = [&] {
    std::size_t sum = 0;
    for (const std::string_view entry : entries) sum += entry.size() + 1;
    return sum == 0 ? 0 : sum - 1;
  };
  for (std::size_t i = entries.size(); i-- > 0 && length() > state_length_max;)
    if (entries[i].size() > long_entry)
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
  while (length() > state_length_max) entries.pop_back();
  if (entries.empty()) return nullptr;
  std::string list;
  list.reserve(length());
  for (const std::string_view entry : entries) {
    if (!list.empty()) list += ',';
    list += entry;
  }
  return std::make_shared<const std::string>(std::move(list));
}

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

// A later version may append more behind another `-`; its first four parts are read as the parts
// of version 0, as the standard requires.
std::optional<trace_context> trace_context::parse(std::string_view field,
                                                  std::string_view state) noexcept {
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
  try {
    read.tracestate_ = read_state(state);
  } catch (const std::bad_alloc&) {  // the trace itself is worth more
  }
  return read;
}

std::string trace_context::traceparent() const {
  std::string field;
  field.reserve(field_length);
  field += "00-";
  base::append_hex(field, trace_id);
  field += '-';
  base::append_hex(field, span_id);
  field += sampled ? "-01" : "-00";
  return field;
}

}  // namespace troupe
