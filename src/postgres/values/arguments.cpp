#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/text/hex.hpp"
#include "postgres/values/types.hpp"
#include "troupe/database/error.hpp"
#include "troupe/postgres/answer.hpp"

namespace troupe::postgres {

using database::parts::micro_time;

void arguments::begin(std::span<const std::uint32_t> types) {
  types_ = types;
  values_.assign(types.size(), nullptr);
  sizes_.assign(types.size(), 0);
  formats_.assign(types.size(), 0);
  numbers_.resize(types.size());
  texts_.clear();
}

void arguments::refuse(int number, const char* why) {
  throw database::error(database::failure::conversion, 0,
                        "troupe: postgres: parameter " + std::to_string(number) + why);
}

void arguments::set(int number, const char* data, std::size_t bytes, bool binary) noexcept {
  const auto at = static_cast<std::size_t>(number) - 1;
  values_[at] = data;
  sizes_[at] = static_cast<int>(bytes);
  formats_[at] = binary ? 1 : 0;
}

template <class Bits>
void arguments::set_bits(int number, Bits bits) noexcept {
  if constexpr (std::endian::native == std::endian::little && sizeof(Bits) > 1)
    bits = std::byteswap(bits);
  std::array<char, 8>& bytes = numbers_[static_cast<std::size_t>(number) - 1];
  std::memcpy(bytes.data(), &bits, sizeof bits);
  set(number, bytes.data(), sizeof bits, true);
}

void arguments::set_made_text(int number, std::string text) {
  const std::string& kept = texts_.emplace_back(std::move(text));
  set(number, kept.c_str(), kept.size(), is_text(type{type_of(number)}));
}

void arguments::bind_null(int number) noexcept { set(number, nullptr, 0, false); }

void arguments::bind_integer(int number, std::int64_t value) {
  constexpr const char* range = " is out of the range of the parameter's type";
  switch (postgres::type{type_of(number)}) {
    case type::int8:
      return set_bits(number, value);
    case type::int4:
      if (!std::in_range<std::int32_t>(value)) refuse(number, range);
      return set_bits(number, static_cast<std::int32_t>(value));
    case type::int2:
      if (!std::in_range<std::int16_t>(value)) refuse(number, range);
      return set_bits(number, static_cast<std::int16_t>(value));
    case type::oid:
      if (!std::in_range<std::uint32_t>(value)) refuse(number, range);
      return set_bits(number, static_cast<std::uint32_t>(value));
    case type::boolean:
      if (value != 0 && value != 1) refuse(number, " is a truth value: give it true or false");
      return set_bits(number, static_cast<std::int8_t>(value));
    default:
      return set_made_text(number, std::to_string(value));
  }
}

void arguments::bind_real(int number, double value) {
  switch (postgres::type{type_of(number)}) {
    case type::float8:
      return set_bits(number, std::bit_cast<std::uint64_t>(value));
    case type::float4:
      if (const auto single = database::parts::as_real<float>(value))
        return set_bits(number, std::bit_cast<std::uint32_t>(*single));
      database::parts::refuse_number_parameter(number);
    default:
      return set_made_text(number, real_text(value));
  }
}

// A value that the server reads by its text ends at a zero byte, where such a value would be cut.
void arguments::bind_text(int number, std::string_view text) {
  const postgres::type value_type{type_of(number)};
  if (value_type == type::bytes)
    refuse(number, " is of type bytea: give it a std::vector<std::byte>");
  if (text.size() > std::numeric_limits<int>::max()) refuse(number, " is longer than 2 GiB");
  if (is_text(value_type))
    return set(number, text.data() == nullptr ? "" : text.data(), text.size(), true);
  if (text.find('\0') != std::string_view::npos) refuse(number, " has a zero byte");
  set_made_text(number, std::string(text));
}

void arguments::bind_bytes(int number, std::span<const std::byte> bytes) {
  if (postgres::type{type_of(number)} != type::bytes)
    refuse(number, " is bytes, and the parameter is not of type bytea");
  if (bytes.size() > std::numeric_limits<int>::max()) refuse(number, " is longer than 2 GiB");
  // A null pointer would be NULL.
  set(number, bytes.empty() ? "" : reinterpret_cast<const char*>(bytes.data()), bytes.size(), true);
}

void arguments::bind_time(int number, micro_time at) {
  const std::int64_t us = at.time_since_epoch().count();
  std::int64_t since = 0;
  switch (postgres::type{type_of(number)}) {
    case type::int8:
      return set_bits(number, us);
    case type::timestamp:
    case type::timestamptz:
      if (__builtin_sub_overflow(us, zero_us, &since) || since == INT64_MIN)  // which is -infinity
        refuse(number, " is too long ago");
      return set_bits(number, since);
    case type::date: {
      const auto day = std::chrono::floor<std::chrono::days>(at);
      if (day != at) refuse(number, " is a date: give it a time at the beginning of a day in UTC");
      return set_bits(number,
                      static_cast<std::int32_t>(day.time_since_epoch().count() - zero_days));
    }
    default:
      return set_made_text(number, text_of_time(at));
  }
}

void arguments::bind_array(int number, const array_elements& elements) {
  if (is_known(postgres::type{type_of(number)}))
    refuse(number, " is an array, and the parameter is not");
  set_made_text(number, elements.text());
}

void array_elements::add(std::string_view element) {
  if (text_.size() > 1) text_ += ',';
  text_ += element;
}
void array_elements::bind_null(int) { add("NULL"); }
void array_elements::bind_integer(int, std::int64_t value) { add(std::to_string(value)); }
void array_elements::bind_real(int, double value) { add(real_text(value)); }
void array_elements::bind_text(int number, std::string_view text) {
  if (postgres::type{type_} == type::bytes_array)
    arguments::refuse(number, " is of type bytea[]: give it elements of std::vector<std::byte>");
  if (text.find('\0') != std::string_view::npos)
    arguments::refuse(number, " has an element with a zero byte");
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  add(quoted + '"');
}
void array_elements::bind_bytes(int number, std::span<const std::byte> bytes) {
  if (postgres::type{type_} != type::bytes_array && type_ < first_own_type)
    arguments::refuse(number, " has elements of bytes, and is not of type bytea[]");
  std::string quoted = "\"\\\\x";
  base::append_hex(quoted, bytes);
  add(quoted + '"');
}
void array_elements::bind_time(int number, micro_time at) {
  if (postgres::type{type_} == type::int8_array)
    return bind_integer(number, at.time_since_epoch().count());
  add('"' + text_of_time(at) + '"');
}

}  // namespace troupe::postgres
