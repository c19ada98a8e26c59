#include "cron/fields.hpp"

#include <array>
#include <bit>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "troupe/cron/error.hpp"

namespace troupe::cron {
namespace {

struct limits_of_field {
  cron_field field;
  unsigned least, most;
  std::string_view names;  // of three letters each, beginning with the name of `least`
};
constexpr std::array<limits_of_field, 6> all_fields{{
    {cron_field::second, 0, 59, ""},
    {cron_field::minute, 0, 59, ""},
    {cron_field::hour, 0, 23, ""},
    {cron_field::day_of_month, 1, 31, ""},
    {cron_field::month, 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    {cron_field::day_of_week, 0, 7, "SUNMONTUEWEDTHUFRISAT"},
}};

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Reads one field.
class field_reader {
 public:
  field_reader(const limits_of_field& limits, std::string_view expression) noexcept
      : limits_(limits), expression_(expression) {}

  std::uint64_t read(std::string_view text) const {
    std::uint64_t named = 0;
    for (const std::string_view item : split(text, ",")) named |= read_item(item);
    return named;
  }

 private:
  [[noreturn]] void refuse(std::string_view part, const std::string& why) const {
    throw cron_error(limits_.field, std::string("troupe: cron: ") + name_of(limits_.field) + ": '" +
                                        std::string(part) + "' " + why + ", in '" +
                                        std::string(expression_) + "'");
  }
  std::uint64_t read_item(std::string_view item) const {
    const std::vector<std::string_view> parts = split(item, "/");
    if (parts.size() > 2) refuse(item, "has two steps");
    unsigned first = limits_.least, last = limits_.most, step = 1;
    if (parts[0] == "*") {
      if (limits_.field == cron_field::day_of_week) last = 6;  // 7 is Sunday, as 0 is
    } else {
      const std::vector<std::string_view> ends = split(parts[0], "-");
      if (ends.size() > 2) refuse(item, "is no range; write it as 1-5");
      first = number(ends[0]);
      if (ends.size() == 2) {
        last = number(ends[1]);
        // FRI-SUN ends with the week.
        if (limits_.field == cron_field::day_of_week && last == 0 && first > 0) last = 7;
      } else if (parts.size() == 1) {
        last = first;
      }
      if (first > last)
        refuse(item, "ends before it begins; write two ranges with a comma between");
    }
    if (parts.size() == 2) {
      step = digits(parts[1]).value_or(0);
      if (step == 0 || step > limits_.most)
        refuse(item, "has a step that is not between 1 and " + std::to_string(limits_.most));
    }
    std::uint64_t named = 0;
    for (unsigned n = first; n <= last; n += step) named |= std::uint64_t{1} << n;
    return named;
  }
  unsigned number(std::string_view text) const {
    if (const std::optional<unsigned> read = digits(text)) {
      if (*read >= limits_.least && *read <= limits_.most) return *read;
    } else if (const std::optional<unsigned> named = name(text)) {
      return *named;
    }
    refuse(text, "is not between " + std::to_string(limits_.least) + " and " +
                     std::to_string(limits_.most) +
                     (limits_.names.empty() ? std::string()
                                            : ", nor the first three letters of a name, as " +
                                                  std::string(limits_.names.substr(0, 3))));
  }
  static std::optional<unsigned> digits(std::string_view text) {
    if (text.empty() || text.size() > 4) return std::nullopt;
    unsigned read = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return std::nullopt;
      read = read * 10 + static_cast<unsigned>(c - '0');
    }
    return read;
  }
  std::optional<unsigned> name(std::string_view text) const {
    if (text.size() != 3) return std::nullopt;
    std::string upper(text);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (std::size_t at = 0; at < limits_.names.size(); at += 3) {
      if (limits_.names.substr(at, 3) == upper)
        return limits_.least + static_cast<unsigned>(at / 3);
    }
    return std::nullopt;
  }

  const limits_of_field& limits_;
  const std::string_view expression_;
};

std::string_view meaning_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> known{{
      {"@yearly", "0 0 1 1 *"},
      {"@annually", "0 0 1 1 *"},
      {"@monthly", "0 0 1 * *"},
      {"@weekly", "0 0 * * 0"},
      {"@daily", "0 0 * * *"},
      {"@midnight", "0 0 * * *"},
      {"@hourly", "0 * * * *"},
  }};
  for (const auto& [each, meaning] : known) {
    if (each == name) return meaning;
  }
  throw cron_error(cron_field::expression,
                   "troupe: cron: expression: '" + std::string(name) +
                       "' is not known; write @yearly, @annually, @monthly, @weekly, @daily, "
                       "@midnight or @hourly");
}

// Whether there is a month that has one of these days. Nothing else can leave an expression without
// a day: each day of the year falls on each day of the week in some year, and a day field that
// begins with * names the first of the month.
bool some_day_exists(const fields& wanted) noexcept {
  constexpr std::array<unsigned, 13> longest{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (unsigned month = 1; month <= 12; ++month) {
    const std::uint64_t first_days = (std::uint64_t{2} << longest[month]) - 1;
    if ((wanted.months >> month & 1) != 0 && (wanted.days & first_days) != 0) return true;
  }
  return false;
}

}  // namespace

fields read(std::string_view expression) {
  std::vector<std::string_view> parts;
  const std::string_view text = expression.starts_with('@') ? meaning_of(expression) : expression;
  for (const std::string_view part : split(text, " \t")) {
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.size() != 5 && parts.size() != 6)
    throw cron_error(cron_field::expression,
                     "troupe: cron: expression: '" + std::string(expression) + "' has " +
                         std::to_string(parts.size()) +
                         " fields; five are needed, or six with the seconds in front");
  if (parts.size() == 5) parts.insert(parts.begin(), "0");
  fields found;
  const std::array<std::uint64_t*, 6> into{&found.seconds, &found.minutes, &found.hours,
                                           &found.days,    &found.months,  &found.weekdays};
  for (std::size_t i = 0; i < parts.size(); ++i)
    *into[i] = field_reader(all_fields[i], expression).read(parts[i]);
  if ((found.weekdays & 1u << 7) != 0) found.weekdays |= 1;
  found.any_hour = parts[2].starts_with('*');
  found.any_day = parts[3].starts_with('*');
  found.any_weekday = parts[5].starts_with('*');
  if (found.any_weekday && !some_day_exists(found))
    throw cron_error(cron_field::expression,
                     "troupe: cron: expression: '" + std::string(expression) +
                         "' names no day: none of its months has one of its days; change either");
  return found;
}

bool fields::names(date::local_days day) const noexcept {
  const date::year_month_day calendar_day(day);
  if ((months >> static_cast<unsigned>(calendar_day.month()) & 1) == 0) return false;
  const bool fits_day = (days >> static_cast<unsigned>(calendar_day.day()) & 1) != 0;
  const bool fits_weekday = (weekdays >> date::weekday(day).c_encoding() & 1) != 0;
  return any_day || any_weekday ? fits_day && fits_weekday : fits_day || fits_weekday;
}

namespace {

// The first number of the field that is not below `from`; 64 if there is none.
unsigned first_from(std::uint64_t field, unsigned from) noexcept {
  return from >= 64 ? 64u : static_cast<unsigned>(std::countr_zero(field >> from << from));
}

// The first time of day that is not before `from`; a whole day if there is none.
std::chrono::seconds time_of_day(const fields& wanted, std::chrono::seconds from) noexcept {
  const auto total = static_cast<unsigned>(from.count());
  unsigned hour = total / 3600, minute = total / 60 % 60, second = total % 60;
  second = first_from(wanted.seconds, second);
  if (second == 64) ++minute;
  unsigned found = first_from(wanted.minutes, minute);
  if (found != minute) second = first_from(wanted.seconds, 0);
  minute = found;
  if (second == 64) second = first_from(wanted.seconds, 0);
  if (minute == 64) ++hour;
  found = first_from(wanted.hours, hour);
  if (found == 64) return std::chrono::hours(24);
  if (found != hour || minute == 64) {
    minute = first_from(wanted.minutes, 0);
    second = first_from(wanted.seconds, 0);
  }
  return std::chrono::hours(found) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

}  // namespace

date::local_seconds fields::after(date::local_seconds given) const {
  // A 29th of February that is a Sunday may be 40 years away.
  constexpr date::days longest_gap(366 * 41);
  const date::local_seconds from = given + std::chrono::seconds(1);
  date::local_days day = date::floor<date::days>(from);
  std::chrono::seconds begins = from - day;
  for (const date::local_days last = day + longest_gap; day <= last;) {
    const date::year_month_day calendar_day(day);
    if ((months >> static_cast<unsigned>(calendar_day.month()) & 1) == 0) {
      day = date::local_days(calendar_day.year() / calendar_day.month() / 1 + date::months(1));
    } else {
      if (names(day)) {
        const std::chrono::seconds at = time_of_day(*this, begins);
        if (at < std::chrono::hours(24)) return day + at;
      }
      day += date::days(1);
    }
    begins = std::chrono::seconds(0);
  }
  TROUPE_INVARIANT(false, "read() refuses expressions that name no day");
  return given;
}

}  // namespace troupe::cron
