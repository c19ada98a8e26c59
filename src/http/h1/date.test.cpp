#include "http/h1/date.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::http {
namespace {

constexpr std::time_t known = 784'111'777, now = 1'790'000'000;  // in 2026

std::string written(std::time_t time) {
  const auto text = write_date(time);
  return std::string(text.data(), text.size());
}

TEST(http_date, is_written_in_the_first_form) {
  EXPECT_EQ(written(known), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(written(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(written(951'782'400), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(written(std::time_t{1} << 60), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(written(-(std::time_t{1} << 60)), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(http_date, is_read_in_all_three_forms) {
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(read_date(text, now), known) << text;
  }
  EXPECT_EQ(read_date("Sun Nov 16 08:49:37 1994", now), known + 10 * 86'400);
  EXPECT_EQ(read_date("Sat, 31 Dec 2016 23:59:60 GMT", now), 1'483'228'800);
}

TEST(http_date, of_two_digits_is_at_most_50_years_ahead) {
  EXPECT_EQ(written(read_date("Tuesday, 01-Jan-76 00:00:00 GMT", now).value()),
            "Wed, 01 Jan 2076 00:00:00 GMT");
  EXPECT_EQ(written(read_date("Tuesday, 01-Jan-77 00:00:00 GMT", now).value()),
            "Sat, 01 Jan 1977 00:00:00 GMT");
}

TEST(http_date, that_is_none_is_refused) {
  for (const char* text : {"",
                           "some day",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:37 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Son, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, -6 Nov 1994 08:49:37 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           ",",
                           "Sun,"}) {
    EXPECT_EQ(read_date(text, now), std::nullopt) << text;
  }
  EXPECT_EQ(read_date(std::string_view("Sun, 06 Nov 1994 08:49:37\0GMT", 29), now), std::nullopt);
}

}  // namespace
}  // namespace troupe::http
