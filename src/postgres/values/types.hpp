// types: the PostgreSQL types that this component lists by number, and their values.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/database/rows.hpp"

namespace troupe::postgres {

// The numbers are a part of the server's protocol (its file pg_type.dat).
enum class type : std::uint32_t {
  boolean = 16,
  bytes = 17,
  character = 18,
  name = 19,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  oid = 26,
  json = 114,
  float4 = 700,
  float8 = 701,
  unknown = 705,
  bytes_array = 1001,
  int8_array = 1016,
  bpchar = 1042,
  varchar = 1043,
  date = 1082,
  timestamp = 1114,
  timestamptz = 1184,
  numeric = 1700,
  nothing = 2278,
  uuid = 2950,
  jsonb = 3802,
};

// Whether the binary form of such values is read here. Otherwise they are read by their text.
bool is_known(type value_type) noexcept;
// Whether the binary form is the text itself.
bool is_text(type value_type) noexcept;

// The numbers from here on are of types that a database has itself: domains, enumerations and so
// on.
inline constexpr std::uint32_t first_own_type = 16'384;
// The text of a number as the server reads it.
std::string real_text(double value);

// Numbers travel with the highest byte first.
template <class T>
T from_network(const char* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1)
    value = std::byteswap(value);
  return value;
}

// 2000-01-01, from which the server counts, in microseconds and in days since 1970.
inline constexpr std::int64_t zero_us = 946'684'800'000'000;
inline constexpr std::int64_t zero_days = 10'957;

// The text of a numeric in its binary form: "-12.340".
std::string numeric_text(std::string_view bytes);
std::string uuid_text(std::string_view bytes);
// The integer that a numeric is, if it is one of 64 bits: of "12.00" it is 12.
std::optional<std::int64_t> whole_number(std::string_view text) noexcept;
// The bytes of "\x00ff"; empty if the text is not so.
std::optional<std::string> bytes_of_hex(std::string_view text);
// Whether the number is the whole number of a decimal text; true for a text with a fraction.
bool holds_whole(double number, std::string_view text);
// The time of a text such as "2024-02-29 12:30:00.25+02". Time of day and zone may be missing, the
// year may be any, and BC may follow; without a zone the time is in UTC. Nothing for infinity, and
// for a time that microseconds cannot hold.
std::optional<database::parts::micro_time> time_of_text(std::string_view text) noexcept;
// The same in the other direction, in UTC.
std::string text_of_time(database::parts::micro_time at);

}  // namespace troupe::postgres
