#include "http/client/cookies/set_cookie.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/text/digit.hpp"
#include "http/values/cookie_pairs.hpp"
#include "http/values/value_parts.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

namespace {

using namespace std::chrono;

using base::is_digit;

// The characters that separate the words of a date; ':' is inside of them.
bool is_between(char character) noexcept {
  const auto byte = static_cast<unsigned char>(character);
  return byte == 0x09 || (byte >= 0x20 && byte <= 0x2F) || (byte >= 0x3B && byte <= 0x40) ||
         (byte >= 0x5B && byte <= 0x60) || (byte >= 0x7B && byte <= 0x7E);
}

// Takes a number of `least` to `most` digits, behind which is no further digit.
std::optional<int> take_number(std::string_view& left, std::size_t least, std::size_t most) {
  const auto end = std::ranges::find_if_not(left, is_digit);
  const auto digits = static_cast<std::size_t>(end - left.begin());
  if (digits < least || digits > most) return std::nullopt;
  int value = 0;
  std::from_chars(left.data(), left.data() + digits, value);
  left.remove_prefix(digits);
  return value;
}

struct date_parts {
  std::optional<int> day, year;
  std::optional<unsigned> month;
  std::optional<seconds> clock;

  bool take_clock(std::string_view word) {
    std::array<int, 3> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::optional<int> part = take_number(word, 1, 2);
      if (!part || (i < 2 && !word.starts_with(':'))) return false;
      if (i < 2) word.remove_prefix(1);
      parts[i] = *part;
    }
    if (parts[0] > 23 || parts[1] > 59 || parts[2] > 59) return false;
    clock = hours(parts[0]) + minutes(parts[1]) + seconds(parts[2]);
    return true;
  }
  bool take_month(std::string_view word) {
    constexpr std::string_view names = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (word.size() < 3) return false;
    for (unsigned i = 0; i < 12; ++i) {
      if (!same_word(word.substr(0, 3), names.substr(std::size_t{3} * i, 3))) continue;
      month = i + 1;
      return true;
    }
    return false;
  }
  // Each word is the first part that it can be and that is not known yet.
  void take(std::string_view word) {
    if (!clock && take_clock(word)) return;
    if (std::string_view rest = word; !day) {
      day = take_number(rest, 1, 2);
      if (day) return;
    }
    if (!month && take_month(word)) return;
    if (std::string_view rest = word; !year) {
      year = take_number(rest, 2, 4);
      if (year && *year >= 70 && *year <= 99) *year += 1900;
      if (year && *year <= 69) *year += 2000;
    }
  }
};

// Never later than the latest time of the clock.
set_cookie::time_point after(set_cookie::time_point now, std::int64_t span) {
  constexpr std::int64_t most = 100LL * 365 * 24 * 3600;
  return now + seconds(std::clamp<std::int64_t>(span, -1, most));
}

// Max-Age; nothing for text that is no number.
std::optional<set_cookie::time_point> read_max_age(std::string_view text,
                                                   set_cookie::time_point now) {
  const bool is_minus = text.starts_with('-');
  if (is_minus) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  std::int64_t value = 0;
  const auto [rest, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad == std::errc::result_out_of_range) value = INT64_MAX;
  return after(now, is_minus || value == 0 ? -1 : value);
}

bool is_control(char character) noexcept {
  return (static_cast<unsigned char>(character) < ' ' && character != '\t') || character == 0x7F;
}

std::string domain_of(std::string_view value) {
  if (value.starts_with('.')) value.remove_prefix(1);
  std::string domain(value);
  for (char& character : domain)
    character =
        character >= 'A' && character <= 'Z' ? static_cast<char>(character | 0x20) : character;
  return domain;
}

class attributes {
 public:
  attributes(set_cookie& cookie, set_cookie::time_point now) : cookie_(cookie), now_(now) {}
  // The last one of a name counts.
  void take(std::string_view name, std::string_view value) {
    if (same_word(name, "Expires")) {
      if (const auto at = read_cookie_date(value)) expires_ = at;
    } else if (same_word(name, "Max-Age")) {
      if (const auto at = read_max_age(value, now_)) until_ = at;
    } else if (same_word(name, "Domain")) {
      cookie_.domain = domain_of(value);
    } else if (same_word(name, "Path")) {
      cookie_.has_path = value.starts_with('/');
      cookie_.path = cookie_.has_path ? value : std::string_view();
    } else if (same_word(name, "Secure")) {
      cookie_.secure = true;
    } else if (same_word(name, "HttpOnly")) {
      cookie_.http_only = true;
    } else if (same_word(name, "SameSite")) {
      cookie_.site = site_of(value);
    }
  }
  void finish() { cookie_.expires = until_ ? until_ : expires_; }

 private:
  static std::optional<same_site> site_of(std::string_view value) {
    if (same_word(value, "Strict")) return same_site::strict;
    if (same_word(value, "Lax")) return same_site::lax;
    if (same_word(value, "None")) return same_site::none;
    return std::nullopt;
  }
  set_cookie& cookie_;
  const set_cookie::time_point now_;
  std::optional<set_cookie::time_point> expires_, until_;
};

}  // namespace

std::optional<set_cookie::time_point> read_cookie_date(std::string_view text) noexcept {
  date_parts parts;
  while (!text.empty()) {
    const auto begin = std::ranges::find_if_not(text, is_between);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    const auto end = std::ranges::find_if(text, is_between);
    const auto bytes = static_cast<std::size_t>(end - text.begin());
    if (bytes > 0) parts.take(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  if (!parts.day || !parts.month || !parts.year || !parts.clock) return std::nullopt;
  const year_month_day date{std::chrono::year(*parts.year), std::chrono::month(*parts.month),
                            std::chrono::day(static_cast<unsigned>(*parts.day))};
  if (!date.ok() || *parts.year < 1601) return std::nullopt;
  // The clock counts nanoseconds, which end in the year 2262; no cookie is kept for that long.
  const sys_seconds at = sys_days(date) + *parts.clock;
  return std::clamp(at, sys_seconds(seconds(0)), sys_seconds(sys_days(2200y / 1 / 1)));
}

std::optional<set_cookie> read_set_cookie(std::string_view text, set_cookie::time_point now,
                                          std::size_t attribute_bytes) {
  if (std::ranges::any_of(text, is_control)) return std::nullopt;
  const cookie_pair pair = take_cookie_pair(text);
  if (pair.name.empty() && pair.value.empty()) return std::nullopt;
  set_cookie cookie;
  cookie.name = pair.name;
  cookie.value = pair.value;
  attributes rest(cookie, now);
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view attribute = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t equals = attribute.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? "" : trimmed(attribute.substr(equals + 1));
    if (value.size() <= attribute_bytes) rest.take(trimmed(attribute.substr(0, equals)), value);
  }
  rest.finish();
  // A tab inside would end a column of the saved text.
  if ((cookie.name + cookie.value + cookie.path + cookie.domain).contains('\t'))
    return std::nullopt;
  return cookie;
}

}  // namespace troupe::http
