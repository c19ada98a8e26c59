// What a turn can wait for besides results, and how a stop ends the wait: yield, blocking calls,
// events, stop and stop_now.
#include <algorithm>
#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class waits : public conformance {};

std::atomic<int> live{0};
struct counted {
  counted() { ++live; }
  ~counted() { --live; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
};

struct sleeper {
  event never;
  int handled = 0;
  bool was_cancelled = false;
  std::shared_ptr<std::vector<std::string>> log = std::make_shared<std::vector<std::string>>();
  explicit sleeper(std::shared_ptr<std::vector<std::string>> to) : log(std::move(to)) {}
  ~sleeper() { log->push_back("destroyed"); }
  task<> wait() {
    counted here;
    log->push_back("waits");
    try {
      co_await never.wait();
    } catch (const cancelled&) {
      log->push_back("cancelled");
      throw;
    }
  }
  task<> stubborn() {
    counted here;
    const int got = co_await blocking([] {
      std::this_thread::sleep_for(20ms);  // sleeps: a call that blocks
      return 7;
    });
    log->push_back("got " + std::to_string(got));
  }
  void note(std::string text) { log->push_back(std::move(text)); }
};

using lines = std::vector<std::string>;

// This holds for virtual time, too, since each turn takes some of it.
TEST_P(waits, a_timer_comes_though_others_never_rest) {
  runtime rt(options());
  std::atomic<bool> over{false};
  rt.spawn([](std::atomic<bool>* told) -> task<> {
    while (!told->load()) co_await yield();
  }(&over));
  rt.spawn([](std::atomic<bool>* told) -> task<> {
    co_await sleep_for(1ms);
    *told = true;
  }(&over));
  rt.run();
  EXPECT_TRUE(over);
}

TEST_P(waits, a_stop_cancels_the_suspended_turn_and_what_was_sent_before_is_handled) {
  runtime rt(options());
  auto log = std::make_shared<lines>();
  auto one = rt.spawn<sleeper>(log);
  one.tell<&sleeper::wait>();
  one.tell<&sleeper::note>("second");
  one.tell<&sleeper::wait>();
  one.tell<&sleeper::note>("fourth");
  one.stop();
  one.tell<&sleeper::note>("too late");
  rt.run();  // an actor that is stopped is no failure
  const lines seen = *log;
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), "destroyed");
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "second"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "fourth"), 1);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "waits"), 2);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "too late"), 0);
  EXPECT_EQ(rt.metrics().dead_letters, 1u);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(waits, stop_now_overtakes_a_flooded_mailbox) {
  runtime rt(options());
  auto log = std::make_shared<lines>();
  for (auto where : {0, 1}) {
    log->clear();
    auto one = where == 0 ? rt.spawn<sleeper>(log) : rt.spawn<sleeper>(on_main(), log);
    // So that the actor is constructed before the stop, on the main thread.
    if (where == 1) rt.run();
    one.tell<&sleeper::wait>();
    const int many = fewer(100'000, 10);
    for (int i = 0; i < many; ++i) one.tell<&sleeper::note>("flood");
    one.stop_now();
    rt.run();
    EXPECT_EQ(std::count(log->begin(), log->end(), "destroyed"), 1);
    EXPECT_LT(log->size(), static_cast<std::size_t>(many)) << "most never were handled";
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(waits, stop_now_joins_a_turn_that_cannot_be_cancelled_at_once) {
  runtime rt(options());
  auto log = std::make_shared<lines>();
  auto one = rt.spawn<sleeper>(log);
  auto got = one.ask<&sleeper::stubborn>();
  one.tell<&sleeper::note>("behind");
  std::thread([one] {
    std::this_thread::sleep_for(2ms);  // sleeps: so that the turn has usually begun
    one.stop_now();
  }).join();
  rt.run();
  EXPECT_EQ(live.load(), 0);
  EXPECT_EQ(log->back(), "destroyed");
  bool answered = true;
  try {
    got.get();
  } catch (const actor_stopped&) {
    answered = false;
  }
  EXPECT_EQ(answered, std::count(log->begin(), log->end(), "got 7") == 1);
}

TEST_P(waits, yield_lets_the_other_actors_have_a_turn) {
  struct counter {
    int n = 0;
    void add() { ++n; }
    int get() { return n; }
  };
  runtime rt(options());
  auto other = rt.spawn<counter>();
  auto polite = [](ref<counter> to) -> task<int> {
    counted here;
    for (int i = 0; i < 100; ++i) {
      to.tell<&counter::add>();
      co_await yield();
    }
    const int seen = co_await to.ask<&counter::get>();
    co_return seen;
  };
  auto got = rt.spawn(polite(other));
  auto both = [](int n) -> task<int> {
    int sum = 0;
    for (int i = 0; i < n; ++i) {
      co_await yield();
      ++sum;
    }
    co_return sum;
  };
  auto together = [both]() -> task<int> {
    auto one = both(10);
    auto two = both(20);
    const auto [a, b] = co_await when_all(std::move(one), std::move(two));
    co_return a + b;
  };
  auto sum = rt.spawn(together());
  rt.run();
  EXPECT_EQ(got.get(), 100);
  EXPECT_EQ(sum.get(), 30);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(waits, blocking_gives_a_value_or_an_exception_and_holds_no_worker) {
  runtime rt(options());
  auto use = []() -> task<int> {
    std::string said;
    try {
      co_await blocking([]() -> int { throw std::runtime_error("no disk"); });
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    if (said != "no disk") co_return -1;
    auto owned = std::make_unique<int>(5);
    auto read = [owned = std::move(owned)] { return *owned; };
    const int five = co_await blocking(std::move(read));
    co_await blocking([] {});
    co_return five;
  };
  auto got = rt.spawn(use());
  auto outside = rt.blocking([] { return std::string("outside"); });
  rt.run();
  EXPECT_EQ(got.get(), 5);
  EXPECT_EQ(outside.get(), "outside");
}

TEST_P(waits, more_blocking_calls_than_threads_take_turns_and_none_is_lost) {
  runtime_options chosen = options();
  chosen.blocking_threads = 3;
  runtime rt(chosen);
  std::atomic<int> at_once{0}, most{0}, done{0};
  for (int i = 0; i < 60; ++i) {
    static_cast<void>(rt.blocking([&] {
      const int now = ++at_once;
      for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(1ms);  // sleeps: a call that blocks
      --at_once;
      ++done;
    }));
  }
  rt.run();
  EXPECT_EQ(done.load(), 60);
  EXPECT_LE(most.load(), 3);
  chosen.blocking_threads = 0;
  EXPECT_THROW(runtime{chosen}, option_error);
  chosen.blocking_threads = 1025;
  EXPECT_THROW(runtime{chosen}, option_error);
}

TEST_P(waits, blocking_outside_of_a_handler_says_what_to_do) {
  runtime rt(options());
  EXPECT_THROW(static_cast<void>(blocking([] {})), usage_error);
  rt.run();
}

TEST_P(waits, an_event_wakes_all_who_wait_and_a_timeout_gives_up) {
  runtime rt(options());
  event opened;
  std::atomic<int> in{0}, gave_up{0};
  auto admission_ticket = [](event door, std::atomic<int>* count) -> task<> {
    counted here;
    co_await door.wait();
    ++*count;
  };
  auto impatient = [](event door, std::atomic<int>* count) -> task<> {
    counted here;
    for (int i = 0; i < 50; ++i) {
      bool late = false;
      try {
        co_await door.wait().timeout(100us);
      } catch (const timed_out&) {
        late = true;
      }
      if (late) ++*count;
    }
  };
  event never;
  for (int i = 0; i < 20; ++i) static_cast<void>(rt.spawn(admission_ticket(opened, &in)));
  static_cast<void>(rt.spawn(impatient(never, &gave_up)));
  rt.after(5ms, [opened] { opened.set(); });
  rt.run();
  EXPECT_EQ(in.load(), 20);
  EXPECT_EQ(gave_up.load(), 50);
  EXPECT_TRUE(opened.is_set());
  opened.reset();
  EXPECT_FALSE(opened.is_set());
  EXPECT_EQ(live.load(), 0);
}

TEST_P(waits, a_latch_opens_with_the_last) {
  runtime rt(options());
  latch all(3);
  EXPECT_FALSE(all.is_open());
  auto waiter = [](latch of) -> task<int> {
    co_await of.wait();
    co_return 1;
  };
  auto got = rt.spawn(waiter(all));
  for (int i = 0; i < 3; ++i) rt.post([all] { all.count_down(); });
  rt.run();
  EXPECT_EQ(got.get(), 1);
  EXPECT_TRUE(all.is_open());
  EXPECT_THROW(all.count_down(), usage_error);
  EXPECT_TRUE(latch(0).is_open());
}

TROUPE_TEST_EACH(waits, all_settings);

}  // namespace
}  // namespace troupe::test
