#include "troupe/json/read.hpp"

#include <algorithm>

namespace troupe::json::parts {

namespace {

// Takes `digits` digits off the text; -1 if they are not there.
int take_number(std::string_view& text, std::size_t digits) noexcept {
  if (text.size() < digits) return -1;
  int number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, char letter) noexcept {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::chrono::year_month_day> take_date(std::string_view& text) noexcept {
  const int year = take_number(text, 4);
  if (year < 0 || !take(text, '-')) return std::nullopt;
  const int month = take_number(text, 2);
  if (month < 0 || !take(text, '-')) return std::nullopt;
  const int day = take_number(text, 2);
  if (day < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  return date.ok() ? std::optional(date) : std::nullopt;
}

// "Z", "+01:00"; nothing if it is none of them.
std::optional<std::chrono::minutes> take_zone(std::string_view& text) noexcept {
  using std::chrono::minutes;
  if (take(text, 'Z') || take(text, 'z')) return minutes(0);
  const bool is_west = take(text, '-');
  if (!is_west && !take(text, '+')) return std::nullopt;
  const int hour = take_number(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const int minute = take_number(text, 2);
  if (minute < 0 || minute > 59) return std::nullopt;
  return minutes((is_west ? -1 : 1) * (hour * 60 + minute));
}

// ".123": digits behind the ninth are dropped.
std::optional<std::chrono::nanoseconds> take_fraction(std::string_view& text) noexcept {
  if (!take(text, '.')) return std::chrono::nanoseconds(0);
  std::int64_t fraction = 0, scale = 1'000'000'000;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    scale /= 10;
    fraction += scale * (text[digits] - '0');
  }
  text.remove_prefix(digits);
  if (digits == 0) return std::nullopt;
  return std::chrono::nanoseconds(fraction);
}

}  // namespace

std::optional<std::chrono::year_month_day> read_date(std::string_view text) noexcept {
  const auto date = take_date(text);
  return text.empty() ? date : std::nullopt;
}

std::optional<instant> read_instant(std::string_view text) noexcept {
  const auto day = take_date(text);
  if (!day || (!take(text, 'T') && !take(text, 't'))) return std::nullopt;
  const int hour = take_number(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const int minute = take_number(text, 2);
  if (minute < 0 || minute > 59 || !take(text, ':')) return std::nullopt;
  const int second = take_number(text, 2);
  if (second < 0 || second > 60) return std::nullopt;  // 60: a leap second
  const auto rest = take_fraction(text);
  const auto zone = rest ? take_zone(text) : std::nullopt;
  if (!zone || !text.empty()) return std::nullopt;
  return instant{std::chrono::sys_days(*day) + std::chrono::hours(hour) +
                     std::chrono::minutes(minute) + std::chrono::seconds(second) - *zone,
                 *rest};
}

void fail_range(const place& at, std::int64_t least, std::uint64_t most) {
  fail(at, "a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
               " is needed");
}

void fail_name(const place& at, const std::string_view* names, std::size_t count) {
  constexpr std::size_t named_max = 10;
  std::string list;
  std::size_t named = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i].empty() || ++named > named_max) continue;
    list.append(list.empty() ? "\"" : ", \"").append(names[i]).append("\"");
  }
  fail(at, "one of " + list + (named > named_max ? ", …" : "") + " is needed");
}

namespace {

void check_twice(std::vector<std::string_view>& names, const place& within) {
  std::sort(names.begin(), names.end());
  const auto found = std::adjacent_find(names.begin(), names.end());
  if (found != names.end()) fail({&within, *found}, "it is there twice");
}

// Goes through a value that nothing reads. The depth of the text is limited.
void check_names(const value& checked, const place& at) {
  if (checked.kind() == kind::array) {
    elements all(checked);
    for (std::size_t i = 0;; ++i) {
      const auto element = all.next();
      if (!element) return;
      check_names(*element, {&at, {}, i});
    }
  }
  if (checked.kind() != kind::object) return;
  std::vector<std::string_view> names;
  members all(checked);
  while (const auto member = all.next()) {
    check_names(member->is, {&at, member->name});
    names.push_back(member->name);
  }
  check_twice(names, at);
}

}  // namespace

void unknown_members::add(std::string_view name, const value& is, const place& within) {
  check_names(is, {&within, name});
  names_.push_back(name);
}

void unknown_members::check(const place& within) { check_twice(names_, within); }

// A text of a few bytes cannot ask for much memory at once: the rest grows as it is read.
std::size_t reserved(std::size_t elements, std::size_t bytes_each) noexcept {
  constexpr std::size_t bytes_max = 64 * 1024;
  return std::min(elements, bytes_max / bytes_each);
}

std::string_view tag_in(const value& from, const place& at) {
  members all(from);
  while (const auto member = all.next()) {
    if (member->name != "type") continue;
    if (member->is.kind() != kind::string) fail({&at, "type"}, "a string is needed");
    return member->is.text();
  }
  fail({&at, "type"}, "it is missing");
}

}  // namespace troupe::json::parts
