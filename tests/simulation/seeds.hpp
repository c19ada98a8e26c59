// The seeds that a simulation runs, one after the other.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace troupe::test {

struct seed_range {
  std::uint64_t first = 1, last = 1;  // both run
};

// `daily` seeds from 1 on, and `deep` of them under `./test --deep`. TROUPE_SEED=N repeats seed N
// alone. TROUPE_SEEDS=FIRST-LAST runs a part of the deep ones, as if there were 10,000 of them:
// this is how a slice of `./test --deep` shares them among processes.
inline seed_range chosen_seeds(std::uint64_t daily, std::uint64_t deep = 10'000) {
  if (const char* chosen = std::getenv("TROUPE_SEED")) {
    const std::uint64_t seed = std::strtoull(chosen, nullptr, 10);
    return {seed, seed};
  }
  if (const char* part = std::getenv("TROUPE_SEEDS")) {
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
  return {1, std::getenv("TROUPE_DEEP") != nullptr ? deep : daily};
}

}  // namespace troupe::test
