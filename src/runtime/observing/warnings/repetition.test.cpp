#include "runtime/observing/warnings/repetition.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace troupe::observing {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(repetition, is_an_event_that_comes_again_soon) {
  repetition seen;
  EXPECT_FALSE(seen.is_again(1 * second_ns));
  EXPECT_TRUE(seen.is_again(2 * second_ns));
  EXPECT_TRUE(seen.is_again(12 * second_ns));
  EXPECT_FALSE(seen.is_again(23 * second_ns));
  EXPECT_TRUE(seen.is_again(24 * second_ns));
}

struct growth_case {
  const char* name;
  std::vector<std::pair<std::int64_t, std::uint64_t>> looks;  // seconds, numbers
  std::int64_t grown_seconds;                                 // after the last look
};

TEST(growing_number, grows_while_it_rises_without_a_pause) {
  const growth_case cases[] = {
      {"one look", {{1, 5}}, 0},
      {"constant", {{1, 5}, {2, 5}, {3, 5}}, 0},
      {"rising", {{1, 100}, {2, 120}, {3, 140}}, 2},
      {"rising with a short pause", {{1, 100}, {2, 120}, {4, 120}, {5, 130}}, 4},
      {"rising, then constant", {{1, 100}, {2, 120}, {6, 120}}, 0},
      {"by less than a tenth", {{1, 100}, {2, 105}, {3, 110}}, 0},
      {"falling in between", {{1, 100}, {2, 200}, {3, 150}, {4, 190}}, 1}};
  for (const growth_case& each : cases) {
    growing_number number;
    std::int64_t grown_ns = 0;
    for (const auto& [seconds, value] : each.looks)
      grown_ns = number.grown_ns(value, seconds * second_ns);
    EXPECT_EQ(grown_ns, each.grown_seconds * second_ns) << each.name;
  }
}

}  // namespace
}  // namespace troupe::observing
