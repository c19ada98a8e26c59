// A searcher asks the owner of a queue before it interrupts it: counts of system calls, not times.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
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
  std::uint64_t steals, interruptions;
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

// A tree of parts, each of which counts whether another thread than its forker's has begun it.
work<std::uint64_t> fork_halves(std::thread::id forker, int depth,
                                std::atomic<std::uint64_t>* moved) {
  const std::thread::id self = std::this_thread::get_id();
  if (self != forker) moved->fetch_add(1);
  if (depth == 0) co_return mixed(1);
  auto [left, right] =
      co_await fork(fork_halves(self, depth - 1, moved), fork_halves(self, depth - 1, moved));
  co_return left + right;
}

std::int64_t ns_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// Since it was made: whether the program had at least so many tenths of a processor.
class processor_time {
 public:
  bool had(std::int64_t tenths) const {
    return 10 * (ns_of(CLOCK_PROCESS_CPUTIME_ID) - used_) >=
           tenths * (ns_of(CLOCK_MONOTONIC) - began_);
  }

 private:
  std::int64_t began_ = ns_of(CLOCK_MONOTONIC), used_ = ns_of(CLOCK_PROCESS_CPUTIME_ID);
};

// Counts no steals if the two workers had not nearly two processors.
steal_counts share_parts(int trees) {
  constexpr int depth = 10;
  std::atomic<std::uint64_t> moved{0};
  runtime rt({.workers = 2, .policy = policy::work_stealing});
  const std::uint64_t membarriers_before = membarriers.load();
  std::uint64_t made = 0;
  bool is_quiet = false;
  rt.spawn([&]() -> task<> {
    const processor_time since;
    for (int i = 0; i < trees; ++i) {
      auto whole = fork_halves(std::this_thread::get_id(), depth, &moved);
      co_await std::move(whole);
    }
    made = membarriers.load() - membarriers_before;
    is_quiet = since.had(18);
  });
  rt.run();
  return {is_quiet ? moved.load() : 0, made};
}

// A part of about 30 us that forks. It adds one to `moved` if another thread than its forker's
// begins it.
work<std::uint64_t> fork_briefly(std::thread::id forker, std::atomic<std::uint64_t>* moved) {
  if (std::this_thread::get_id() != forker) moved->fetch_add(1);
  std::atomic<std::uint64_t> inside{0};
  co_return co_await fork_halves(std::this_thread::get_id(), 5, &inside);
}

// Calls `last` when so many parts wait in the deque.
work<std::uint64_t> put_aside(int parts, const std::function<void()>* last,
                              std::atomic<std::uint64_t>* moved) {
  if (parts == 0) {
    (*last)();
    co_return 0;
  }
  auto [others, part] = co_await fork(put_aside(parts - 1, last, moved),
                                      fork_briefly(std::this_thread::get_id(), moved));
  co_return others + part;
}

task<> put_aside_in_task(int parts, const std::function<void()>* last,
                         std::atomic<std::uint64_t>* moved) {
  auto all = put_aside(parts, last, moved);
  co_await std::move(all);
}

// Two workers sleep inside parts, and their deques hold more parts. The third worker has parts and
// answers. `steals` counts the parts that the fourth takes from the third, `interruptions` the
// sleepers' parts that it takes meanwhile.
steal_counts share_beside_sleepers(int) {
  constexpr int parts = 400, sleepers = 2;
  std::atomic<std::uint64_t> from_sleepers{0}, from_busy{0};
  std::atomic<int> ready{0};
  std::atomic<bool> ends{false};
  std::uint64_t before = 0, interruptions = 0;
  bool is_quiet = false;
  const std::function<void()> sleep = [&] {
    ++ready;
    ends.wait(false);
  };
  const std::function<void()> begin = [&] {
    while (ready != sleepers) std::this_thread::yield();
    before = from_sleepers;
  };
  runtime rt({.workers = sleepers + 2, .policy = policy::work_stealing});
  for (int i = 0; i < sleepers; ++i) rt.spawn(put_aside_in_task(parts, &sleep, &from_sleepers));
  rt.spawn([&]() -> task<> {
    auto all = put_aside(parts, &begin, &from_busy);
    const processor_time since;
    co_await std::move(all);
    is_quiet = since.had(16);
    interruptions = from_sleepers - before;
    ends = true;
    ends.notify_all();
  });
  rt.run();
  return {is_quiet && before < parts ? from_busy.load() : 0, interruptions};
}

// The fewest interruptions for each steal. A worker that has lost its processor does not answer.
// The best of several short runs counts, in which the system has preempted threads less than half
// as often as they stole. Nothing: no run was good enough, and few were such runs.
std::optional<double> fewest_interruptions(steal_counts (*run_once)(int), double enough) {
  constexpr std::uint64_t steals_least = 20;
  constexpr int quiet_runs_least = 10;
  std::optional<double> least;
  int quiet_runs = 0;
  for (int run = 0; run < 40 && least.value_or(enough) >= enough; ++run) {
    const long preempted_before = preempted_so_far();
    const steal_counts counts = run_once(20);
    const auto preempted = static_cast<std::uint64_t>(preempted_so_far() - preempted_before);
    if (counts.steals < steals_least || 2 * preempted > counts.steals) continue;
    const double share =
        static_cast<double>(counts.interruptions) / static_cast<double>(counts.steals);
    least = std::min(least.value_or(share), share);
    ++quiet_runs;
  }
  if (quiet_runs < quiet_runs_least && least.value_or(enough) >= enough) return std::nullopt;
  return least;
}

// Each test blocks workers, and needs as many as it asks for.
class steals : public testing::Test {
 protected:
  void SetUp() override {
    const auto is_set = [](const char* name) {
      const char* const value = std::getenv(name);
      return value != nullptr && *value != '\0';
    };
    if (is_set("TROUPE_POLICY")) GTEST_SKIP() << "TROUPE_POLICY is set";
    if (is_set("TROUPE_WORKERS")) GTEST_SKIP() << "TROUPE_WORKERS is set";
  }
};

TEST_F(steals, a_busy_owner_is_asked_and_not_interrupted) {
#if TROUPE_TEST_SLOW
  GTEST_SKIP() << "needs an unsanitized build: a look at the other worker takes too long";
#endif
  const auto least = fewest_interruptions(&share_out, 0.1);
  if (!least) GTEST_SKIP() << "needs quiet processors";
  EXPECT_LT(*least, 0.1) << "membarriers for each steal";
}

TEST_F(steals, an_owner_that_forks_is_asked_for_its_parts) {
#if TROUPE_TEST_SLOW
  GTEST_SKIP() << "needs an unsanitized build: a look at the other worker takes too long";
#endif
  // Each theft without an answer makes one, and runners that end make some as well.
  const auto least = fewest_interruptions(&share_parts, 1);
  if (!least) GTEST_SKIP() << "needs quiet processors";
  EXPECT_LT(*least, 1) << "membarriers for each stolen part";
}

TEST_F(steals, an_owner_that_does_not_answer_is_left_alone_while_others_do) {
#if TROUPE_TEST_SLOW
  GTEST_SKIP() << "needs an unsanitized build: an answer takes too long";
#endif
  const auto least = fewest_interruptions(&share_beside_sleepers, 0.5);
  if (!least) GTEST_SKIP() << "needs quiet processors";
  EXPECT_LT(*least, 0.5) << "parts of sleepers for each stolen part";
}

// A filter of system calls that the program installs when the runtime has started.
TEST_F(steals, a_membarrier_that_is_refused_after_the_start_is_warned_of_once) {
  using namespace std::chrono_literals;
  std::atomic<int> warnings{0};
  warning seen;
  runtime_options options{.workers = 2, .policy = policy::work_stealing};
  options.observe = true;
  options.warnings.ask = 40ms;  // so that it looks often
  options.on_warning = [&](const warning& found) {
    if (found.kind != warning_kind::membarrier_refused) return;
    if (warnings == 0) seen = found;
    ++warnings;
  };
  {
    runtime rt(options);
    refuses_membarrier = true;
    std::atomic<int> left{0};
    std::vector<ref<crowd_member>> all;
    for (int i = 0; i < 50; ++i) all.push_back(rt.spawn<crowd_member>(&left));
    auto leader = rt.spawn<crowd_leader>(std::move(all));
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (int rounds = 0; rounds < 5 || warnings == 0; ++rounds) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no warning";
      left = 50;
      leader.tell<&crowd_leader::begin>();
      for (int now = left.load(); now != 0; now = left.load()) left.wait(now);
      std::this_thread::sleep_for(5ms);  // sleeps: the workers become idle, and search
    }
  }
  refuses_membarrier = false;
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(seen.subject, "the system call membarrier");
  EXPECT_TRUE(seen.text.contains("refused")) << seen.text;
}

}  // namespace
}  // namespace troupe::test
