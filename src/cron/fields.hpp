// fields: an expression of cron, read: which local times it names.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <date/date.h>

namespace troupe::cron {

// Bit n of a field: the expression names the number n.
struct fields {
  std::uint64_t seconds = 0, minutes = 0, hours = 0, days = 0, months = 0, weekdays = 0;
  bool any_day = false, any_weekday = false;  // the field begins with *
  bool any_hour = false;

  bool names(date::local_days day) const noexcept;
  // The first local time that the expression names after this one.
  date::local_seconds after(date::local_seconds given) const;
};

// Throws cron_error.
fields read(std::string_view expression);

}  // namespace troupe::cron
