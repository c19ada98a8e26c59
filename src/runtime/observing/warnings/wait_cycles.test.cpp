#include "runtime/observing/warnings/wait_cycles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace troupe::observing {
namespace {

struct graph {
  std::string name;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> asks;
  std::vector<std::vector<std::size_t>> cycles;  // the asks of each, by their places
};

TEST(wait_cycles, finds_the_asks_that_wait_for_each_other) {
  const std::vector<graph> graphs{
      {"none", {}, {}},
      {"a chain", {{1, 2}, {2, 3}, {3, 4}}, {}},
      {"two", {{1, 2}, {2, 1}}, {{0, 1}}},
      {"itself", {{1, 1}}, {{0}}},
      {"three, and an ask from outside", {{9, 1}, {1, 2}, {2, 3}, {3, 1}}, {{1, 2, 3}}},
      {"two apart, with an ask between them",
       {{1, 2}, {2, 1}, {2, 3}, {3, 4}, {4, 3}},
       {{0, 1}, {3, 4}}},
      {"many calls", {{1, 2}, {1, 2}, {2, 1}}, {{0, 1, 2}}},
      {"two that share an actor", {{1, 2}, {2, 1}, {2, 3}, {3, 2}}, {{0, 1, 2, 3}}}};
  for (const graph& tested : graphs) {
    wait_cycles found;
    for (const auto& [asker, asked] : tested.asks) found.add(asker, asked);
    found.search();
    for (std::size_t i = 0; i < tested.asks.size(); ++i) {
      const std::size_t cycle = found.cycle_of(tested.asks[i].first, tested.asks[i].second);
      for (std::size_t j = 0; j < tested.asks.size(); ++j) {
        bool together = false;
        for (const auto& all : tested.cycles)
          together =
              together || (std::ranges::count(all, i) != 0 && std::ranges::count(all, j) != 0);
        const std::size_t other = found.cycle_of(tested.asks[j].first, tested.asks[j].second);
        EXPECT_EQ(cycle != wait_cycles::none && cycle == other, together)
            << tested.name << ": " << i << " and " << j;
      }
    }
  }
}

TEST(wait_cycles, takes_a_long_chain) {
  constexpr std::uint64_t actors = 100'000;
  wait_cycles found;
  for (std::uint64_t i = 1; i < actors; ++i) found.add(i, i + 1);
  found.add(actors, 1);
  found.search();
  EXPECT_NE(found.cycle_of(1, 2), wait_cycles::none);
  EXPECT_EQ(found.cycle_of(1, 2), found.cycle_of(actors, 1));
}

}  // namespace
}  // namespace troupe::observing
