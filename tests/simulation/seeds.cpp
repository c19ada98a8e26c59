// The sweep over seeds itself.
#include "simulation/seeds.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

// As if started with these variables alone.
seed_range chosen_with(const char* seed, const char* part, const char* deep) {
  const scoped_environment first("TROUPE_SEED", seed), second("TROUPE_SEEDS", part),
      third("TROUPE_DEEP", deep);
  return chosen_seeds(5, 2'000);
}

TEST(seeds, are_chosen_by_the_environment) {
  const struct {
    const char *seed, *part, *deep;
    std::uint64_t first, last;
  } cases[] = {{nullptr, nullptr, nullptr, 1, 5},       {nullptr, nullptr, "1", 1, 2'000},
               {nullptr, "2501-5000", "1", 501, 1'000}, {nullptr, "1-10000", nullptr, 1, 2'000},
               {"42", nullptr, nullptr, 42, 42},        {"42", "2501-5000", "1", 42, 42}};
  for (const auto& [seed, part, deep, first, last] : cases) {
    const seed_range seeds = chosen_with(seed, part, deep);
    EXPECT_EQ(seeds.first, first);
    EXPECT_EQ(seeds.last, last);
  }
  for (const char* const bad : {"", "5", "0-3", "3-2", "1-10001", "1-2x"})
    EXPECT_THROW(chosen_with(nullptr, bad, nullptr), std::invalid_argument) << bad;
}

// An exception as well. (That a failure ends the sweep is not seen here: these macros keep it from
// the test.)
TEST(seeds, are_named_by_a_failure) {
  std::vector<std::uint64_t> ran;
  EXPECT_NONFATAL_FAILURE(for_each_seed({5, 7},
                                        [&ran](std::uint64_t seed) {
                                          ran.push_back(seed);
                                          EXPECT_LT(seed, 7u);
                                        }),
                          "TROUPE_SEED=7");
  EXPECT_EQ(ran, (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_NONFATAL_FAILURE(
      for_each_seed({3, 3}, [](std::uint64_t) { throw std::runtime_error("thrown"); }),
      "TROUPE_SEED=3");
  EXPECT_EQ(repeat_line(7), "reproduce: TROUPE_SEED=7 ctest --preset release -R '/seeds$'");
}

TEST(seeds, that_find_a_mistake_are_enough) {
  expect_found([](std::uint64_t seed) { return std::string(seed == 100 ? "wrong" : ""); });
  EXPECT_FATAL_FAILURE(expect_found([](std::uint64_t) { return std::string(); }),
                       "no seed finds the mistake");
}

}  // namespace
}  // namespace troupe::test
