#include "troupe/http/transport.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace troupe::http {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::nanoseconds longest = std::chrono::nanoseconds::max();

TEST(pace, there_is_no_limit_without_a_rate) {
  paced_arrival body;
  body.waited(24h);
  EXPECT_EQ(body.patience({0, 1s}), longest);
}

TEST(pace, the_grace_is_given_once_and_each_byte_buys_its_time) {
  paced_arrival body;
  EXPECT_EQ(body.patience({100, 5s}), 5s);
  body.waited(4s);
  EXPECT_EQ(body.patience({100, 5s}), 1s);
  body.came(300);
  EXPECT_EQ(body.patience({100, 5s}), 4s);
  body.waited(4s);
  EXPECT_EQ(body.patience({100, 5s}), 0s);
  body.waited(1s);
  EXPECT_EQ(body.patience({100, 5s}), -1s);
  EXPECT_EQ(body.bytes(), 300u);
}

TEST(pace, the_largest_values_do_not_overflow) {
  paced_arrival body(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(body.patience({1, longest}), longest);
  EXPECT_EQ(body.patience({1, longest, 0s}), longest);
  EXPECT_EQ(body.patience({1, 0s, 0s}), 0s);
  paced_arrival early(std::numeric_limits<std::uint64_t>::max());
  EXPECT_GT(early.patience({1, 0s, longest}), 24h * 365 * 30);
}

TEST(pace, bytes_that_come_early_buy_only_a_little) {
  paced_arrival body;
  body.came(1'000'000);
  EXPECT_EQ(body.patience({100, 5s, 3s}), 8s);
  body.waited(7s);
  EXPECT_EQ(body.patience({100, 5s, 3s}), 1s);
  body.came(1);  // one byte buys the time of one byte
  EXPECT_EQ(body.patience({100, 5s, 3s}), 1s + 10ms);
  body.came(1'000'000);
  EXPECT_EQ(body.patience({100, 5s, 0s}), 5s);
}

}  // namespace
}  // namespace troupe::http
