#include "troupe/postgres/answer.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "postgres/values/types.hpp"
#include "troupe/database/error.hpp"

namespace troupe::postgres {
namespace {

using database::failure;
using database::parts::micro_time;

const char* name_of(type value_type) noexcept {
  switch (value_type) {
    case type::boolean:
      return "a boolean";
    case type::bytes:
      return "bytes";
    case type::int2:
    case type::int4:
    case type::int8:
    case type::oid:
      return "an integer";
    case type::float4:
    case type::float8:
    case type::numeric:
      return "a number";
    case type::date:
    case type::timestamp:
    case type::timestamptz:
      return "a time";
    default:
      return "a text";
  }
}

template <class T>
std::optional<T> parse(std::string_view text) noexcept {
  T value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

answer::~answer() { PQclear(result_); }

// Small answers take little memory, and large ones few pieces.
char* row_store::reserve(std::size_t bytes) {
  constexpr std::size_t smallest = 512, largest = 64 * 1024;
  if (pieces_.empty() || piece_bytes_ - used_ < bytes) {  // a row may have no columns
    const std::size_t next = std::clamp(piece_bytes_ * 2, smallest, largest);
    piece_bytes_ = std::max(next, bytes);
    pieces_.push_back(std::make_unique_for_overwrite<char[]>(piece_bytes_));
    used_ = 0;
    bytes_ += piece_bytes_;
  }
  char* const place = pieces_.back().get() + used_;
  used_ += bytes;
  return place;
}

void row_store::add(const void* result) {
  const auto* const object = static_cast<const PGresult*>(result);
  const int columns = PQnfields(object);
  std::size_t bytes = 0;
  for (int i = 0; i < columns; ++i)
    bytes += sizeof(std::int32_t) + static_cast<std::size_t>(PQgetlength(object, 0, i));
  char* at = reserve(bytes);
  rows_.push_back(at);
  bytes_ += sizeof(char*);
  for (int i = 0; i < columns; ++i) {
    const std::int32_t length = PQgetisnull(object, 0, i) != 0 ? -1 : PQgetlength(object, 0, i);
    std::memcpy(at, &length, sizeof length);
    at += sizeof length;
    if (length <= 0) continue;
    std::memcpy(at, PQgetvalue(object, 0, i), static_cast<std::size_t>(length));
    at += length;
  }
}

void row_store::clear() noexcept { *this = row_store(); }

void answer::go_to(std::size_t row) {
  values_.resize(static_cast<std::size_t>(columns()));
  const char* at = rows_.row(row);
  for (cell& next : values_) {
    std::memcpy(&next.bytes, at, sizeof next.bytes);
    at += sizeof next.bytes;
    next.data = at;
    if (next.bytes > 0) at += next.bytes;
  }
}
std::int64_t answer::changed_rows() const noexcept {
  const std::string_view all = command();
  if (all.starts_with("SELECT") || all.starts_with("FETCH")) return changed_before;
  return changed_before + parse<std::int64_t>(PQcmdTuples(result_)).value_or(0);
}
std::string_view answer::command() const noexcept { return PQcmdStatus(result_); }

bool answer::begins_copy() const noexcept {
  const ExecStatusType is = PQresultStatus(result_);
  return is == PGRES_COPY_IN || is == PGRES_COPY_OUT;
}

int answer::columns() const noexcept { return PQnfields(result_); }
std::string_view answer::name(int column) const noexcept { return PQfname(result_, column); }
bool answer::is_null(int column) const noexcept {
  return values_[static_cast<std::size_t>(column)].bytes < 0;
}
std::string_view answer::raw(int column) const noexcept {
  const cell& value = values_[static_cast<std::size_t>(column)];
  return {value.data, static_cast<std::size_t>(std::max(value.bytes, 0))};
}

void answer::refuse_kind(int column, const char* needed) const {
  const type value_type{PQftype(result_, column)};
  throw database::error(failure::conversion, 0,
                        "troupe: the column `" + std::string(name(column)) + "` is " +
                            name_of(value_type) + "; " + needed + " is needed");
}

std::int64_t answer::integer(int column) const {
  const type value_type{PQftype(result_, column)};
  const std::string_view value = raw(column);
  const bool binary = PQfformat(result_, column) == 1;
  switch (value_type) {
    case type::int2:
      if (binary) return from_network<std::int16_t>(value.data());
      break;
    case type::int4:
      if (binary) return from_network<std::int32_t>(value.data());
      break;
    case type::int8:
      if (binary) return from_network<std::int64_t>(value.data());
      break;
    case type::oid:
      if (binary) return from_network<std::uint32_t>(value.data());
      break;
    case type::boolean:
      return binary ? value.front() != 0 : value.front() == 't';
    case type::numeric:
      break;
    default:
      refuse_kind(column, "an integer");
  }
  const auto whole =
      whole_number(binary ? std::string_view(converted_ = numeric_text(value)) : value);
  if (!whole) refuse_kind(column, "an integer");
  return *whole;
}

double answer::real_of_decimal(int column, std::string_view text) const {
  const auto number = parse<double>(text);
  if (!number || !holds_whole(*number, text)) database::parts::refuse_number(name(column));
  return *number;
}

double answer::real(int column) const {
  const type value_type{PQftype(result_, column)};
  const std::string_view value = raw(column);
  const bool binary = PQfformat(result_, column) == 1;
  switch (value_type) {
    case type::float4:
      if (binary) return std::bit_cast<float>(from_network<std::uint32_t>(value.data()));
      if (const auto number = parse<float>(value)) return *number;  // not the double of that text
      refuse_kind(column, "a number");
    case type::float8:
      if (binary) return std::bit_cast<double>(from_network<std::uint64_t>(value.data()));
      break;
    case type::numeric:
      if (binary) {
        converted_ = numeric_text(value);
        return real_of_decimal(column, converted_);
      }
      return real_of_decimal(column, value);
    case type::int2:
    case type::int4:
    case type::int8: {
      const auto number = database::parts::as_real<double>(integer(column));
      if (!number) database::parts::refuse_number(name(column));
      return *number;
    }
    default:
      refuse_kind(column, "a number");
  }
  const auto number = parse<double>(value);
  if (!number) refuse_kind(column, "a number");
  return *number;
}

std::string_view answer::text(int column) const {
  const type value_type{PQftype(result_, column)};
  const std::string_view value = raw(column);
  if (is_text(value_type)) return value;
  const bool binary = PQfformat(result_, column) == 1;
  switch (value_type) {
    case type::boolean:
    case type::bytes:
    case type::int2:
    case type::int4:
    case type::int8:
    case type::oid:
    case type::float4:
    case type::float8:
    case type::date:
    case type::timestamp:
    case type::timestamptz:
      refuse_kind(column, "a text");
    case type::numeric:
      return binary ? std::string_view(converted_ = numeric_text(value)) : value;
    case type::uuid:
      return binary ? std::string_view(converted_ = uuid_text(value)) : value;
    case type::jsonb:  // behind the number of its version
      return binary ? value.substr(1) : value;
    default:
      return value;
  }
}

std::span<const std::byte> answer::bytes(int column) const {
  if (type{PQftype(result_, column)} != type::bytes) refuse_kind(column, "bytes");
  std::string_view value = raw(column);
  if (PQfformat(result_, column) == 0) {
    auto read = bytes_of_hex(value);
    if (!read) refuse_kind(column, "bytes in the form `hex`");
    value = converted_ = std::move(*read);
  }
  return std::as_bytes(std::span(value));
}

micro_time answer::time(int column) const {
  const type value_type{PQftype(result_, column)};
  const std::string_view value = raw(column);
  const bool binary = PQfformat(result_, column) == 1;
  if (value_type == type::int8) return micro_time(std::chrono::microseconds(integer(column)));
  if (value_type != type::date && value_type != type::timestamp && value_type != type::timestamptz)
    refuse_kind(column, "a time");
  if (!binary) {
    const auto read = time_of_text(value);
    if (!read) refuse_kind(column, "a time in the form `ISO` that microseconds can hold");
    return *read;
  }
  if (value_type == type::date) {
    const std::int32_t day = from_network<std::int32_t>(value.data());
    const auto at =
        database::parts::as_micro_time(std::chrono::sys_days(std::chrono::days(day + zero_days)));
    // Infinity is the largest number, and the smallest one.
    if (day == INT32_MIN || day == INT32_MAX || !at)
      refuse_kind(column, "a time that microseconds can hold");
    return *at;
  }
  const auto since = from_network<std::int64_t>(value.data());
  std::int64_t us = 0;
  // Infinity is the largest number, and the smallest one.
  if (since == INT64_MIN || __builtin_add_overflow(since, zero_us, &us))
    refuse_kind(column, "a time that microseconds can hold");
  return micro_time(std::chrono::microseconds(us));
}

}  // namespace troupe::postgres
