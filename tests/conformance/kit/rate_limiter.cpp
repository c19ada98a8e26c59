// rate_limiter: how fast tokens come, who gets them, and waits that are given up.
#include <atomic>
#include <numeric>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class rate_limiters : public conformance {
 protected:
  void in_task(task<> one) {
    runtime rt(options());
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
};

TEST_P(rate_limiters, a_full_bucket_is_its_burst) {
  const rate_limiter limiter({.tokens = 1, .per = 1h, .burst = 5});
  EXPECT_EQ(limiter.available(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.try_acquire());
  EXPECT_FALSE(limiter.try_acquire());
  EXPECT_EQ(limiter.available(), 0u);
}

TEST_P(rate_limiters, all_tokens_are_taken_or_none) {
  const rate_limiter limiter({.tokens = 1, .per = 1h, .burst = 5});
  EXPECT_TRUE(limiter.try_acquire(3));
  EXPECT_FALSE(limiter.try_acquire(3));
  EXPECT_TRUE(limiter.try_acquire(2));
  EXPECT_TRUE(limiter.try_acquire(0));
}

TEST_P(rate_limiters, tells_when_tokens_will_be_there) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  const rate_limiter limiter({.tokens = 10, .per = 1s});
  const auto calls = [&]() -> task<> {
    EXPECT_EQ(limiter.wait_time(10), 0ns);
    EXPECT_TRUE(limiter.try_acquire(10));
    EXPECT_LE(limiter.wait_time(3), 300ms);
    EXPECT_GT(limiter.wait_time(3), 299ms);
    co_await sleep_for(limiter.wait_time(3));
    EXPECT_EQ(limiter.wait_time(3), 0ns);
    EXPECT_TRUE(limiter.try_acquire(3));
    EXPECT_FALSE(limiter.try_acquire(1));
    co_await sleep_for(1h);
    EXPECT_EQ(limiter.available(), 10u) << "no more than the burst";
  };
  in_task(calls());
}

TEST_P(rate_limiters, never_gives_more_than_the_rate) {
  const rate_limiter limiter({.tokens = 2, .per = 1ms, .burst = 3});
  std::chrono::nanoseconds took{0};
  const auto calls = [&]() -> task<> {
    const auto began = now();
    for (int i = 0; i < 23; ++i) co_await limiter.acquire();
    took = now() - began;
  };
  in_task(calls());
  EXPECT_GE(took, 10ms) << "3 at once, then 20 at 2 each ms";
  if (simulated()) {
    EXPECT_LT(took, 13ms);
  }
}

TEST_P(rate_limiters, odd_rates_are_exact) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  // A third of a token each ns does not add up to less.
  const rate_limiter limiter({.tokens = 7, .per = 3s});
  const auto calls = [&]() -> task<> {
    EXPECT_TRUE(limiter.try_acquire(7));
    std::uint64_t taken = 0;
    const auto began = now();
    while (now() - began < 300s) {
      co_await sleep_for(17ms);
      while (limiter.try_acquire()) ++taken;
    }
    EXPECT_GE(taken, 700u);
    EXPECT_LE(taken, 701u);
  };
  in_task(calls());
}

TEST_P(rate_limiters, those_who_wait_are_served_in_order) {
  const rate_limiter limiter({.tokens = 4, .per = 1ms, .burst = 4});
  std::vector<int> order;
  const auto calls = [&]() -> task<> {
    co_await limiter.acquire(4);
    const auto one = [&](int n, std::uint64_t tokens) -> task<> {
      co_await limiter.acquire(tokens);
      order.push_back(n);
    };
    // The first wants most: the others must not overtake it.
    co_await when_all(one(0, 4), one(1, 1), one(2, 3), one(3, 1), one(4, 2));
  };
  in_task(calls());
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST_P(rate_limiters, nobody_overtakes_by_trying) {
  const rate_limiter limiter({.tokens = 1, .per = 1s, .burst = 2});
  const auto calls = [&]() -> task<> {
    EXPECT_TRUE(limiter.try_acquire(1));
    const auto waits = [&]() -> task<> { co_await limiter.acquire(2).timeout(10s); };
    const auto tries = [&]() -> task<> {
      EXPECT_FALSE(limiter.try_acquire(1)) << "one token is there, and promised";
      EXPECT_GT(limiter.wait_time(1), 1s) << "behind those who wait";
      co_return;
    };
    if (simulated()) {
      co_await when_all(waits(), tries());
    } else {
      auto both = when_any(waits(), tries());
      co_await std::move(both);
    }
  };
  in_task(calls());
}

TEST_P(rate_limiters, a_wait_in_vain_ends_at_once) {
  const rate_limiter limiter({.tokens = 1, .per = 1h});
  const auto calls = [&]() -> task<> {
    co_await limiter.acquire();
    const auto began = now();
    try {
      co_await limiter.acquire().timeout(30min);
      ADD_FAILURE() << "half a token was taken";
    } catch (const timed_out&) {
    }
    EXPECT_LT(now() - began, 10min);
    EXPECT_GT(limiter.wait_time(), 30min) << "nothing was taken";
    EXPECT_LE(limiter.wait_time(), 1h);
  };
  in_task(calls());
}

TEST_P(rate_limiters, those_behind_move_up_when_a_wait_is_given_up) {
  const rate_limiter limiter({.tokens = 10, .per = 10ms, .burst = 1'000'000});
  std::stop_source stop;
  std::chrono::nanoseconds took{0};
  const auto calls = [&]() -> task<> {
    co_await limiter.acquire(1'000'000);
    const auto greedy = [&]() -> task<> {
      try {
        co_await limiter.acquire(1'000'000).stop(stop.get_token());
        ADD_FAILURE() << "it would take 1,000 s";
      } catch (const cancelled&) {
      }
    };
    const auto modest = [&]() -> task<> {
      const auto began = now();
      co_await limiter.acquire(5);
      took = now() - began;
    };
    const auto stops = [&]() -> task<> {
      co_await sleep_for(3ms);
      stop.request_stop();
    };
    co_await when_all(greedy(), modest(), stops());
    EXPECT_TRUE(limiter.try_acquire(0));
  };
  in_task(calls());
  EXPECT_GE(took, 3ms);
  if (simulated()) {
    EXPECT_LT(took, 10ms);
  }
}

TEST_P(rate_limiters, a_cancelled_task_leaves_the_queue) {
  const rate_limiter limiter({.tokens = 1, .per = 2ms});
  const auto calls = [&]() -> task<> {
    co_await limiter.acquire();
    for (int i = 0; i < 20; ++i) {
      const auto waits = [&]() -> task<> { co_await limiter.acquire(); };
      const auto ends = []() -> task<> { co_await yield(); };
      auto any = when_any(waits(), ends());
      co_await std::move(any);
    }
    co_await limiter.acquire();
  };
  in_task(calls());
  EXPECT_LE(limiter.wait_time(), 2ms) << "nothing is left of the waits";
}

TEST_P(rate_limiters, many_tasks_share_one) {
  const rate_limiter limiter({.tokens = 100, .per = 1ms, .burst = 10});
  std::atomic<int> done{0};
  runtime rt(options());
  const auto one = [&](std::uint64_t tokens) -> task<> {
    for (int i = 0; i < 10; ++i) co_await limiter.acquire(tokens);
    ++done;
  };
  const auto began = rt.now();
  for (int i = 0; i < 30; ++i) rt.spawn(one(1 + static_cast<std::uint64_t>(i) % 3));
  rt.run();
  EXPECT_EQ(done, 30);
  EXPECT_GE(rt.now() - began, 5'900us) << "600 tokens, of which 10 were there";
}

TEST_P(rate_limiters, more_than_the_burst_is_misuse) {
  const rate_limiter limiter({.tokens = 5});
  EXPECT_THROW(static_cast<void>(limiter.try_acquire(6)), usage_error);
  EXPECT_THROW(static_cast<void>(limiter.acquire(6)), usage_error);
  EXPECT_THROW(static_cast<void>(limiter.wait_time(6)), usage_error);
  EXPECT_THROW(rate_limiter({.tokens = 0}), option_error);
  EXPECT_THROW(rate_limiter({.per = 0ns}), option_error);
  EXPECT_THROW(rate_limiter({.burst = 1'000'000'000'001}), option_error);
}

TEST_P(rate_limiters, extremes_do_not_overflow) {
  const rate_limiter slow_one(
      {.tokens = 1, .per = std::chrono::hours(24'000), .burst = 1'000'000'000'000});
  EXPECT_TRUE(slow_one.try_acquire(1'000'000'000'000));
  EXPECT_EQ(slow_one.wait_time(1'000'000'000'000), std::chrono::nanoseconds::max());
  const rate_limiter fast_one({.tokens = 1'000'000'000'000, .per = 1ns});
  EXPECT_TRUE(fast_one.try_acquire(1'000'000'000'000));
  EXPECT_LE(fast_one.wait_time(1'000'000'000'000), 1ns);
}

TEST_P(rate_limiters, each_key_has_its_own_bucket) {
  const keyed_rate_limiter<std::string> limiters({.tokens = 2, .per = 1h});
  EXPECT_TRUE(limiters.try_acquire("a"));
  EXPECT_TRUE(limiters.try_acquire("a"));
  EXPECT_FALSE(limiters.try_acquire("a"));
  EXPECT_TRUE(limiters.try_acquire("b"));
  EXPECT_EQ(limiters.size(), 2u);
  EXPECT_GT(limiters.of("a").wait_time(), 29min);
  EXPECT_EQ(limiters.of("b").wait_time(), 0ns);
}

TEST_P(rate_limiters, keys_that_were_used_least_recently_are_forgotten) {
  const keyed_rate_limiter<int> limiters({.tokens = 1, .per = 1h}, 100);
  for (int key = 0; key < 100; ++key) EXPECT_TRUE(limiters.try_acquire(key));
  EXPECT_FALSE(limiters.try_acquire(0)) << "used again";
  EXPECT_TRUE(limiters.try_acquire(100));
  EXPECT_EQ(limiters.size(), 100u);
  EXPECT_FALSE(limiters.try_acquire(0)) << "it was not the oldest";
  EXPECT_TRUE(limiters.try_acquire(1)) << "it was";
  for (int key = 0; key < 10'000; ++key) static_cast<void>(limiters.try_acquire(key));
  EXPECT_EQ(limiters.size(), 100u);
  EXPECT_THROW(keyed_rate_limiter<int>({.tokens = 0}), option_error);
  EXPECT_THROW(keyed_rate_limiter<int>({.tokens = 1}, 0), option_error);
}

TEST_P(rate_limiters, a_wait_outlives_the_key) {
  const keyed_rate_limiter<int> limiters({.tokens = 1, .per = 2ms}, 1);
  const auto calls = [&]() -> task<> {
    co_await limiters.of(1).acquire();
    const auto waits = [&]() -> task<> { co_await limiters.of(1).acquire(); };
    const auto forgets = [&]() -> task<> {
      EXPECT_TRUE(limiters.try_acquire(2));
      co_return;
    };
    co_await when_all(waits(), forgets());
    EXPECT_EQ(limiters.size(), 1u);
  };
  in_task(calls());
}

TROUPE_TEST_EACH(rate_limiters, all_settings);

// On plain threads.
TEST(rate_limiters_that_block, tokens_come_at_the_rate) {
  const rate_limiter limiter({.tokens = 1, .per = 2ms});
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 6; ++i) limiter.acquire().get();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 10ms);
  EXPECT_FALSE(limiter.try_acquire());
}

TEST(rate_limiters_that_block, a_wait_in_vain_ends_at_once) {
  const rate_limiter limiter({.tokens = 1, .per = 1h});
  EXPECT_TRUE(limiter.try_acquire());
  EXPECT_THROW(limiter.acquire().timeout(1min).get(), timed_out);
  EXPECT_THROW(limiter.acquire().timeout(0ns).get(), timed_out);
  EXPECT_EQ(limiter.wait_time() / 1min, 59) << "whoever gave up wants nothing any more";
}

TEST(rate_limiters_that_block, a_stop_ends_the_wait) {
  const rate_limiter limiter({.tokens = 1, .per = 1h});
  EXPECT_TRUE(limiter.try_acquire());
  std::stop_source stop;
  std::atomic<int> ended{0};
  {
    std::vector<std::jthread> threads;  // one that is the first in the line, and one behind it
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        EXPECT_THROW(limiter.acquire().stop(stop.get_token()).get(), cancelled);
        ++ended;
      });
    }
    while (limiter.wait_time() <= 2h) std::this_thread::yield();
    EXPECT_EQ(ended, 0);
    stop.request_stop();
  }
  EXPECT_EQ(ended, 2);
  EXPECT_LE(limiter.wait_time(), 1h);
  EXPECT_THROW(limiter.acquire().stop(stop.get_token()).get(), cancelled) << "before the wait";
}

TEST(rate_limiters_that_block, threads_and_tasks_stand_in_one_line) {
  const rate_limiter limiter({.tokens = 1, .per = 100us});
  std::atomic<int> taken{0};
  const auto began = std::chrono::steady_clock::now();
  {
    runtime rt({.workers = 2});
    const auto calls = [&]() -> task<> {
      for (int i = 0; i < 50; ++i) {
        co_await limiter.acquire();
        ++taken;
      }
    };
    rt.spawn(calls());
    rt.spawn(calls());
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, open = rt.hold()] {
        for (int i = 0; i < 50; ++i) {
          limiter.acquire().get();
          ++taken;
        }
      });
    }
    rt.run();
  }
  EXPECT_EQ(taken, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 199 * 100us);
}

TEST(rate_limiters_that_block, a_handler_may_not_block) {
  const rate_limiter limiter;
  bool refused = false;
  const auto calls = [&]() -> task<> {
    try {
      limiter.acquire().get();
    } catch (const usage_error&) {
      refused = true;
    }
    co_return;
  };
  runtime rt;
  rt.spawn(calls());
  rt.run();
  EXPECT_TRUE(refused);
  EXPECT_TRUE(limiter.try_acquire()) << "nothing was taken";
}

TEST(rate_limiters_that_block, virtual_time_does_not_pass_for_a_thread) {
  const rate_limiter limiter({.tokens = 2, .per = 1s});
  const auto calls = [&]() -> task<> { co_await limiter.acquire(); };
  {
    runtime rt({.policy = policy::simulated});
    rt.spawn(calls());
    rt.run();
  }
  limiter.acquire().get();
  EXPECT_THROW(limiter.acquire().get(), usage_error) << "it would wait without end";
}

}  // namespace
}  // namespace troupe::test
