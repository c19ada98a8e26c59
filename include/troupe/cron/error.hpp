// cron_error: an expression or a zone that makes no sense.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {

// The part of a schedule that an error is about.
enum class cron_field : std::uint8_t {
  second,
  minute,
  hour,
  day_of_month,
  month,
  day_of_week,
  expression,  // the number of its fields, an unknown @name, or that it names no day
  zone,
};
const char* name_of(cron_field field) noexcept;

// An invalid expression or zone. The text names the error and its field.
//
// Example:
//     try {
//       troupe::cron_schedule lunch("0 25 * * *");
//     } catch (const troupe::cron_error& wrong) {
//       if (wrong.field() == troupe::cron_field::hour) std::cout << wrong.what() << '\n';
//     }
class cron_error : public error {
 public:
  cron_error(cron_field field, const std::string& text) : error(text), field_(field) {}
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
  cron_field field() const noexcept { return field_; }

 private:
  cron_field field_;
};

}  // namespace troupe
