#include "troupe/json/write.hpp"

#include <array>
#include <cmath>

#include "base/text/json_string.hpp"
#include "troupe/base/error.hpp"

namespace troupe::json::parts {

namespace {

template <class T>
void write_fraction(std::string& out, T number) {
  if (!std::isfinite(number))
    throw usage_error(
        "troupe: json::write: JSON has no form for an infinite number or NaN; write a "
        "std::optional without a value instead");
  std::array<char, 40> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void write_digits(std::string& out, std::int64_t number, int digits) {
  const std::string text = std::to_string(number);
  for (auto i = static_cast<int>(text.size()); i < digits; ++i) out += '0';
  out += text;
}

void write_day(std::string& out, const std::chrono::year_month_day& day) {
  const int year = static_cast<int>(day.year());
  if (!day.ok() || year < 0 || year > 9'999)
    throw usage_error(
        "troupe: json::write: a date is outside of the years 0 to 9999; write its count or a text "
        "instead");
  write_digits(out, year, 4);
  out += '-';
  write_digits(out, static_cast<unsigned>(day.month()), 2);
  out += '-';
  write_digits(out, static_cast<unsigned>(day.day()), 2);
}

}  // namespace

void write_string(std::string& out, std::string_view text) { base::add_json_string(out, text); }
void write_number(std::string& out, double number) { write_fraction(out, number); }
void write_number(std::string& out, float number) { write_fraction(out, number); }

void write_date(std::string& out, const std::chrono::year_month_day& day) {
  out += '"';
  write_day(out, day);
  out += '"';
}

void write_instant(std::string& out, std::chrono::sys_seconds second, std::chrono::nanoseconds rest,
                   int digits) {
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::int64_t of_day = (second - day).count();
  out += '"';
  write_day(out, std::chrono::year_month_day(day));
  out += 'T';
  write_digits(out, of_day / 3'600, 2);
  out += ':';
  write_digits(out, of_day / 60 % 60, 2);
  out += ':';
  write_digits(out, of_day % 60, 2);
  if (digits > 0) {
    std::int64_t fraction = rest.count();
    for (int i = digits; i < 9; ++i) fraction /= 10;
    out += '.';
    write_digits(out, fraction, digits);
  }
  out += "Z\"";
}

void fail_nameless(long long value) {
  throw usage_error("troupe: json::write: the enumerator of value " + std::to_string(value) +
                    " has no name: those from 0 to 127 have one");
}

}  // namespace troupe::json::parts
