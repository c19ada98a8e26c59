// What the tests that measure time share.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The best of several attempts counts: a busy machine makes waits longer, never shorter.
inline constexpr int attempts_max = 12;

template <class Attempt>
void expect_within(nanoseconds bound, Attempt attempt) {
  nanoseconds best = nanoseconds::max();
  for (int i = 0; i < attempts_max && best > bound; ++i) best = std::min(best, attempt());
  EXPECT_LE(best.count(), (slow ? 5 * bound : bound).count())
      << "nanoseconds, the best of " << attempts_max;
}

inline void busy_for(nanoseconds span) {
  const auto until = clock::now() + span;
  while (clock::now() < until) {
  }
}

// Records how long each message to it waited.
struct quiet {
  std::vector<nanoseconds>* waits;
  explicit quiet(std::vector<nanoseconds>* waits) : waits(waits) { waits->reserve(64); }
  void hear(clock::time_point sent) { waits->push_back(clock::now() - sent); }
};

inline std::chrono::microseconds cpu_time_used() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace troupe::test
