#include "troupe/json/write.hpp"

#include <array>
#include <cmath>

#include "base/text/json_string.hpp"
#include "troupe/base/error.hpp"

namespace troupe::json::parts {

namespace {

template <class T>
void write_fraction(std::string& to, T number) {
  if (!std::isfinite(number))
    throw usage_error("troupe: json::write: a number that is infinite or not a number has no form");
  std::array<char, 40> text;
  to.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void write_digits(std::string& to, std::int64_t number, int digits) {
  const std::string text = std::to_string(number);
  for (auto i = static_cast<int>(text.size()); i < digits; ++i) to += '0';
  to += text;
}

void write_day(std::string& to, const std::chrono::year_month_day& day) {
  const int year = static_cast<int>(day.year());
  if (!day.ok() || year < 0 || year > 9'999)
    throw usage_error("troupe: json::write: a date is outside of the years 0 to 9999");
  write_digits(to, year, 4);
  to += '-';
  write_digits(to, static_cast<unsigned>(day.month()), 2);
  to += '-';
  write_digits(to, static_cast<unsigned>(day.day()), 2);
}

}  // namespace

void write_string(std::string& to, std::string_view text) { base::add_json_string(to, text); }
void write_number(std::string& to, double number) { write_fraction(to, number); }
void write_number(std::string& to, float number) { write_fraction(to, number); }

void write_date(std::string& to, const std::chrono::year_month_day& day) {
  to += '"';
  write_day(to, day);
  to += '"';
}

void write_instant(std::string& to, std::chrono::sys_seconds second, std::chrono::nanoseconds rest,
                   int digits) {
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::int64_t of_day = (second - day).count();
  to += '"';
  write_day(to, std::chrono::year_month_day(day));
  to += 'T';
  write_digits(to, of_day / 3'600, 2);
  to += ':';
  write_digits(to, of_day / 60 % 60, 2);
  to += ':';
  write_digits(to, of_day % 60, 2);
  if (digits > 0) {
    std::int64_t fraction = rest.count();
    for (int i = digits; i < 9; ++i) fraction /= 10;
    to += '.';
    write_digits(to, fraction, digits);
  }
  to += "Z\"";
}

void fail_nameless(long long value) {
  throw usage_error("troupe: json::write: the enumerator of value " + std::to_string(value) +
                    " has no name: those from 0 to 127 have one");
}

}  // namespace troupe::json::parts
