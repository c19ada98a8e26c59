// seeds: runs a test once for each of 100 seeds, or only for the seed in TROUPE_SEED.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <troupe/actors.hpp>

// Calls test(runtime) with a new simulated runtime for each seed. The first failure ends it.
template <class Test>
void for_each_seed(Test test) {
  // The runtime itself reads TROUPE_SEED.
  const std::uint64_t last = std::getenv("TROUPE_SEED") == nullptr ? 100 : 1;
  for (std::uint64_t seed = 1; seed <= last && !testing::Test::HasFailure(); ++seed) {
    const std::string replay =
        last == 1 ? "replayed" : "replay it with TROUPE_SEED=" + std::to_string(seed);
    SCOPED_TRACE(replay);
    try {
      troupe::runtime rt({.policy = troupe::policy::simulated, .seed = seed});
      test(rt);
    } catch (const std::exception& failed) {
      ADD_FAILURE() << failed.what();
    }
  }
}
