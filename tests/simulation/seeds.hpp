// Sweeps over seeds: which seeds a test runs, and the line that repeats one of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace troupe::test {

// The name of the running test, as --gtest_filter takes it.
inline std::string running_test() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return info == nullptr ? std::string("none")
                         : std::string(info->test_suite_name()) + "." + info->name();
}

// The suite of the running test, as ctest names it after its kind.
inline std::string running_suite() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  if (info == nullptr) return "none";
  std::string name = info->test_suite_name();
  if (info->value_param() != nullptr) name.erase(0, name.find('/') + 1);
  if (info->type_param() != nullptr) name.erase(name.rfind('/'));
  return name;
}

inline std::string repeat_line(std::uint64_t seed) {
  return "reproduce: TROUPE_SEED=" + std::to_string(seed) + " ctest --preset release -R '/" +
         running_suite() + "$'";
}

struct seed_range {
  std::uint64_t first = 1, last = 1;  // both run
};

// TROUPE_SEED=N repeats seed N alone: the runtime takes it from there as well.
inline seed_range seeds_from(std::uint64_t first, std::uint64_t count) {
  if (const char* chosen = std::getenv("TROUPE_SEED")) {
    const std::uint64_t seed = std::strtoull(chosen, nullptr, 10);
    return {seed, seed};
  }
  return {first, first + count - 1};
}

// `daily` seeds from 1 on, and `deep` of them under `./test --deep`; TROUPE_SEED as above.
// TROUPE_SEEDS=FIRST-LAST runs a part of the deep ones, as if there were 10,000 of them: this is
// how a slice of `./test --deep` shares them among processes.
inline seed_range chosen_seeds(std::uint64_t daily, std::uint64_t deep = 10'000) {
  const char* const part = std::getenv("TROUPE_SEEDS");
  if (part == nullptr || std::getenv("TROUPE_SEED") != nullptr)
    return seeds_from(1, std::getenv("TROUPE_DEEP") != nullptr ? deep : daily);
  constexpr std::uint64_t whole = 10'000;
  char* rest = nullptr;
  const std::uint64_t first = std::strtoull(part, &rest, 10);
  const std::uint64_t last = *rest == '-' ? std::strtoull(rest + 1, &rest, 10) : 0;
  if (first == 0 || last < first || last > whole || *rest != '\0') {
    throw std::invalid_argument("TROUPE_SEEDS is FIRST-LAST, both from 1 to 10000, not " +
                                std::string(part));
  }
  return {(first - 1) * deep / whole + 1, last * deep / whole};
}

// Calls test(seed) for each seed. The first failure ends it, with the line that repeats it.
template <class Test>
void for_each_seed(const seed_range& seeds, Test test) {
  for (std::uint64_t seed = seeds.first;; ++seed) {
    const testing::ScopedTrace line(__FILE__, __LINE__, repeat_line(seed));
    try {
      test(seed);
    } catch (const std::exception& failed) {
      ADD_FAILURE() << failed.what();
    }
    if (testing::Test::HasFailure() || seed >= seeds.last) return;
  }
}

// Fails unless one of 100 seeds finds a planted mistake. `wrong_with(seed)` returns a description
// of the mistake, or "" if the seed does not find it.
template <class Test>
void expect_found(Test wrong_with) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string wrong = wrong_with(seed);
    if (wrong.empty()) continue;
    std::cout << "found with seed " << seed << ": " << wrong.substr(0, 200) << '\n';
    return;
  }
  FAIL() << "no seed finds the mistake";
}

}  // namespace troupe::test
