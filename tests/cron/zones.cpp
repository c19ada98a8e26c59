// Schedules by the clocks of time zones: what happens when these change.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cron/times.hpp"
#include "support/conformance.hpp"
#include "troupe/cron/schedule.hpp"

namespace troupe::test {
namespace {

std::string next(const char* expression, const char* zone, const std::string& after,
                 int count = 1) {
  return next_of(cron_schedule(expression, zone), after, count);
}

TEST(cron_zones, times_are_those_of_the_clocks_there) {
  EXPECT_EQ(next("30 8 * * *", "Europe/Berlin", "2024-01-15 00:00:00"), "2024-01-15 07:30:00\n");
  EXPECT_EQ(next("30 8 * * *", "Europe/Berlin", "2024-07-15 00:00:00"), "2024-07-15 06:30:00\n");
  EXPECT_EQ(next("0 0 1 1 *", "Asia/Kolkata", "2024-06-01 00:00:00"), "2024-12-31 18:30:00\n");
  EXPECT_EQ(next("0 9 * * MON", "America/New_York", "2024-07-01 13:00:00"),
            "2024-07-08 13:00:00\n");
}

TEST(cron_zones, a_skipped_time_of_day_happens_once_at_the_change) {
  // 02:00 becomes 03:00 on 31 March 2024, at 01:00 UTC.
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2024-03-30 00:00:00", 3),
            "2024-03-30 01:30:00\n2024-03-31 01:00:00\n2024-04-01 00:30:00\n");
  EXPECT_EQ(next("*/10 2 * * *", "Europe/Berlin", "2024-03-31 00:00:00", 2),
            "2024-03-31 01:00:00\n2024-04-01 00:00:00\n")
      << "six skipped times are one";
  EXPECT_EQ(next("0 2,3 * * *", "Europe/Berlin", "2024-03-31 00:00:00", 2),
            "2024-03-31 01:00:00\n2024-04-01 00:00:00\n")
      << "the change is at three";
  EXPECT_EQ(next("30 2 * * *", "America/New_York", "2024-03-10 05:00:00", 2),
            "2024-03-10 07:00:00\n2024-03-11 06:30:00\n");
}

TEST(cron_zones, a_time_of_day_that_comes_twice_happens_the_first_time) {
  // 03:00 becomes 02:00 on 27 October 2024, at 01:00 UTC.
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2024-10-26 12:00:00", 2),
            "2024-10-27 00:30:00\n2024-10-28 01:30:00\n");
  EXPECT_EQ(next("30 1-2 * * *", "Europe/Berlin", "2024-10-26 12:00:00", 3),
            "2024-10-26 23:30:00\n2024-10-27 00:30:00\n2024-10-28 00:30:00\n");
  EXPECT_EQ(next("0 3 * * *", "Europe/Berlin", "2024-10-26 12:00:00", 2),
            "2024-10-27 02:00:00\n2024-10-28 02:00:00\n")
      << "three comes once";
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2024-10-27 01:10:00"), "2024-10-28 01:30:00\n")
      << "asked within the second two o'clock";
}

TEST(cron_zones, a_schedule_of_each_hour_follows_time_as_it_passes) {
  EXPECT_EQ(next("30 * * * *", "Europe/Berlin", "2024-03-30 23:00:00", 3),
            "2024-03-30 23:30:00\n2024-03-31 00:30:00\n2024-03-31 01:30:00\n");
  EXPECT_EQ(next("30 * * * *", "Europe/Berlin", "2024-10-27 00:00:00", 3),
            "2024-10-27 00:30:00\n2024-10-27 01:30:00\n2024-10-27 02:30:00\n");
  // Even hours by the clock: 00, 02, 02 again, 04.
  EXPECT_EQ(next("0 */2 * * *", "Europe/Berlin", "2024-10-26 21:00:00", 4),
            "2024-10-26 22:00:00\n2024-10-27 00:00:00\n2024-10-27 01:00:00\n2024-10-27 03:00:00\n");
}

TEST(cron_zones, a_change_of_half_an_hour) {
  // 02:00 becomes 02:30 on 6 October 2024; 02:00 becomes 01:30 on 7 April 2024.
  EXPECT_EQ(next("15 2 * * *", "Australia/Lord_Howe", "2024-10-05 12:00:00", 2),
            "2024-10-05 15:30:00\n2024-10-06 15:15:00\n");
  EXPECT_EQ(next("45 1 * * *", "Australia/Lord_Howe", "2024-04-06 12:00:00", 2),
            "2024-04-06 14:45:00\n2024-04-07 15:15:00\n");
}

TEST(cron_zones, a_whole_day_that_a_zone_left_out) {
  // Samoa went from the 29th to the 31st of December 2011.
  EXPECT_EQ(next("0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00:00", 2),
            "2011-12-30 10:00:00\n2012-12-29 22:00:00\n");
  EXPECT_EQ(next("0 */12 30 12 *", "Pacific/Apia", "2011-12-01 00:00:00"), "2012-12-29 10:00:00\n");
}

TEST(cron_zones, midnight_that_is_skipped) {
  // In Sao Paulo 00:00 became 01:00 on 4 November 2018.
  EXPECT_EQ(next("@daily", "America/Sao_Paulo", "2018-11-03 12:00:00", 2),
            "2018-11-04 03:00:00\n2018-11-05 02:00:00\n");
}

TEST(cron_zones, before_the_first_and_after_the_last_change) {
  EXPECT_EQ(next("0 12 * * *", "Europe/Berlin", "1800-06-01 00:00:00"), "1800-06-01 11:06:32\n");
  EXPECT_EQ(next("0 12 * * *", "Asia/Kolkata", "2100-06-01 00:00:00"), "2100-06-01 06:30:00\n");
}

TEST(cron_zones, an_unknown_zone_is_refused_with_what_to_do) {
  for (const char* unknown : {"Europe/Atlantis", "", "../../etc/passwd", "CEST+1"}) {
    try {
      cron_schedule made("* * * * *", unknown);
      ADD_FAILURE() << "'" << unknown << "' was taken";
    } catch (const cron_error& wrong) {
      const std::string said = wrong.what();
      EXPECT_EQ(wrong.field(), cron_field::zone);
      EXPECT_NE(said.find(std::string("zone: '") + unknown + "'"), std::string::npos) << said;
      EXPECT_NE(said.find("write it as Europe/Berlin"), std::string::npos) << said;
    }
  }
  EXPECT_THROW(cron_schedule("nonsense", "Europe/Atlantis"), cron_error);
}

TEST(cron_zones, the_zone_of_the_machine_has_its_full_name) {
  try {
    const cron_schedule made("0 12 * * *", "local");
    EXPECT_NE(made.zone(), "local");
    EXPECT_EQ(next_of(made, "2024-01-01 00:00:00", 2),
              next_of(cron_schedule("0 12 * * *", made.zone()), "2024-01-01 00:00:00", 2));
  } catch (const cron_error& wrong) {
    EXPECT_EQ(wrong.field(), cron_field::zone) << "this machine does not say where it is";
  }
}

TEST(cron_zones, threads_share_a_schedule_and_the_files_of_zones) {
  const cron_schedule shared("30 2 * * *", "Europe/Berlin");
  std::vector<std::string> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& one : found) {
      threads.emplace_back([&one, copy = shared] {
        const cron_schedule mine("30 2 * * *", "Africa/Cairo");
        one = next_of(copy, "2024-03-30 00:00:00", 50) + next_of(mine, "2024-03-30 00:00:00", 50);
      });
    }
  }
  for (const auto& one : found) EXPECT_EQ(one, found[0]);
}

// The clocks of a zone as the C library knows them.
class zone_clock {
 public:
  explicit zone_clock(const char* zone) : set_("TZ", zone) { ::tzset(); }
  ~zone_clock() = default;
  // What they show, as if it were UTC.
  std::time_t shown_at(std::time_t at) const {
    std::tm shown{};
    ::localtime_r(&at, &shown);
    return ::timegm(&shown);
  }

 private:
  scoped_environment set_;
};

struct sample {
  const char* expression;
  int step;                // it names the minutes of an hour that can be divided by it
  std::vector<int> hours;  // and these hours; none: all
};

// What the schedule names, by a look at each minute.
std::set<std::time_t> looked_up(const sample& of, const zone_clock& clock, std::time_t begin,
                                std::time_t end) {
  std::set<std::time_t> found;
  const auto names = [&](std::time_t shown) {
    const auto hour = static_cast<int>(shown / 3600 % 24);
    bool fits = of.hours.empty();
    for (const int each : of.hours) fits = fits || each == hour;
    return fits && shown / 60 % of.step == 0;
  };
  // A time of day happens at the first moment at which the clocks show it or more.
  std::time_t seen = clock.shown_at(begin - 60);
  for (std::time_t at = begin; at < end; at += 60) {
    const std::time_t shown = clock.shown_at(at);
    if (of.hours.empty()) {
      if (names(shown)) found.insert(at);
    } else {
      for (; seen < shown; seen += 60) {
        if (names(seen + 60)) found.insert(at);
      }
    }
  }
  return found;
}

TEST(cron_zones, all_times_around_changes_are_those_of_the_c_library_s_clocks) {
  const sample samples[] = {{"*/15 * * * *", 15, {}},
                            {"0 * * * *", 60, {}},
                            {"*/20 2 * * *", 20, {2}},
                            {"0 0 * * *", 60, {0}},
                            {"*/30 0-3 * * *", 30, {0, 1, 2, 3}},
                            {"0 1,23 * * *", 60, {1, 23}}};
  const struct {
    const char* zone;
    const char* begin;  // three days, within which the clocks change
  } changes[] = {{"Europe/Berlin", "2024-03-30 00:00:00"},
                 {"Europe/Berlin", "2024-10-26 00:00:00"},
                 {"Europe/Dublin", "2024-10-26 00:00:00"},
                 {"America/New_York", "2024-03-09 00:00:00"},
                 {"America/New_York", "2024-11-02 00:00:00"},
                 {"Australia/Lord_Howe", "2024-04-05 12:00:00"},
                 {"Australia/Lord_Howe", "2024-10-04 12:00:00"},
                 {"America/Sao_Paulo", "2018-11-03 00:00:00"},
                 {"America/Sao_Paulo", "2019-02-16 00:00:00"},
                 {"Africa/Casablanca", "2024-03-09 00:00:00"},
                 {"Asia/Kathmandu", "1985-12-30 12:00:00"},
                 {"America/Caracas", "2016-04-30 00:00:00"},
                 {"Pacific/Apia", "2011-12-29 00:00:00"}};
  for (const auto& [zone, first] : changes) {
    const zone_clock clock(zone);
    const auto begin = utc(first), end = begin + std::chrono::hours(72);
    for (const sample& one : samples) {
      const cron_schedule schedule(one.expression, zone);
      const auto wanted = looked_up(one, clock, std::chrono::system_clock::to_time_t(begin),
                                    std::chrono::system_clock::to_time_t(end));
      ASSERT_FALSE(wanted.empty());
      auto found = schedule.next(begin - std::chrono::seconds(1));
      for (const std::time_t at : wanted) {
        ASSERT_EQ(text_of(found), text_of(cron_schedule::time_point(std::chrono::seconds(at))))
            << one.expression << " in " << zone;
        found = schedule.next(found);
      }
      EXPECT_GE(found, end) << one.expression << " in " << zone;
    }
  }
}

}  // namespace
}  // namespace troupe::test
