#include "postgres/values/types.hpp"
#include "base/text/hex.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace troupe::postgres {

bool is_text(type value_type) noexcept {
  switch (value_type) {
    case type::character:
    case type::name:
    case type::text:
    case type::json:
    case type::unknown:
    case type::bpchar:
    case type::varchar:
      return true;
    default:
      return false;
  }
}

bool is_known(type value_type) noexcept {
  switch (value_type) {
    case type::boolean:
    case type::bytes:
    case type::int8:
    case type::int2:
    case type::int4:
    case type::oid:
    case type::float4:
    case type::float8:
    case type::date:
    case type::timestamp:
    case type::timestamptz:
    case type::numeric:
    case type::nothing:
    case type::uuid:
    case type::jsonb:
      return true;
    default:
      return is_text(value_type);
  }
}

std::string real_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// The header has the number of digits, the weight of the first one, sign and scale; a digit is one
// to the base of 10,000.
std::string numeric_text(std::string_view bytes) {
  constexpr std::uint16_t negative = 0x4000, infinite = 0xd000, negative_infinite = 0xf000;
  const auto at = [&](std::size_t word) { return from_network<std::uint16_t>(&bytes[2 * word]); };
  const int digits = at(0), weight = static_cast<std::int16_t>(at(1)), scale = at(3);
  const std::uint16_t sign = at(2);
  if (sign != 0 && sign != negative) {
    if (sign == infinite) return "Infinity";
    return sign == negative_infinite ? "-Infinity" : "NaN";
  }
  const auto digit = [&](int place) -> unsigned {
    const int index = weight - place;
    return index < 0 || index >= digits ? 0 : at(4 + static_cast<std::size_t>(index));
  };
  std::array<char, 8> four{};
  std::string text = sign == negative ? "-" : "";
  text += std::to_string(digit(std::max(weight, 0)));
  for (int place = weight - 1; place >= 0; --place) {
    std::snprintf(four.data(), four.size(), "%04u", digit(place) % 10'000);
    text += four.data();
  }
  if (scale == 0) return text;
  text += '.';
  const std::size_t end = text.size() + static_cast<std::size_t>(scale);
  for (int place = -1; text.size() < end; --place) {
    std::snprintf(four.data(), four.size(), "%04u", digit(place) % 10'000);
    text += four.data();
  }
  text.resize(end);
  return text;
}

std::string uuid_text(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    base::append_hex(text, static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    if (text.find_first_not_of('0', dot + 1) != std::string_view::npos) return std::nullopt;
    text = text.substr(0, dot);
  }
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool holds_whole(double number, std::string_view text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  if (text.find_first_not_of('0', std::min(dot + 1, text.size())) != std::string_view::npos)
    return true;
  if (text.find_first_not_of("-0123456789") < dot) return true;  // infinity and NaN
  constexpr std::size_t longest = 320;                           // of a double without a fraction
  std::array<char, longest> whole{};
  const auto end =
      std::to_chars(whole.data(), whole.data() + whole.size(), number, std::chars_format::fixed, 0)
          .ptr;
  const std::string_view digits(whole.data(), static_cast<std::size_t>(end - whole.data()));
  return digits == text.substr(0, dot) || number == 0;
}

std::optional<std::string> bytes_of_hex(std::string_view text) {
  if (!text.starts_with("\\x") || text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 2; i < text.size(); i += 2) {
    unsigned char byte = 0;
    const char* const end = text.data() + i + 2;
    if (std::from_chars(text.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

namespace {

// Reads numbers and the signs between them from the front of a text.
class reader {
 public:
  explicit reader(std::string_view text) noexcept : text_(text) {}
  int number() noexcept {
    int value = 0;
    const auto [end, failed] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    good = good && failed == std::errc() && value >= 0;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  bool takes(char sign) noexcept {
    if (text_.empty() || text_.front() != sign) return false;
    text_.remove_prefix(1);
    return true;
  }
  void needs(char sign) noexcept { good = takes(sign) && good; }
  bool is_done() const noexcept { return text_.empty(); }
  // The digits behind the point, as microseconds.
  int fraction() noexcept {
    int value = 0, digits = 0;
    while (!text_.empty() && text_.front() >= '0' && text_.front() <= '9') {
      if (digits < 6) value = value * 10 + (text_.front() - '0');
      if (digits < 6) ++digits;
      text_.remove_prefix(1);
    }
    for (; digits < 6; ++digits) value *= 10;
    return value;
  }
  bool good = true;

 private:
  std::string_view text_;
};

}  // namespace

// std::chrono's calendar ends with the year 32767. The calendar repeats after 400 years.
namespace {

constexpr std::int64_t cycle_years = 400, cycle_days = 146'097;

constexpr std::int64_t floor_of(std::int64_t dividend, std::int64_t by) noexcept {
  return dividend / by - (dividend % by < 0 ? 1 : 0);
}

std::optional<std::chrono::sys_days> day_of(std::int64_t year, int month, int day) noexcept {
  using namespace std::chrono;
  const std::int64_t cycles = floor_of(year, cycle_years);
  const auto within = static_cast<int>(year - cycles * cycle_years);
  const year_month_day date = std::chrono::year(within) / month / day;
  if (!date.ok()) return std::nullopt;
  return sys_days(date) + days(cycles * cycle_days);
}

struct civil_date {
  std::int64_t year;
  unsigned month, day;
};
civil_date date_of(std::chrono::sys_days at) noexcept {
  using namespace std::chrono;
  const std::int64_t cycles = floor_of(at.time_since_epoch().count(), cycle_days);
  const year_month_day date(at - days(cycles * cycle_days));
  return {static_cast<int>(date.year()) + cycles * cycle_years, static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day())};
}

}  // namespace

std::optional<database::parts::micro_time> time_of_text(std::string_view text) noexcept {
  using namespace std::chrono;
  const bool is_before_christ = text.ends_with(" BC");
  if (is_before_christ) text.remove_suffix(3);
  reader from(text);
  const int of_year = from.number();
  from.needs('-');
  const int of_month = from.number();
  from.needs('-');
  const int of_day = from.number();
  if (!from.good) return std::nullopt;
  // There is no year 0: 1 BC is before 1.
  const auto day = day_of(is_before_christ ? 1 - std::int64_t{of_year} : of_year, of_month, of_day);
  if (!day) return std::nullopt;
  microseconds of_time{0};
  if (!from.is_done()) {
    from.needs(' ');
    of_time += hours(from.number());
    from.needs(':');
    of_time += minutes(from.number());
    from.needs(':');
    of_time += seconds(from.number());
    if (from.takes('.')) of_time += microseconds(from.fraction());
    if (from.good && !from.is_done()) {
      const bool west = from.takes('-');
      if (!west) from.needs('+');
      seconds offset = hours(from.number());
      if (from.takes(':')) offset += minutes(from.number());
      if (from.takes(':')) offset += seconds(from.number());
      west ? of_time += offset : of_time -= offset;
    }
    if (!from.good || !from.is_done()) return std::nullopt;
  }
  const auto begin = database::parts::as_micro_time(*day);
  std::int64_t sum = 0;
  if (!begin || __builtin_add_overflow(begin->time_since_epoch().count(), of_time.count(), &sum))
    return std::nullopt;
  return database::parts::micro_time(microseconds(sum));
}

std::string text_of_time(database::parts::micro_time at) {
  using namespace std::chrono;
  const sys_days day = floor<days>(at);
  const civil_date date = date_of(day);
  const hh_mm_ss time(at - day);
  const bool is_before_christ = date.year <= 0;
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04lld-%02u-%02u %02d:%02d:%02d.%06d+00%s",
                static_cast<long long>(is_before_christ ? 1 - date.year : date.year), date.month,
                date.day, static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()), is_before_christ ? " BC" : "");
  return text.data();
}

}  // namespace troupe::postgres
