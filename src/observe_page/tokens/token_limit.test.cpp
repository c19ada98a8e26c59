#include "observe_page/tokens/token_limit.hpp"

#include <gtest/gtest.h>

namespace troupe::observe_page {
namespace {

using namespace std::chrono_literals;

TEST(page_token_limit, holds_for_a_minute_and_for_one_client) {
  token_limit wrong;
  const token_limit::clock::time_point begin{};
  for (int i = 0; i < token_limit::wrong_max; ++i) {
    EXPECT_EQ(wrong.blocked_for("a", begin + 1s), 0s) << i;
    wrong.count("a", begin + i * 1ms);
  }
  EXPECT_EQ(wrong.blocked_for("a", begin + 1s), 59s);
  EXPECT_EQ(wrong.blocked_for("a", begin + 59'999ms), 1s);
  EXPECT_EQ(wrong.blocked_for("b", begin + 1s), 0s);
  EXPECT_EQ(wrong.blocked_for("a", begin + 60s), 0s);
  wrong.count("a", begin + 60s);
  EXPECT_EQ(wrong.blocked_for("a", begin + 61s), 0s) << "a new minute, with one wrong token";
}

TEST(page_token_limit, keeps_a_bounded_number_of_clients) {
  token_limit wrong;
  const token_limit::clock::time_point begin{};
  for (int i = 0; i < token_limit::wrong_max; ++i) wrong.count("newest", begin + 10s);
  for (std::size_t i = 0; i < 3 * token_limit::clients_max; ++i) {
    wrong.count(std::to_string(i), begin + i * 1us);
    EXPECT_LE(wrong.size(), token_limit::clients_max);
  }
  EXPECT_EQ(wrong.size(), token_limit::clients_max);
  EXPECT_GT(wrong.blocked_for("newest", begin + 11s), 0s) << "the oldest counts go first";
}

}  // namespace
}  // namespace troupe::observe_page
