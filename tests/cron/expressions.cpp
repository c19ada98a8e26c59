// What expressions name, in UTC, and which are refused.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cron/times.hpp"
#include "support/conformance.hpp"
#include "troupe/cron/schedule.hpp"

namespace troupe::test {
namespace {

std::string next(const char* expression, const std::string& after, int count = 1) {
  return next_of(cron_schedule(expression), after, count);
}

TEST(cron_expressions, each_field_is_a_number_of_its_own) {
  EXPECT_EQ(next("30 15 8 * * *", "2024-01-01 00:00:00"), "2024-01-01 08:15:30\n");
  EXPECT_EQ(next("15 8 * * *", "2024-01-01 00:00:00"), "2024-01-01 08:15:00\n");
  EXPECT_EQ(next("0 0 17 * *", "2024-01-01 00:00:00"), "2024-01-17 00:00:00\n");
  EXPECT_EQ(next("0 0 1 7 *", "2024-01-01 00:00:00"), "2024-07-01 00:00:00\n");
  EXPECT_EQ(next("0 0 * * 3", "2024-01-01 00:00:00"), "2024-01-03 00:00:00\n");
  EXPECT_EQ(next("0 0 0 * * 3", "2024-01-01 00:00:00"), "2024-01-03 00:00:00\n");
}

TEST(cron_expressions, the_next_time_is_after_the_given_one) {
  EXPECT_EQ(next("* * * * * *", "2024-12-31 23:59:59"), "2025-01-01 00:00:00\n");
  EXPECT_EQ(next("0 12 * * *", "2024-01-01 12:00:00"), "2024-01-02 12:00:00\n");
  EXPECT_EQ(next("0 12 * * *", "2024-01-01 11:59:59"), "2024-01-01 12:00:00\n");
  const cron_schedule noon("0 12 * * *");
  const auto before = utc("2024-01-01 11:59:59") + std::chrono::milliseconds(999);
  EXPECT_EQ(text_of(noon.next(before)), "2024-01-01 12:00:00");
  EXPECT_EQ(text_of(noon.next(utc("1969-12-31 23:59:59") - std::chrono::milliseconds(1))),
            "1970-01-01 12:00:00");
}

TEST(cron_expressions, ranges_steps_and_lists_combine) {
  EXPECT_EQ(next("*/20 * * * *", "2024-01-01 00:00:00", 3),
            "2024-01-01 00:20:00\n2024-01-01 00:40:00\n2024-01-01 01:00:00\n");
  EXPECT_EQ(next("0 8-18/5 * * *", "2024-01-01 00:00:00", 3),
            "2024-01-01 08:00:00\n2024-01-01 13:00:00\n2024-01-01 18:00:00\n");
  EXPECT_EQ(next("5/25 * * * *", "2024-01-01 00:00:00", 3),
            "2024-01-01 00:05:00\n2024-01-01 00:30:00\n2024-01-01 00:55:00\n");
  EXPECT_EQ(next("0,30 9,17-18 * * *", "2024-01-01 09:30:00", 4),
            "2024-01-01 17:00:00\n2024-01-01 17:30:00\n2024-01-01 18:00:00\n2024-01-01 18:30:00\n");
  EXPECT_EQ(next("59 59 23 31 12 *", "2024-01-01 00:00:00"), "2024-12-31 23:59:59\n");
  EXPECT_EQ(next("58-59,1 * * * * *", "2024-01-01 00:00:57", 3),
            "2024-01-01 00:00:58\n2024-01-01 00:00:59\n2024-01-01 00:01:01\n");
}

TEST(cron_expressions, names_stand_for_months_and_days_in_either_case) {
  EXPECT_EQ(next("0 0 1 feb *", "2024-01-01 00:00:00"), "2024-02-01 00:00:00\n");
  EXPECT_EQ(next("0 0 1 JUL-Sep/2 *", "2024-01-01 00:00:00", 2),
            "2024-07-01 00:00:00\n2024-09-01 00:00:00\n");
  const char* const days[] = {"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(next((std::string("0 0 * * ") + days[i]).c_str(), "2023-12-31 00:00:00"),
              "2024-01-0" + std::to_string(i + 1) + " 00:00:00\n");
  }
  EXPECT_EQ(next("0 0 * * FRI-SUN", "2024-01-01 00:00:00", 4),
            "2024-01-05 00:00:00\n2024-01-06 00:00:00\n2024-01-07 00:00:00\n2024-01-12 00:00:00\n");
}

TEST(cron_expressions, zero_and_seven_are_sunday) {
  for (const char* sunday : {"0 0 * * 0", "0 0 * * 7", "0 0 * * 7-7", "0 0 * * SUN", "0 0 * * */7"})
    EXPECT_EQ(next(sunday, "2024-01-01 00:00:00", 2), "2024-01-07 00:00:00\n2024-01-14 00:00:00\n")
        << sunday;
  EXPECT_EQ(next("0 0 * * 0-7", "2024-01-06 00:00:00", 2),
            "2024-01-07 00:00:00\n2024-01-08 00:00:00\n");
}

TEST(cron_expressions, names_of_whole_expressions) {
  const std::pair<const char*, const char*> known[] = {
      {"@yearly", "2025-01-01 00:00:00\n"},  {"@annually", "2025-01-01 00:00:00\n"},
      {"@monthly", "2024-06-01 00:00:00\n"}, {"@weekly", "2024-05-19 00:00:00\n"},
      {"@daily", "2024-05-16 00:00:00\n"},   {"@midnight", "2024-05-16 00:00:00\n"},
      {"@hourly", "2024-05-15 14:00:00\n"}};
  for (const auto& [name, first] : known)
    EXPECT_EQ(next(name, "2024-05-15 13:14:15"), first) << name;
}

TEST(cron_expressions, one_day_field_is_enough_unless_one_begins_with_a_star) {
  // The 13th, and each Friday.
  EXPECT_EQ(next("0 0 13 * FRI", "2024-05-09 12:00:00", 4),
            "2024-05-10 00:00:00\n2024-05-13 00:00:00\n2024-05-17 00:00:00\n2024-05-24 00:00:00\n");
  // Days with an odd number that are Fridays: a field that begins with a star.
  EXPECT_EQ(next("0 0 */2 * FRI", "2024-05-09 12:00:00", 3),
            "2024-05-17 00:00:00\n2024-05-31 00:00:00\n2024-06-07 00:00:00\n");
  EXPECT_EQ(next("0 0 13 * *", "2024-05-13 00:00:00"), "2024-06-13 00:00:00\n");
  EXPECT_EQ(next("0 0 30 2 MON", "2024-02-01 00:00:00"), "2024-02-05 00:00:00\n")
      << "there is no such day, but there are Mondays";
}

TEST(cron_expressions, months_without_such_a_day_are_left_out) {
  EXPECT_EQ(next("0 0 31 * *", "2024-01-31 00:00:00", 3),
            "2024-03-31 00:00:00\n2024-05-31 00:00:00\n2024-07-31 00:00:00\n");
  EXPECT_EQ(next("0 0 30 2,4 *", "2024-01-01 00:00:00"), "2024-04-30 00:00:00\n");
}

TEST(cron_expressions, leap_years) {
  EXPECT_EQ(next("0 0 29 2 *", "2024-02-28 23:59:59", 2),
            "2024-02-29 00:00:00\n2028-02-29 00:00:00\n");
  EXPECT_EQ(next("0 0 29 2 *", "2096-02-29 00:00:00"), "2104-02-29 00:00:00\n")
      << "2100 is no leap year";
  EXPECT_EQ(next("0 0 29 2 */7", "2032-02-29 00:00:00"), "2060-02-29 00:00:00\n") << "a Sunday";
  EXPECT_EQ(next("0 0 29 2 */7", "2088-02-29 00:00:00"), "2128-02-29 00:00:00\n")
      << "the longest gap there is";
}

TEST(cron_expressions, a_day_that_never_comes_is_refused) {
  for (const char* never : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30-31 FEB *", "0 0 31 2 */2"}) {
    try {
      cron_schedule made(never);
      ADD_FAILURE() << never << " was taken";
    } catch (const cron_error& wrong) {
      EXPECT_EQ(wrong.field(), cron_field::expression) << never;
      EXPECT_NE(std::string(wrong.what()).find(never), std::string::npos) << wrong.what();
    }
  }
}

struct refusal {
  const char* expression;
  cron_field field;
  const char* says;
};

TEST(cron_expressions, what_makes_no_sense_is_refused_with_the_field_and_the_remedy) {
  const refusal all[] = {
      {"60 * * * * *", cron_field::second, "between 0 and 59"},
      {"60 * * * *", cron_field::minute, "between 0 and 59"},
      {"-1 * * * *", cron_field::minute, "between 0 and 59"},
      {"* 24 * * *", cron_field::hour, "between 0 and 23"},
      {"* * 0 * *", cron_field::day_of_month, "between 1 and 31"},
      {"* * 32 * *", cron_field::day_of_month, "between 1 and 31"},
      {"* * * 13 *", cron_field::month, "between 1 and 12, nor the first three letters of a name"},
      {"* * * JANUARY *", cron_field::month, "as JAN"},
      {"* * * * 8", cron_field::day_of_week, "between 0 and 7"},
      {"* * * * JAN", cron_field::day_of_week, "as SUN"},
      {"JAN * * * *", cron_field::minute, "between 0 and 59"},
      {"30-10 * * * *", cron_field::minute, "write two ranges with a comma"},
      {"1-2-3 * * * *", cron_field::minute, "write it as 1-5"},
      {"*/0 * * * *", cron_field::minute, "a step that is not between 1 and 59"},
      {"*/60 * * * *", cron_field::minute, "a step that is not between 1 and 59"},
      {"*/ * * * *", cron_field::minute, "a step"},
      {"*/2/2 * * * *", cron_field::minute, "two steps"},
      {"1,,2 * * * *", cron_field::minute, "''"},
      {"1, * * * *", cron_field::minute, "''"},
      {"*5 * * * *", cron_field::minute, "'*5'"},
      {"? * * * *", cron_field::minute, "'?'"},
      {"99999999999999999999 * * * *", cron_field::minute, "between 0 and 59"},
      {"0x1 * * * *", cron_field::minute, "'0x1'"},
      {"", cron_field::expression, "has 0 fields"},
      {"* * * *", cron_field::expression, "has 4 fields; five are needed"},
      {"* * * * * * *", cron_field::expression, "has 7 fields"},
      {"@reboot", cron_field::expression, "write @yearly"},
  };
  for (const refusal& one : all) {
    try {
      cron_schedule made(one.expression);
      ADD_FAILURE() << "'" << one.expression << "' was taken";
    } catch (const cron_error& wrong) {
      const std::string said = wrong.what();
      EXPECT_EQ(wrong.field(), one.field) << said;
      EXPECT_NE(said.find(one.says), std::string::npos) << said;
      EXPECT_TRUE(said.starts_with(std::string("troupe: cron: ") + name_of(one.field))) << said;
    }
  }
}

TEST(cron_expressions, blanks_are_free_and_the_text_is_kept) {
  const cron_schedule made("  0\t 12  * * *  ");
  EXPECT_EQ(next_of(made, "2024-01-01 00:00:00", 1), "2024-01-01 12:00:00\n");
  EXPECT_EQ(made.expression(), "  0\t 12  * * *  ");
  EXPECT_EQ(made.zone(), "UTC");
}

TEST(cron_expressions, any_text_has_a_next_time_or_is_refused) {
  const std::string letters = "0123456789**//--,,@ \t?#LWjanSUNfriD+.";
  std::mt19937 random(7);
  int taken = 0, refused = 0;
  for (int i = 0; i < fewer(40'000); ++i) {
    std::string text = i % 2 == 0 ? "*/5 8-18 1,15 * MON-FRI" : "0 30 2 */2 FEB 0-7/3";
    for (unsigned changes = random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        default:
          text.erase(at, 1);
      }
    }
    try {
      const cron_schedule made(text);
      const auto from = utc("2024-02-28 23:59:59");
      const auto found = made.next(from);
      ASSERT_GT(found, from) << text;
      ASSERT_GT(made.next(found), found) << text;
      ++taken;
    } catch (const cron_error& wrong) {
      ASSERT_TRUE(std::string(wrong.what()).starts_with("troupe: cron: ")) << wrong.what();
      ++refused;
    }
  }
  EXPECT_GT(taken, fewer(5'000));
  EXPECT_GT(refused, fewer(5'000));
}

// A field as text, with the numbers that it names.
using choice = std::pair<std::string, std::vector<int>>;

bool has(const choice& field, int number) {
  for (const int each : field.second) {
    if (each == number) return true;
  }
  return false;
}
std::vector<int> from_to(int first, int last, int step = 1) {
  std::vector<int> all;
  for (int n = first; n <= last; n += step) all.push_back(n);
  return all;
}

// Each combination of some fields, against a look at every second or minute.
TEST(cron_expressions, all_times_are_those_that_a_look_at_each_minute_finds) {
  const std::vector<choice> minutes{
      {"*/17", from_to(0, 59, 17)}, {"7", {7}}, {"0,59", {0, 59}}, {"20-40/9", {20, 29, 38}}};
  const std::vector<choice> hours{{"*", from_to(0, 23)}, {"0", {0}}, {"5-23/6", {5, 11, 17, 23}}};
  const std::vector<choice> days{{"*", from_to(1, 31)}, {"28-31", from_to(28, 31)}, {"1", {1}}};
  const std::vector<choice> months{{"*", from_to(1, 12)}, {"FEB-MAR", {2, 3}}};
  const std::vector<choice> weekdays{{"*", from_to(0, 6)}, {"MON,4", {1, 4}}, {"6-7", {6, 0}}};
  const auto begin = utc("2024-02-26 00:00:00"), end = utc("2024-03-05 00:00:00");
  for (const choice& m : minutes)
    for (const choice& h : hours)
      for (const choice& d : days)
        for (const choice& month : months)
          for (const choice& w : weekdays) {
            const std::string text =
                m.first + ' ' + h.first + ' ' + d.first + ' ' + month.first + ' ' + w.first;
            const cron_schedule schedule(text);
            auto found = schedule.next(begin - std::chrono::seconds(1));
            const bool any = d.first == "*" || w.first == "*";
            for (auto at = begin; at < end; at += std::chrono::minutes(1)) {
              const auto day = std::chrono::floor<std::chrono::days>(at);
              const std::chrono::year_month_day date(day);
              const std::chrono::hh_mm_ss time(at - day);
              if (!has(m, static_cast<int>(time.minutes().count())) ||
                  !has(h, static_cast<int>(time.hours().count())) ||
                  !has(month, static_cast<int>(static_cast<unsigned>(date.month()))))
                continue;
              const bool of_month = has(d, static_cast<int>(static_cast<unsigned>(date.day())));
              const bool of_week = has(w, static_cast<int>(std::chrono::weekday(day).c_encoding()));
              if (any ? !of_month || !of_week : !of_month && !of_week) continue;
              ASSERT_EQ(text_of(found), text_of(at)) << text;
              found = schedule.next(found);
            }
            ASSERT_GE(found, end) << text << " also names " << text_of(found);
          }
}

}  // namespace
}  // namespace troupe::test
