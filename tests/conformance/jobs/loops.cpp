// Loops and forks of long parts: which workers take part, and which turns run beside them (P11).
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

class loops : public conformance {};

work<unsigned> fib(unsigned n) {
  if (n < 2) co_return n;
  auto [one, two] = co_await fork(fib(n - 1), fib(n - 2));
  co_return one + two;
}

template <class Body>
work<> part(const Body& body, int i) {
  body(i);
  co_return;
}
template <class Body>
work<> forks_all(const Body& body, int count) {
  std::vector<work<>> parts;
  for (int i = 0; i < count; ++i) parts.push_back(part(body, i));
  co_await fork(std::move(parts));
}

// The first part sends to this actor, whose turn must not wait for the last part.
struct listener {
  void hear(std::shared_ptr<std::atomic<int>> done, std::shared_ptr<std::atomic<int>> heard_at) {
    *heard_at = done->load();
  }
};
template <class Loop>
int count_parts_before_an_actor_is_heard(runtime& rt, const Loop& loop) {
  auto done = std::make_shared<std::atomic<int>>(0),
       heard_at = std::make_shared<std::atomic<int>>(-1);
  auto other = rt.spawn<listener>();
  const auto body = [done, heard_at, other](int i) {
    if (i == 0) other.template tell<&listener::hear>(done, heard_at);
    busy_for(std::chrono::microseconds(20));
    ++*done;
  };
  auto wants = [](const Loop& given, const auto& each) -> task<> { co_await given(each); };
  rt.spawn(wants(loop, body));
  rt.run();
  return heard_at->load();
}
// The least of a few attempts counts: a busy machine makes the turn later, never earlier.
template <class Loop>
void expect_an_actor_is_heard_before(int bound, runtime& rt, const Loop& loop) {
  int least = bound;
  for (int i = 0; i < attempts_max && least >= bound; ++i)
    least = std::min(least, count_parts_before_an_actor_is_heard(rt, loop));
  EXPECT_LT(least, bound);
}

TEST_P(loops, of_long_parts_let_others_run) {
  // With many more threads than processors the kernel delays the turn.
  if (!threaded() || workers() > 3) GTEST_SKIP() << "needs one to three workers";
  constexpr int count = 1'000;
  runtime rt(options());
  const auto by_fork = [](const auto& body) { return forks_all(body, count); };
  expect_an_actor_is_heard_before(count / 2, rt, by_fork);
  const auto by_loop = [](const auto& body) { return parallel_for(0, count, body, {.grain = 1}); };
  expect_an_actor_is_heard_before(count / 2, rt, by_loop);
}

// Behind short parts the thread checks the clock rarely.
TEST_P(loops, of_long_parts_behind_short_ones_let_others_run) {
  // With many more threads than processors the kernel delays the turn.
  if (!threaded() || workers() > 3) GTEST_SKIP() << "needs one to three workers";
  constexpr int count = 1'500;
  runtime rt(options());
  const auto by_fork = [](const auto& body) -> work<> {
    co_await fib(20);
    co_await forks_all(body, count);
  };
  expect_an_actor_is_heard_before(count * 3 / 4, rt, by_fork);
  const auto by_loop = [](const auto& body) -> work<> {
    co_await fib(20);
    co_await parallel_for(0, count, body, {.grain = 1});
  };
  expect_an_actor_is_heard_before(count / 2, rt, by_loop);
}

// The first part waits for all the others, so another thread must take the parts behind it.
TEST_P(loops, others_take_what_lies_behind_a_long_part) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  for (const int count : {2, 3, 64, 1'000}) {
    runtime rt(options());
    std::atomic<int> left{count - 1};
    parallel_for(0, count,
                 [&](int i) {
                   if (i == 0) return wait_for(left, 0);
                   if (--left == 0) left.notify_all();
                 },
                 {.grain = 1})
        .get();
    EXPECT_EQ(left.load(), 0);
  }
}

// Two parts that wait for each other can end only if both run at once.
TEST_P(loops, and_forks_of_plain_code_run_at_once) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  std::atomic<int> begun{0};
  auto meets = [](std::atomic<int>& count) -> work<> {
    if (++count == 2) count.notify_all();
    wait_for(count, 2);
    co_return;
  };
  fork(meets(begun), meets(begun)).get();
  EXPECT_EQ(begun.load(), 2);
}

TEST_P(loops, in_loops_run_each_part_once) {
  runtime rt(options());
  for (const std::size_t outer : {1u, 3u, 40u}) {
    for (const std::size_t inner : {1u, 7u, 300u}) {
      std::vector<std::vector<std::uint8_t>> ran(outer, std::vector<std::uint8_t>(inner));
      auto rows = [&](std::size_t i) {
        parallel_for(ran[i], [](std::uint8_t& one) { ++one; }, {.grain = 1}).get();
      };
      parallel_for(std::size_t{0}, outer, rows, {.grain = 1}).get();
      auto forked = [](std::vector<std::vector<std::uint8_t>>& all) -> work<> {
        std::vector<work<>> parts;
        for (auto& row : all)
          parts.push_back(parallel_for(row, [](std::uint8_t& one) { ++one; }, {.grain = 2}));
        co_await fork(std::move(parts));
      };
      auto wants = [](work<> all) -> task<> { co_await std::move(all); };
      auto ended = rt.spawn(wants(forked(ran)));
      rt.run();
      ended.get();
      for (const auto& row : ran)
        EXPECT_TRUE(std::ranges::all_of(row, [](int times) { return times == 2; }));
    }
  }
}

// A loop within a fork that has failed throws `cancelled`: code behind the loop would find calls
// that were not made.
TEST_P(loops, of_a_failed_fork_do_not_go_on) {
  runtime rt(options());
  for (int round = 0; round < fewer(50, 10); ++round) {
    std::atomic<bool> went_on{false};
    constexpr int count = 10'000;
    auto all = [&]() -> work<> {
      std::atomic<int> ran{0};
      const auto body = [&](int) { ++ran; };
      co_await parallel_for(0, count, body, {.grain = 1});
      if (ran.load() != count) went_on = true;
    };
    auto fails = []() -> work<> {
      throw std::runtime_error("beside");
      co_return;
    };
    EXPECT_THROW(fork(all(), fails()).get(), std::runtime_error);
    EXPECT_THROW(fork(fails(), all()).get(), std::runtime_error);
    EXPECT_FALSE(went_on.load());
  }
}

}  // namespace

TROUPE_TEST_EACH(loops, all_settings);

}  // namespace troupe::test
