// P6, P10: a loop of the program's own: rounds of the main thread's work with a time limit, and the
// descriptor that says that there is work for it.
#include <poll.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class own_loop : public conformance {
 protected:
  // Whether this policy has a descriptor for such loops.
  bool has_descriptor() const { return GetParam().policy != policy::one_thread; }
};

bool is_readable(int fd, std::chrono::milliseconds at_most = 0ms) {
  pollfd asked{fd, POLLIN, 0};
  return ::poll(&asked, 1, static_cast<int>(at_most.count())) == 1;
}
// Rounds until the descriptor is unreadable.
void settle(runtime& rt) {
  while (is_readable(rt.wake_descriptor())) ASSERT_TRUE(rt.poll());
}

TEST_P(own_loop, a_round_ends_at_its_limit_and_not_before) {
  struct limit {
    time_span span;
    std::chrono::milliseconds at_least;
  };
  const limit limits[] = {{time_span(), 0ms}, {-1h, 0ms}, {1us, 0ms}, {10ms, 10ms}, {30ms, 30ms}};
  runtime rt(options());
  troupe::hold open = rt.hold();
  for (const limit& one : limits) {
    const auto began = clock::now();
    EXPECT_TRUE(rt.run_once(one.span));
    EXPECT_GE(clock::now() - began, one.at_least);
    EXPECT_LT(clock::now() - began, one.at_least + 10s);
  }
}

TEST_P(own_loop, the_longest_limits_are_none) {
  const time_span limits[] = {time_span::max(), std::chrono::hours::max(), 24h * 365, 24h * 364};
  for (const time_span limit : limits) {
    runtime rt(options());
    int seen = 0;
    std::thread outside(
        [main = rt.main(), open = rt.hold(), &seen] { main.call_and_wait([&seen] { ++seen; }); });
    while (rt.run_once(limit)) {
    }
    outside.join();
    EXPECT_EQ(seen, 1);
  }
}

TEST_P(own_loop, a_round_with_a_limit_runs_what_comes_first) {
  runtime rt(options());
  int seen = 0;
  std::thread outside([main = rt.main(), open = rt.hold(), &seen] {
    for (int i = 0; i < 100; ++i) main.post([&seen] { ++seen; });
  });
  const auto began = clock::now();
  while (rt.run_once(1min)) {
  }
  outside.join();
  EXPECT_EQ(seen, 100);
  EXPECT_LT(clock::now() - began, 1min);
}

TEST_P(own_loop, a_round_without_a_wait_returns_false_at_the_end) {
  runtime rt(options());
  EXPECT_FALSE(rt.run_once(0s));
  EXPECT_FALSE(rt.run_once(1h));
}

TEST_P(own_loop, the_descriptor_is_the_same_and_readable_at_first) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  const int fd = rt.wake_descriptor();
  EXPECT_GE(fd, 0);
  EXPECT_EQ(rt.wake_descriptor(), fd);
  EXPECT_TRUE(is_readable(fd));
}

TEST_P(own_loop, the_descriptor_is_readable_when_there_is_work_and_only_then) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  troupe::hold open = rt.hold();
  const int fd = rt.wake_descriptor();
  if (simulated()) {
    EXPECT_TRUE(rt.poll());
    EXPECT_TRUE(is_readable(fd)) << "always";
    return;
  }
  settle(rt);
  int seen = 0;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_FALSE(is_readable(fd));
    rt.main().post([&seen] { ++seen; });
    EXPECT_TRUE(is_readable(fd));
    EXPECT_TRUE(is_readable(fd)) << "asking does not change it";
    EXPECT_EQ(seen, i - 1);
    settle(rt);
    EXPECT_EQ(seen, i);
  }
}

TEST_P(own_loop, the_descriptor_says_that_more_is_left_than_one_round_takes) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  struct Busy {
    explicit Busy(int* seen) : count(seen) {}
    void step() {
      if (++*count < 1'000) self(this).tell<&Busy::step>();
    }
    int* count;
  };
  runtime rt(options());
  int seen = 0;
  const int fd = rt.wake_descriptor();
  std::vector<ref<Busy>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(rt.spawn<Busy>(on_main(), unchecked{&seen}));
    all.back().tell<&Busy::step>();
  }
  int rounds = 0;
  do {
    ASSERT_TRUE(is_readable(fd, 10s));
    ++rounds;
  } while (rt.poll());
  EXPECT_GE(seen, 1'000);
  EXPECT_GT(rounds, 1);
}

TEST_P(own_loop, the_descriptor_wakes_for_the_end_and_for_a_stop) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  for (const bool stops : {false, true}) {
    runtime rt(options());
    const int fd = rt.wake_descriptor();
    std::latch settled(1);
    std::thread outside([&rt, open = rt.hold(), stops, &settled]() mutable {
      settled.wait();
      if (stops) {
        rt.stop();
      } else {
        open.release();
      }
    });
    if (!simulated()) settle(rt);
    settled.count_down();
    do {
      ASSERT_TRUE(is_readable(fd, 10s));
    } while (rt.poll());
    outside.join();
  }
}

TEST_P(own_loop, a_stop_that_comes_between_two_rounds_ends_the_next_wait) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  troupe::hold open = rt.hold();
  rt.wake_descriptor();
  if (!simulated()) settle(rt);
  rt.stop(stop_mode::drain, 1h);
  const auto began = clock::now();
  while (rt.run_once()) {
  }
  EXPECT_LT(clock::now() - began, 30min);
}

TEST_P(own_loop, a_failure_leaves_the_descriptor_in_order) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  const int fd = rt.wake_descriptor();
  int seen = 0;
  rt.main().post([] { throw std::runtime_error("planted"); });
  rt.main().post([&seen] { ++seen; });
  int thrown = 0;
  for (bool more = true; more;) {
    ASSERT_TRUE(is_readable(fd, 10s));
    try {
      more = rt.poll();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(seen, 1);
}

TEST_P(own_loop, several_failures_leave_the_end_to_be_seen) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  const int fd = rt.wake_descriptor();
  for (int i = 0; i < 3; ++i) rt.main().post([] { throw std::runtime_error("planted"); });
  int thrown = 0;
  for (bool more = true; more;) {
    ASSERT_TRUE(is_readable(fd, 10s));
    try {
      more = rt.poll();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 3);
}

// A wake-up that is lost would leave the loop asleep.
TEST_P(own_loop, no_wake_up_of_the_descriptor_is_lost) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  constexpr int threads = 3;
  constexpr int sends = fewer(3'000);
  runtime rt(options());
  const int fd = rt.wake_descriptor();
  int seen = 0;
  std::vector<std::thread> outside;
  for (int i = 0; i < threads; ++i) {
    outside.emplace_back([main = rt.main(), open = rt.hold(), &seen] {
      for (int sent = 0; sent < sends; ++sent) {
        main.post([&seen] { ++seen; });
        if (sent % 16 == 0) std::this_thread::yield();
      }
    });
  }
  do {
    ASSERT_TRUE(is_readable(fd, 30s));
  } while (rt.poll());
  for (std::thread& one : outside) one.join();
  EXPECT_EQ(seen, threads * sends);
}

TEST_P(own_loop, run_after_the_descriptor_waits_as_ever) {
  if (!has_descriptor()) GTEST_SKIP() << "needs a descriptor: policy::one_thread has none";
  runtime rt(options());
  rt.wake_descriptor();
  int seen = 0;
  for (int i = 1; i <= 3; ++i) {
    std::thread outside(
        [main = rt.main(), open = rt.hold(), &seen] { main.call_and_wait([&seen] { ++seen; }); });
    rt.run();
    outside.join();
    EXPECT_EQ(seen, i);
  }
}

TROUPE_TEST_EACH(own_loop, all_settings);

}  // namespace
}  // namespace troupe::test
