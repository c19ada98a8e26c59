// times: instants as text, for tests of schedules.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "troupe/cron/schedule.hpp"

namespace troupe::test {

// "2024-02-29 12:00:00", in UTC.
inline cron_schedule::time_point utc(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  int hour = 0, minute = 0, second = 0;
  if (std::sscanf(text.c_str(), "%d-%u-%u %d:%d:%d", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    throw usage_error("test: write a time as 2024-02-29 12:00:00, not as " + text);
  return std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) /
                               std::chrono::day(day)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

inline std::string text_of(cron_schedule::time_point at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

// The next `count` times, each as text, in one line each.
inline std::string next_of(const cron_schedule& schedule, const std::string& after, int count) {
  std::string all;
  auto at = utc(after);
  for (int i = 0; i < count; ++i) all += text_of(at = schedule.next(at)) + '\n';
  return all;
}

}  // namespace troupe::test
