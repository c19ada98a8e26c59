// Spawned tasks that sleep for long: only their frames are kept, and they behave like any other
// task.
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "support/conformance.hpp"
#include "support/counted.hpp"
#include "support/resident.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class asleep : public conformance {
 protected:
  void TearDown() override { EXPECT_EQ(live.load(), 0); }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// How the dump names a task that has no actor: without a number.
constexpr const char* without_actor = "\n  a spawned task in troupe::task";

// Waits until that many tasks sleep and none of them has an actor.
void wait_until_asleep(runtime& rt, int count) {
  const std::string all = "suspended: " + std::to_string(count) + "\n";
  for (std::string text = rt.dump();; text = rt.dump()) {
    if (has(text, all) && has(text, without_actor) && !has(text, "a spawned task #")) return;
    std::this_thread::yield();
  }
}

task<int> nap(std::chrono::nanoseconds span, int n) {
  const counted here;
  co_await sleep_for(span);
  co_return n;
}

task<int> deep(int depth, std::chrono::nanoseconds span) {
  const counted here;
  if (depth == 0) {
    const int n = co_await nap(span, 1);
    co_return n;
  }
  const int below = co_await deep(depth - 1, span);
  co_return below + 1;
}

TEST_P(asleep, each_wakes_after_its_time_with_its_own_result) {
  runtime rt(options());
  constexpr int count = 200;
  std::vector<future<int>> all;
  for (int n = 0; n < count; ++n) all.push_back(rt.spawn(nap(1ms * (n % 20), n)));
  rt.run();
  for (int n = 0; n < count; ++n) EXPECT_EQ(all[static_cast<std::size_t>(n)].get(), n);
  EXPECT_EQ(rt.metrics().actors, 0u);
  EXPECT_EQ(rt.metrics().suspended, 0u);
}

TEST_P(asleep, none_wakes_before_its_time) {
  runtime rt(options());
  struct sleeper {
    static task<> sleep(runtime& rt, std::chrono::nanoseconds span, int& early) {
      for (int i = 0; i < 3; ++i) {
        const auto before = rt.now();
        co_await sleep_for(span);
        if (rt.now() - before < span) ++early;
      }
    }
  };
  int early = 0;
  rt.spawn(sleeper::sleep(rt, 3ms, early));
  rt.run();
  EXPECT_EQ(early, 0);
}

TEST_P(asleep, failures_go_to_the_result_or_to_run) {
  runtime rt(options());
  const auto fails = []() -> task<int> {
    co_await sleep_for(2ms);
    throw std::runtime_error("after the nap");
  };
  auto kept = rt.spawn(fails());
  rt.run();
  EXPECT_THROW(kept.get(), std::runtime_error);
  rt.spawn(fails());
  EXPECT_THROW(rt.run(), std::runtime_error);
}

// Tasks that nest deeper than the limit keep their actors. All of them continue.
TEST_P(asleep, whoever_awaits_the_sleeper_goes_on_after_it) {
  runtime rt(options());
  std::map<int, future<int>> all;
  for (const int depth : {0, 1, 2, 14, 15, 16, 17, 31, 32, 33, 34, 100})
    all.emplace(depth, rt.spawn(deep(depth, 2ms)));
  rt.run();
  for (auto& [depth, one] : all) EXPECT_EQ(one.get(), depth + 1);
}

TEST_P(asleep, many_naps_in_a_row_and_all_else_in_between) {
  runtime rt(options());
  struct sleeper {
    static task<int> sleep(unsigned seed) {
      const counted here;
      std::mt19937 random(seed);
      int woken = 0;
      for (int i = 0; i < 30; ++i) {
        switch (random() % 5) {
          case 0:
            co_await sleep_for(std::chrono::microseconds(random() % 3000));
            break;
          case 1:
            co_await yield();
            break;
          case 2:
            woken += co_await deep(static_cast<int>(random() % 3), 100us) > 0 ? 0 : 100;
            break;
          case 3: {
            auto both = when_all(nap(50us, 1), nap(1ms, 2));
            const auto [one, two] = co_await std::move(both);
            woken += one + two - 3;
            break;
          }
          default: {
            auto other = troupe::spawn(nap(200us, 7));
            co_await sleep_for(500us);
            woken += co_await std::move(other) - 7;
          }
        }
        ++woken;
      }
      co_return woken;
    }
  };
  std::vector<future<int>> all;
  for (int n = 0; n < fewer(100); ++n)
    all.push_back(rt.spawn(sleeper::sleep(static_cast<unsigned>(n))));
  rt.run();
  for (auto& one : all) EXPECT_EQ(one.get(), 30);
  EXPECT_EQ(rt.metrics().actors, 0u);
}

TEST_P(asleep, a_dump_shows_it_without_a_number) {
  if (!threaded()) GTEST_SKIP() << "needs threads: nothing runs beside the dump";
  runtime rt(options());
  auto one = rt.spawn(nap(1h, 1));
  rt.spawn(deep(3, 1h));
  wait_until_asleep(rt, 2);
  const std::string text = rt.dump();
  EXPECT_TRUE(has(text, "<int> waits at asleep.cpp:")) << text;
  EXPECT_TRUE(has(text, "for sleep_for")) << text;
  EXPECT_EQ(rt.metrics().suspended, 2u);
  EXPECT_EQ(rt.metrics().actors, 2u) << "an actor is what a task counts as";
}

// The result says that the task was stopped, as for any other task.
TEST_P(asleep, the_end_of_the_runtime_cancels_it) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: time is virtual: nobody sleeps when run() has returned";
  std::atomic<int> cancelled_ones{0};
  struct sleeper {
    static task<int> sleep(std::atomic<int>& cancelled_ones) {
      const counted here;
      try {
        co_await nap(1h, 1);
      } catch (const cancelled&) {
        ++cancelled_ones;
        throw;
      }
      co_return 1;
    }
  };
  future<int> kept;
  {
    runtime rt(options());
    kept = rt.spawn(sleeper::sleep(cancelled_ones));
    for (int i = 0; i < 9; ++i) rt.spawn(sleeper::sleep(cancelled_ones));
    wait_until_asleep(rt, 10);
  }
  EXPECT_EQ(cancelled_ones.load(), 10);
  EXPECT_THROW(kept.get(), cancelled);
}

TEST_P(asleep, it_may_do_anything_when_the_end_cancels_it) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: time is virtual: nobody sleeps when run() has returned";
  struct sleeper {
    static task<> sleep(promise<int> told, ref<sleeper> to) {
      const counted here;
      try {
        co_await sleep_for(1h);
      } catch (const cancelled&) {
        told.set_value(1);
        to.tell<&sleeper::hear>();
      }
      co_await sleep_for(1h);
    }
    void hear() {}
  };
  future<int> told;
  {
    runtime rt(options());
    promise<int> tells;
    told = tells.get_future();
    auto to = rt.spawn<sleeper>();
    rt.spawn(sleeper::sleep(std::move(tells), std::move(to)));
    wait_until_asleep(rt, 1);
  }
  EXPECT_EQ(told.get(), 1);
}

TEST_P(asleep, runtimes_end_while_tasks_wake) {
  for (int round = 0; round < fewer(60); ++round) {
    runtime rt(options());
    for (int n = 0; n < 40; ++n) rt.spawn(nap(std::chrono::microseconds(50 * n), n));
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(30 * round);
    while (threaded() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
}

TEST_P(asleep, stops_in_both_modes) {
  for (const stop_mode mode : {stop_mode::drain, stop_mode::discard}) {
    runtime rt(options());
    std::vector<future<int>> all;
    for (int n = 0; n < 20; ++n) all.push_back(rt.spawn(nap(3ms, n)));
    rt.stop(mode, 10s);
    EXPECT_NO_THROW(rt.run());
    rt.run();
  }
}

// While the weak task sleeps the program is out of work, and this is no stall.
TEST_P(asleep, a_weak_one_does_not_keep_the_program) {
  runtime rt(options());
  struct sleeper {
    static task<> sleep(bool& woken) {
      const counted here;
      co_await sleep_for(1h).weak();
      woken = true;
    }
  };
  bool woken = false;
  rt.spawn(sleeper::sleep(woken));
  rt.run();
  EXPECT_FALSE(woken);
  EXPECT_EQ(rt.metrics().suspended, 1u);
}

// The callback must not interrupt the task. It is handled when the task has ended.
TEST_P(asleep, whoever_knows_its_actor_keeps_it) {
  runtime rt(options());
  struct sleeper {
    static task<> sleep(std::shared_ptr<int> heard) {
      const counted here;
      promise<int> told;
      told.get_future().then([heard](int n) { *heard = n; }, [](std::exception_ptr) {});
      co_await sleep_for(1ms);
      told.set_value(5);
      co_await sleep_for(1ms);
      *heard = 1;
    }
  };
  auto heard = std::make_shared<int>(0);
  rt.spawn(sleeper::sleep(heard));
  rt.run();
  EXPECT_EQ(*heard, 5);
}

// An ask that the task made before it slept is still being answered.
TEST_P(asleep, an_answer_that_comes_meanwhile_waits_for_it) {
  runtime rt(options());
  struct other {
    task<int> answer(std::chrono::nanoseconds after) {
      co_await sleep_for(after);
      co_return 3;
    }
  };
  struct sleeper {
    static task<int> sleep(ref<other> of) {
      auto early = of.ask<&other::answer>(1ms);
      co_await sleep_for(5ms);
      auto late = of.ask<&other::answer>(5ms);
      co_await sleep_for(1ms);
      const int one = co_await std::move(early);
      const int two = co_await std::move(late);
      co_return one + two;
    }
  };
  std::vector<future<int>> all;
  for (int i = 0; i < 10; ++i) all.push_back(rt.spawn(sleeper::sleep(rt.spawn<other>())));
  rt.run();
  for (auto& one : all) EXPECT_EQ(one.get(), 6);
}

// While the task sleeps, other actors use its actor's slot. The search must not mistake them for
// the task.
TEST_P(asleep, no_circle_is_seen_through_who_has_its_place_now) {
  runtime rt(options());
  struct last {
    int answer() { return 1; }
  };
  struct middle {
    task<int> answer(ref<last> next) {
      co_await sleep_for(3ms);
      const int n = co_await next.ask<&last::answer>();
      co_return n;
    }
  };
  struct sleeper {
    static task<int> sleep(runtime& rt) {
      auto between = rt.spawn<middle>();
      std::vector<ref<last>> others;
      auto asked = between.ask<&middle::answer>(rt.spawn<last>());
      co_await sleep_for(1ms);
      for (int i = 0; i < 20; ++i) others.push_back(rt.spawn<last>());
      const int n = co_await std::move(asked);
      co_return n;
    }
  };
  std::vector<future<int>> all;
  for (int i = 0; i < 50; ++i) all.push_back(rt.spawn(sleeper::sleep(rt)));
  rt.run();
  for (auto& one : all) EXPECT_EQ(one.get(), 1);
}

TEST_P(asleep, a_crowd_needs_its_frames_and_little_more) {
  if (!threaded()) GTEST_SKIP() << "needs threads: time is virtual";
  if (slow) GTEST_SKIP() << "needs an unsanitized build: a sanitizer's memory";
  constexpr int count = 50'000;
  constexpr std::size_t at_most = 256;
  runtime rt(options());
  // Tasks that wait for their first turn, or have just begun to wait, take more memory, which
  // depends on how far the pool lags. The first crowds make room for the extra memory of the later
  // ones. A crowd that finds that room made shows how much a sleeping task needs.
  const auto put_to_sleep = [&rt](int from) {
    for (int n = from; n < from + count; ++n) {
      rt.spawn(nap(1h, n));
      while (n % 1000 == 0 && rt.metrics().suspended + 1000 < static_cast<std::uint64_t>(n))
        std::this_thread::yield();
    }
    wait_until_asleep(rt, from + count);
  };
  put_to_sleep(0);
  std::size_t needed = SIZE_MAX;
  for (int crowd = 1; crowd <= 5 && needed > count * at_most; ++crowd) {
    const std::size_t before = resident_bytes();
    put_to_sleep(crowd * count);
    needed = std::min(needed, resident_bytes() - before);
  }
  EXPECT_LE(needed, count * at_most);
}

TROUPE_TEST_EACH(asleep, all_settings);

}  // namespace
}  // namespace troupe::test
