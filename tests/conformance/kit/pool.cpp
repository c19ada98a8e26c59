// pool: how many resources there are, who gets them, and what becomes of bad and old ones.
#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct connection {
  explicit connection(int n) : number(n) {}
  int number;
  bool broken = false;
  counted alive{};
};

// Makes connections, of which each takes some time, and counts them.
struct factory {
  std::atomic<int> made{0}, now{0}, most{0};
  std::atomic<int> failures{0};  // so many attempts fail from now on

  task<connection> make() {
    const int with_this = ++now;
    for (int seen = most; seen < with_this && !most.compare_exchange_weak(seen, with_this);) {
    }
    co_await yield();
    --now;
    if (failures > 0) {
      --failures;
      throw std::runtime_error("no connection");
    }
    co_return connection(++made);
  }
};

class pools : public conformance {
 protected:
  void in_task(task<> one) {
    runtime rt(options());
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
  void TearDown() override {
    EXPECT_EQ(live, 0) << "each resource is destroyed, once";
    live = 0;
    conformance::TearDown();
  }
  auto maker() {
    return [this] { return made.make(); };
  }
  factory made;
};

TEST_P(pools, a_resource_is_used_again) {
  const pool<connection> all({.max = 3}, maker());
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 10; ++i) {
      auto one = co_await all.borrow();
      EXPECT_EQ(one->number, 1);
      EXPECT_EQ((*one).number, 1);
      EXPECT_EQ(all.counts().in_use, 1u);
    }
    EXPECT_EQ(all.counts().idle, 1u);
  };
  in_task(uses());
  EXPECT_EQ(all.counts().lent, 10u);
  EXPECT_EQ(all.counts().made, 1u);
}

TEST_P(pools, a_factory_may_be_an_ordinary_function) {
  const pool<std::unique_ptr<int>> all({}, [] { return std::make_unique<int>(4); });
  const auto uses = [&]() -> task<> {
    auto one = co_await all.borrow();
    EXPECT_EQ(**one, 4);
  };
  in_task(uses());
}

TEST_P(pools, there_are_never_more_than_the_limit) {
  const pool<connection> all({.max = 3}, maker());
  std::atomic<int> lent{0}, most{0}, uses_done{0};
  runtime rt(options());
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 20; ++i) {
      auto one = co_await all.borrow();
      const int with_this = ++lent;
      for (int seen = most; seen < with_this && !most.compare_exchange_weak(seen, with_this);) {
      }
      co_await yield();
      --lent;
      if (i % 7 == 6) one.discard();
      ++uses_done;
    }
  };
  for (int i = 0; i < 12; ++i) rt.spawn(uses());
  rt.run();
  EXPECT_EQ(uses_done, 240);
  EXPECT_LE(most, 3);
  EXPECT_LE(live, 3);
  EXPECT_EQ(all.counts().in_use, 0u);
  EXPECT_EQ(all.counts().waiting, 0u);
  EXPECT_EQ(all.counts().made, static_cast<std::uint64_t>(made.made));
}

TEST_P(pools, those_who_wait_are_served_in_order) {
  const pool<connection> all({.max = 1}, maker());
  std::vector<int> order;
  const auto uses = [&]() -> task<> {
    auto held = co_await all.borrow();
    const auto one = [&](int n) -> task<> {
      auto mine = co_await all.borrow();
      order.push_back(n);
    };
    const auto releases = [&]() -> task<> {
      EXPECT_EQ(all.counts().waiting, 4u);
      held = {};
      co_return;
    };
    co_await when_all(one(0), one(1), one(2), one(3), releases());
  };
  in_task(uses());
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST_P(pools, a_wait_ends_with_its_time_or_its_token) {
  const pool<connection> all({.max = 1}, maker());
  std::stop_source stop;
  const auto uses = [&]() -> task<> {
    auto held = co_await all.borrow();
    try {
      static_cast<void>(co_await all.borrow().timeout(2ms));
      ADD_FAILURE() << "there is only one";
    } catch (const timed_out&) {
    }
    const auto waits = [&]() -> task<> {
      try {
        static_cast<void>(co_await all.borrow().stop(stop.get_token()));
        ADD_FAILURE() << "there is only one";
      } catch (const cancelled&) {
      }
    };
    const auto stops = [&]() -> task<> {
      stop.request_stop();
      co_return;
    };
    co_await when_all(waits(), stops());
    EXPECT_EQ(all.counts().waiting, 0u);
    held = {};
    auto again = co_await all.borrow().timeout(1h);
    EXPECT_EQ(again->number, 1);
  };
  in_task(uses());
}

std::uint64_t sum_of(const pool_counts& of, double from, double to) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < of.waits.size(); ++i) {
    const bool is_last = i == pool_wait_seconds.size();
    const double bound = is_last ? 1e9 : pool_wait_seconds[i];
    if (from < bound && bound <= to) sum += of.waits[i];
  }
  return sum;
}

TEST_P(pools, a_borrow_that_is_to_end_takes_no_free_resource) {
  const pool<connection> all({.max = 1}, maker());
  bool was_stopped = false;
  const auto uses = [&]() -> task<> {
    { auto held = co_await all.borrow(); }  // it is free now
    std::stop_source enough;
    enough.request_stop();
    try {
      auto held = co_await all.borrow().stop(enough.get_token());
    } catch (const cancelled&) {
      was_stopped = true;
    }
  };
  in_task(uses());
  EXPECT_TRUE(was_stopped);
  EXPECT_EQ(all.counts().lent, 1u);

  runtime rt(options());
  const auto for_ever = [&]() -> task<> {
    for (;;) auto held = co_await all.borrow();
  };
  rt.spawn(for_ever());
  rt.after(2ms, [&] { rt.stop(stop_mode::discard); });
  rt.run();  // returns, and the runtime ends
}

TEST_P(pools, waits_are_counted_by_their_time) {
  const pool<connection> all({.max = 1}, maker());
  const auto gives_up = [&]() -> task<> {
    try {
      static_cast<void>(co_await all.borrow().timeout(40ms));
      ADD_FAILURE() << "there is only one";
    } catch (const timed_out&) {
    }
  };
  const auto waits = [&]() -> task<> { static_cast<void>(co_await all.borrow()); };
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) static_cast<void>(co_await all.borrow());
    EXPECT_EQ(all.counts().waits[0], 3u);
    EXPECT_EQ(all.counts().waited, 0ns);
    auto held = co_await all.borrow();
    const auto ends = [&]() -> task<> {
      co_await sleep_for(80ms);
      held = {};
    };
    co_await when_all(gives_up(), waits(), ends());
  };
  in_task(uses());
  const pool_counts seen = all.counts();
  EXPECT_EQ(sum_of(seen, 0, 0.0005), 4u);
  EXPECT_EQ(sum_of(seen, 0.025, 1e9), 2u) << "one that gave up, and one that was served";
  EXPECT_EQ(sum_of(seen, 0, 1e9), 6u);
  EXPECT_GE(seen.waited, 115ms);
  if (simulated()) {
    EXPECT_LE(seen.waited, 125ms);
  }
  EXPECT_EQ(seen.lent, 5u);
}

TEST_P(pools, the_limits_hold_for_the_factory_too) {
  std::atomic<int> begun{0}, ended{0};
  const auto slow_factory = [&]() -> task<connection> {
    ++begun;
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      ++ended;
      throw;
    }
    co_return connection(1);
  };
  const pool<connection> all({.max = 1}, slow_factory);
  std::stop_source stop;
  const auto uses = [&]() -> task<> {
    try {
      static_cast<void>(co_await all.borrow().timeout(2ms));
      ADD_FAILURE() << "an hour went by";
    } catch (const timed_out&) {
    }
    const auto waits = [&]() -> task<> {
      try {
        static_cast<void>(co_await all.borrow().stop(stop.get_token()));
        ADD_FAILURE() << "an hour went by";
      } catch (const cancelled&) {
      }
    };
    const auto stops = [&]() -> task<> {
      co_await sleep_for(1ms);
      stop.request_stop();
    };
    co_await when_all(waits(), stops());
    EXPECT_EQ(all.counts().in_use, 0u) << "the room for it is given back";
  };
  in_task(uses());
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(all.counts().failed, 2u);
}

TEST_P(pools, a_factory_that_fails_tells_each_who_waits) {
  const pool<connection> all({.max = 1}, maker());
  made.failures = 3;
  int failed = 0, served = 0;
  const auto uses = [&]() -> task<> {
    const auto one = [&]() -> task<> {
      try {
        auto mine = co_await all.borrow();
        ++served;
      } catch (const std::runtime_error&) {
        ++failed;
      }
    };
    co_await when_all(one(), one(), one(), one(), one());
  };
  in_task(uses());
  EXPECT_EQ(failed, 3);
  EXPECT_EQ(served, 2);
  EXPECT_EQ(all.counts().failed, 3u);
}

TEST_P(pools, a_bad_resource_is_replaced_when_it_is_borrowed) {
  std::atomic<int> checks{0};
  const auto check = [&](connection& one) -> task<bool> {
    co_await yield();
    ++checks;
    if (one.number == 2) throw std::runtime_error("no answer");
    co_return !one.broken;
  };
  const pool<connection> all({.max = 2, .check_after = 0ns}, maker(), check);
  const auto uses = [&]() -> task<> {
    {
      auto first = co_await all.borrow();
      auto second = co_await all.borrow();
      EXPECT_EQ(first->number + second->number, 3);
      first->broken = true;
      EXPECT_EQ(checks, 0) << "new ones are not checked";
    }
    auto third = co_await all.borrow();
    EXPECT_EQ(third->number, 3);
    EXPECT_GE(checks, 1) << "the pool's own look may check the other one just now";
  };
  in_task(uses());
  EXPECT_GE(checks, 2) << "both were checked; the look may have come to the third, too";
  EXPECT_EQ(all.counts().destroyed, 2u);
}

TEST_P(pools, a_resource_that_was_just_used_is_not_checked) {
  std::atomic<int> checks{0};
  const auto check = [&](connection&) {
    ++checks;
    return true;
  };
  const pool<connection> all({.check_after = 1h}, maker(), check);
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) auto one = co_await all.borrow();
  };
  in_task(uses());
  EXPECT_EQ(checks, 0);
}

TEST_P(pools, what_is_not_reusable_does_not_come_back) {
  const auto always = [](connection&) { return true; };
  const auto is_reusable = [](connection& one) {
    if (one.number == 2) throw std::runtime_error("cannot tell");
    return !one.broken;
  };
  const pool<connection> all({}, maker(), always, is_reusable);
  const auto uses = [&]() -> task<> {
    for (int i = 1; i <= 3; ++i) {
      auto one = co_await all.borrow();
      EXPECT_EQ(one->number, i);
      one->broken = i == 1;
    }
    auto again = co_await all.borrow();
    EXPECT_EQ(again->number, 3);
  };
  in_task(uses());
}

TEST_P(pools, a_discarded_resource_makes_room) {
  const pool<connection> all({.max = 1}, maker());
  const auto uses = [&]() -> task<> {
    auto one = co_await all.borrow();
    one.discard();
    EXPECT_FALSE(one);
    auto two = co_await all.borrow();
    EXPECT_EQ(two->number, 2);
    EXPECT_EQ(live, 1);
  };
  in_task(uses());
}

TEST_P(pools, a_lease_may_end_on_any_thread) {
  const pool<connection> all({.max = 1}, maker());
  runtime rt(options());
  pool<connection>::lease carried;
  const auto takes = [&]() -> task<> { carried = co_await all.borrow(); };
  rt.spawn(takes());
  rt.run();
  EXPECT_EQ(all.counts().in_use, 1u);
  std::thread([one = std::move(carried)]() mutable { one = {}; }).join();
  EXPECT_EQ(all.counts().in_use, 0u);
  EXPECT_EQ(all.counts().idle, 1u);
}

TEST_P(pools, trying_takes_only_what_is_ready) {
  const pool<connection> all({.max = 2, .check_after = 1h}, maker());
  const auto uses = [&]() -> task<> {
    EXPECT_FALSE(all.try_borrow()) << "none is made yet";
    { auto one = co_await all.borrow(); }
    {
      auto one = all.try_borrow();
      EXPECT_TRUE(one);
      EXPECT_FALSE(all.try_borrow());
    }
    EXPECT_TRUE(all.try_borrow());
  };
  in_task(uses());
}

TEST_P(pools, idle_and_old_resources_go) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  const pool<connection> all(
      {.min = 1, .max = 4, .idle_max = 60s, .life_max = 300s, .look_every = 10s}, maker());
  const auto uses = [&]() -> task<> {
    {
      auto one = co_await all.borrow();
      auto two = co_await all.borrow();
      auto three = co_await all.borrow();
    }
    EXPECT_EQ(all.counts().idle, 3u);
    co_await sleep_for(50s);
    EXPECT_EQ(all.counts().idle, 3u);
    co_await sleep_for(30s);
    EXPECT_EQ(all.counts().idle, 1u) << "down to min";
    EXPECT_EQ(all.counts().made, 3u);
    co_await sleep_for(300s);
    EXPECT_EQ(all.counts().idle, 1u);
    EXPECT_EQ(all.counts().made, 4u) << "the last one was too old, and replaced";
    EXPECT_EQ(live, 1);
  };
  in_task(uses());
}

TEST_P(pools, a_borrow_does_not_get_what_is_too_old) {
  const pool<connection> all({.life_max = 3ms, .look_every = 1h}, maker());
  const auto uses = [&]() -> task<> {
    { auto one = co_await all.borrow(); }
    co_await sleep_for(4ms);
    auto one = co_await all.borrow();
    EXPECT_EQ(one->number, 2);
    co_await sleep_for(4ms);
    one = {};
    EXPECT_EQ(all.counts().idle, 0u) << "it was too old when it came back";
  };
  in_task(uses());
}

TEST_P(pools, idle_resources_are_checked) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  int checks = 0;
  const auto check = [&](connection& one) {
    ++checks;
    return !one.broken;
  };
  const pool<connection> all({.max = 4, .look_every = 10s}, maker(), check);
  const auto uses = [&]() -> task<> {
    {
      auto one = co_await all.borrow();
      auto two = co_await all.borrow();
      two->broken = true;
    }
    co_await sleep_for(11s);
    EXPECT_EQ(checks, 2);
    EXPECT_EQ(all.counts().idle, 1u);
    co_await sleep_for(30s);
    EXPECT_EQ(checks, 5);
  };
  in_task(uses());
}

TEST_P(pools, the_least_number_is_made_and_kept) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  const pool<connection> all({.min = 3, .max = 5, .look_every = 1s}, maker());
  const auto uses = [&]() -> task<> {
    { auto one = co_await all.borrow(); }
    co_await sleep_for(10ms);
    EXPECT_EQ(all.counts().idle, 3u);
    auto one = co_await all.borrow();
    made.failures = 1;
    one.discard();
    co_await sleep_for(1s);
    EXPECT_EQ(all.counts().idle, 2u) << "the attempt failed";
    co_await sleep_for(1s);
    EXPECT_EQ(all.counts().idle, 3u);
  };
  in_task(uses());
  EXPECT_LE(made.most, 2);
}

TEST_P(pools, close_tells_all_and_waits_for_the_last) {
  const pool<connection> all({.max = 1}, maker());
  int refused = 0;
  const auto uses = [&]() -> task<> {
    auto held = co_await all.borrow();
    const auto waits = [&]() -> task<> {
      try {
        static_cast<void>(co_await all.borrow());
        ADD_FAILURE() << "it was lent";
      } catch (const pool_closed&) {
        ++refused;
      }
    };
    const auto closes = [&]() -> task<> {
      future<> gone = all.close();
      EXPECT_FALSE(gone.ready());
      held = {};
      co_await std::move(gone);
      EXPECT_EQ(live, 0);
    };
    co_await when_all(waits(), waits(), closes());
    co_await waits();
    EXPECT_FALSE(all.try_borrow());
    co_await all.close();
  };
  in_task(uses());
  EXPECT_EQ(refused, 3);
}

TEST_P(pools, an_unused_pool_closes_at_once) {
  const pool<connection> all({}, maker());
  EXPECT_TRUE(all.close().ready());
}

TEST_P(pools, a_pool_serves_several_runtimes) {
  const pool<connection> all({.min = 1, .max = 2}, maker());
  for (int i = 0; i < 3; ++i) {
    const auto uses = [&]() -> task<> { auto one = co_await all.borrow(); };
    in_task(uses());
  }
  EXPECT_LE(made.made, 2);
}

TEST_P(pools, cancelled_borrowers_lose_nothing) {
  const pool<connection> all({.max = 2}, maker());
  runtime rt(options());
  std::atomic<int> served{0};
  const auto gives_up = [&]() -> task<> {
    for (int i = 0; i < 30; ++i) {
      const auto borrows = [&]() -> task<> {
        auto one = co_await all.borrow();
        ++served;
        co_await yield();
      };
      const auto ends = [](int turns) -> task<> {
        for (int n = 0; n < turns; ++n) co_await yield();
      };
      auto any = when_any(borrows(), ends(i % 5));
      co_await std::move(any);
    }
  };
  for (int i = 0; i < 8; ++i) rt.spawn(gives_up());
  rt.run();
  EXPECT_GT(served, 0);
  EXPECT_EQ(all.counts().in_use, 0u);
  EXPECT_EQ(all.counts().waiting, 0u);
  EXPECT_LE(live, 2);
}

TEST_P(pools, a_runtime_may_end_while_parties_wait) {
  for (int i = 0; i < 5; ++i) {
    const pool<connection> all({.min = 2, .max = 1 + 2}, maker());
    const auto holds = [&]() -> task<> {
      auto one = co_await all.borrow();
      co_await sleep_for(1h);
    };
    runtime rt(options());  // goes first: its tasks use what is above
    for (int n = 0; n < 6; ++n) rt.spawn(holds());
    if (threaded()) {
      while (all.counts().waiting == 0) std::this_thread::yield();
    } else {
      while (all.counts().waiting == 0 && rt.poll()) {
      }
    }
  }
}

TEST_P(pools, a_plain_thread_borrows_by_a_task) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the thread of the test runs the simulated program";
  const pool<int> numbers({.max = 1}, [] { return 7; });
  runtime rt(options());
  int seen = 0;
  std::thread other([&, open = rt.hold()] {
    auto held = rt.spawn(numbers.borrow().as_task()).get();
    seen = *held;
    const auto borrows = [&]() -> task<> {
      const auto late = co_await numbers.borrow().timeout(1ms);
    };
    EXPECT_THROW(rt.spawn(borrows()).get(), timed_out);
  });
  rt.run();
  other.join();
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(numbers.counts().idle, 1u);
}

TEST_P(pools, options_that_make_no_sense_are_refused) {
  using made_of_int = pool<int>;
  const auto make = [] { return 1; };
  EXPECT_THROW(made_of_int({.max = 0}, make), option_error);
  EXPECT_THROW(made_of_int({.min = 2, .max = 1}, make), option_error);
  EXPECT_THROW(made_of_int({.idle_max = 0ns}, make), option_error);
  EXPECT_THROW(made_of_int({.life_max = 0ns}, make), option_error);
  EXPECT_THROW(made_of_int({.look_every = 0ns}, make), option_error);
  EXPECT_THROW(made_of_int({.check_after = -1ns}, make), option_error);
}

TROUPE_TEST_EACH(pools, all_settings);

}  // namespace
}  // namespace troupe::test
