// The seed decides which of several ready cases of a select happens.
#include <gtest/gtest.h>

#include <array>

#include "simulation/seeds.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

task<std::size_t> first_of_two() {
  const auto one = channel<int>::bounded(1), other = channel<int>::bounded(1);
  one.try_send(1);
  other.try_send(2);
  const auto won = co_await select(one.receive(), other.receive());
  co_return won.index();
}

TEST(selects, win_by_the_seed) {
  std::array<int, 2> wins{};
  const seed_range all = seeds_from(1, 40);
  for_each_seed(all, [&wins](std::uint64_t seed) {
    std::array<std::size_t, 2> won{};
    for (std::size_t& each : won) {
      runtime rt({.policy = policy::simulated, .seed = seed});
      auto done = rt.spawn(first_of_two());
      rt.run();
      each = done.get();
    }
    EXPECT_EQ(won[0], won[1]);
    ++wins[won[0]];
  });
  if (all.first == all.last) return;  // a seed is repeated
  EXPECT_GT(wins[0], 5);
  EXPECT_GT(wins[1], 5);
}

}  // namespace
}  // namespace troupe::test
