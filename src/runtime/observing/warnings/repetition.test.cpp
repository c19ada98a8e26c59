#include "runtime/observing/warnings/repetition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "runtime/observing/warnings/warning_list.hpp"

namespace troupe::observing {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(repetition, is_an_event_that_comes_again_soon) {
  repetition seen;
  constexpr std::chrono::seconds lasts(10);
  EXPECT_FALSE(seen.is_again(1 * second_ns, lasts));
  EXPECT_TRUE(seen.is_again(2 * second_ns, lasts));
  EXPECT_TRUE(seen.is_again(12 * second_ns, lasts));
  EXPECT_FALSE(seen.is_again(23 * second_ns, lasts));
  EXPECT_TRUE(seen.is_again(24 * second_ns, lasts));
  EXPECT_TRUE(seen.is_again(44 * second_ns, 2 * lasts));
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

// ---- warnings that last ----

std::uint64_t active(const warning_list& list, std::chrono::nanoseconds later) {
  std::uint64_t sum = 0;
  const auto add = [&sum](std::string_view, const warning_list::kind_counts& counts) {
    sum += counts.active;
  };
  list.for_each_kind(add, std::chrono::steady_clock::now() + later);
  return sum;
}

// Looks at a large program are far apart: its warnings stay active from one to the next.
TEST(warning_list, a_warning_stays_active_for_three_looks) {
  struct pause_case {
    std::chrono::nanoseconds pause, active, over;
  };
  const pause_case cases[] = {
      {0ns, 9s, 10s}, {1s, 9s, 10s}, {3s, 9s, 10s}, {5s, 14s, 15s}, {40s, 119s, 120s}};
  runtime_options options;
  options.on_warning = [](const warning&) {};
  for (const pause_case& given : cases) {
    warning_list list(options);
    list.set_pause(given.pause);
    list.add({warning_kind::growing_class, "Rabbit"});
    EXPECT_EQ(active(list, given.active), 1u) << given.pause.count();
    EXPECT_EQ(active(list, given.over), 0u) << given.pause.count();
  }
}

TEST(warning_list, a_warning_that_comes_again_in_time_has_begun_once) {
  runtime_options options;
  options.on_warning = [](const warning&) {};
  warning_list list(options);
  std::uint64_t begun = 0;
  for (int look = 0; look < 3; ++look) {
    list.set_pause(std::chrono::seconds(look));
    list.add({warning_kind::growing_class, "Rabbit"});
  }
  list.for_each_kind(
      [&](std::string_view, const warning_list::kind_counts& counts) { begun += counts.begun; });
  EXPECT_EQ(begun, 1u);
}

}  // namespace
}  // namespace troupe::observing
