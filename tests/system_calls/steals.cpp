// A searcher asks the owner of a queue before it interrupts it: counts of system calls, not times.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "interposed.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

// Work of about a microsecond that the compiler cannot leave out.
std::uint64_t mixed(std::uint64_t seed) {
  for (int i = 0; i < 600; ++i) seed = (seed ^ (seed >> 29)) * 0xBF58476D1CE4E5B9u;
  return seed;
}

struct crowd_member {
  std::atomic<int>* left;
  std::uint64_t sum = 0;
  void work() {
    sum ^= mixed(sum);
    if (--*left == 0) left->notify_all();
  }
};

// A handler that makes a backlog: it gives each member so many messages.
struct crowd_leader {
  std::vector<ref<crowd_member>> all;
  void begin() {
    for (auto& member : all) member.tell<&crowd_member::work>();
  }
};

long preempted_so_far() {
  rusage now{};
  ::getrusage(RUSAGE_SELF, &now);
  return now.ru_nivcsw;
}

struct steal_counts {
  std::uint64_t steals, membarriers;
};

steal_counts share_out(int rounds) {
  constexpr int members = 300;
  std::atomic<int> left{0};
  runtime rt({.workers = 2, .policy = policy::work_stealing});
  std::vector<ref<crowd_member>> all;
  for (int i = 0; i < members; ++i) all.push_back(rt.spawn<crowd_member>(&left));
  auto leader = rt.spawn<crowd_leader>(std::move(all));
  const std::uint64_t membarriers_before = membarriers.load();
  for (int round = 0; round < rounds; ++round) {
    left = members;
    leader.tell<&crowd_leader::begin>();
    for (int seen = left.load(); seen != 0; seen = left.load()) left.wait(seen);
  }
  return {rt.metrics().total.steals, membarriers.load() - membarriers_before};
}

TEST(steals, a_busy_owner_is_asked_and_not_interrupted) {
#if TROUPE_TEST_SLOW
  GTEST_SKIP() << "needs an unsanitized build: a look at the other worker takes too long";
#endif
  // A worker that has lost its processor does not answer. The best of several short runs counts, in
  // which the system has preempted threads less than half as often as they stole.
  constexpr std::uint64_t steals_least = 20;
  double least = 1e9;
  for (int run = 0; run < 40 && least >= 0.1; ++run) {
    const long preempted_before = preempted_so_far();
    const steal_counts counts = share_out(20);
    const auto preempted = static_cast<std::uint64_t>(preempted_so_far() - preempted_before);
    if (counts.steals < steals_least || 2 * preempted > counts.steals) continue;
    least = std::min(least,
                     static_cast<double>(counts.membarriers) / static_cast<double>(counts.steals));
  }
  if (least == 1e9) GTEST_SKIP() << "needs quiet processors";
  EXPECT_LT(least, 0.1) << "membarriers for each steal";
}

}  // namespace
}  // namespace troupe::test
