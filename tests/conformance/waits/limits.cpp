// Deadlines and stops go with a call: to its branches, to the handlers that it asks, to the threads
// of its blocking functions.
#include <atomic>
#include <stop_token>
#include <thread>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class limits : public conformance {};

template <class... Made>
auto value_of(runtime& rt, Made&&... made) {
  auto later = rt.spawn(std::forward<Made>(made)...);
  rt.run();
  return later.get();
}

task<std::string> error_of(task<> of) {
  counted here;
  std::string text = "none";
  try {
    co_await std::move(of);
  } catch (const timed_out&) {
    text = "timed out";
  } catch (const cancelled&) {
    text = "cancelled";
  } catch (const std::exception& e) {
    text = e.what();
  }
  co_return text;
}

task<> sleeps(std::chrono::nanoseconds span) {
  counted here;
  co_await sleep_for(span);
}
task<int> number(int n) {
  counted here;
  co_return n;
}

// Actors that ask each other, down to one that waits.
struct link {
  int cancelled_ones = 0;
  int handled = 0;
  task<> wait(ref<link> next, int depth) {
    counted here;
    ++handled;
    try {
      if (depth > 0) {
        co_await next.ask<&link::wait>(next, depth - 1);
      } else {
        co_await sleep_for(1h);
      }
    } catch (const cancelled&) {
      ++cancelled_ones;
      throw;
    } catch (const timed_out&) {
      ++cancelled_ones;
      throw;
    }
  }
  future<> forward(ref<link> to) { return to.ask<&link::wait>(to, 0); }
  bool is_limited() { return this_call::remaining() != std::chrono::nanoseconds::max(); }
  task<bool> is_limited_later() {
    co_await yield();
    co_return this_call::remaining() != std::chrono::nanoseconds::max();
  }
  void note() { ++handled; }
  std::pair<int, int> counts() { return {handled, cancelled_ones}; }
};

TEST_P(limits, a_task_within_its_deadline_gives_its_value) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt, with_deadline(1h, number(7))), 7);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, at_the_deadline_the_waits_end) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt, error_of(with_deadline(1ms, sleeps(1h)))), "timed out");
  EXPECT_EQ(value_of(rt, error_of(with_deadline(0ms, sleeps(1h)))), "timed out");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, the_nearest_deadline_wins) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt, error_of(with_deadline(1ms, with_deadline(1h, sleeps(1h))))), "timed out");
  EXPECT_EQ(value_of(rt, error_of(with_deadline(1h, with_deadline(1ms, sleeps(1h))))), "timed out");
  const bool is_nearest = value_of(rt, []() -> task<bool> {
    const auto inner = [](std::chrono::nanoseconds due) -> task<bool> {
      co_return this_call::deadline() == due&& this_call::remaining() <= 1h;
    };
    const auto outer = [&]() -> task<bool> {
      const auto due = this_call::deadline();
      auto within = inner(due);
      const bool same = co_await with_deadline(2h, std::move(within));
      co_return same;
    };
    auto all = outer();
    const bool same = co_await with_deadline(1h, std::move(all));
    co_return same&& this_call::remaining() == std::chrono::nanoseconds::max();
  });
  EXPECT_TRUE(is_nearest);
}

TEST_P(limits, a_stop_ends_the_waits) {
  runtime rt(options());
  std::stop_source stop;
  auto result = rt.spawn(error_of(with_stop(stop.get_token(), sleeps(1h))));
  rt.spawn(
      [](std::stop_source source) -> task<> {
        co_await sleep_for(1ms);
        source.request_stop();
      },
      stop);
  rt.run();
  EXPECT_EQ(result.get(), "cancelled");
  EXPECT_EQ(value_of(rt, error_of(with_stop(stop.get_token(), sleeps(1h)))), "cancelled");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, handlers_that_were_asked_are_cancelled) {
  runtime rt(options());
  auto first = rt.spawn<link>();
  auto second = rt.spawn<link>();
  const auto use = [](ref<link> one, ref<link> other) -> task<> {
    co_await one.ask<&link::wait>(other, 1);
  };
  std::pair<int, int> of_first, of_second;
  // on a crowded machine a short deadline passes before both handlers have begun
  for (auto limit = 1ms; of_second.first == 0; limit *= 2) {
    EXPECT_EQ(value_of(rt, error_of(with_deadline(limit, use(first, second)))), "timed out");
    auto asked_first = first.ask<&link::counts>();
    auto asked_second = second.ask<&link::counts>();
    rt.run();
    of_first = asked_first.get();
    of_second = asked_second.get();
  }
  EXPECT_EQ(of_first.first, of_first.second);
  EXPECT_EQ(of_second.first, of_second.second);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, a_callable_begins_within_the_limit) {
  runtime rt(options());
  auto one = rt.spawn<link>();
  EXPECT_TRUE(
      value_of(rt, with_deadline(1h, [one]() mutable { return one.ask<&link::is_limited>(); })));
  EXPECT_EQ(value_of(rt, with_deadline(1h, [] { return number(3); })), 3);
  std::pair<int, int> of_one;
  for (auto limit = 1ms; of_one.first == 0; limit *= 2) {  // as above
    const auto asks = [one]() mutable { return one.ask<&link::wait>(one, 0); };
    EXPECT_EQ(value_of(rt, error_of(with_deadline(limit, asks))), "timed out");
    auto counts = one.ask<&link::counts>();
    rt.run();
    of_one = counts.get();
  }
  EXPECT_EQ(of_one.first, of_one.second);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, an_ask_that_comes_too_late_is_not_handled) {
  runtime rt(options());
  auto busy = rt.spawn<link>();
  auto waiting = busy.ask<&link::wait>(busy, 0).timeout(1h);
  EXPECT_EQ(value_of(
                rt,
                [](ref<link> one) -> task<std::string> {
                  auto holds = one.ask<&link::wait>(one, 0);
                  const auto asks = [](ref<link> to) -> task<> { co_await to.ask<&link::note>(); };
                  std::string text = co_await error_of(with_deadline(1ms, asks(one)));
                  one.stop();
                  co_return text;
                },
                busy),
            "timed out");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, handlers_see_the_limit_and_a_tell_does_not) {
  runtime rt(options());
  auto one = rt.spawn<link>();
  EXPECT_TRUE(value_of(
      rt,
      [](ref<link> to) -> task<bool> {
        const auto asks = [](ref<link> of) -> task<bool> {
          const bool plain = co_await of.ask<&link::is_limited>();
          const bool later = co_await of.ask<&link::is_limited_later>();
          const auto both = co_await when_all(of.ask<&link::is_limited>(), number(1));
          co_return plain&& later&& std::get<0>(both);
        };
        auto limited = asks(to);
        const bool within = co_await with_deadline(1h, std::move(limited));
        const bool outside = co_await to.ask<&link::is_limited>();
        co_return within && !outside;
      },
      one));
}

TEST_P(limits, blocking_functions_and_lazies_see_the_limit) {
  runtime rt(options());
  EXPECT_TRUE(value_of(rt, []() -> task<bool> {
    const auto asks = []() -> task<bool> {
      const auto is_limited = [] {
        return this_call::remaining() <= 1h && this_call::stop_token().stop_possible();
      };
      const bool aside = co_await blocking(is_limited);
      const lazy<bool> later(is_limited);
      const bool wanted = co_await later;
      co_return aside&& wanted;
    };
    auto limited = asks();
    co_return co_await with_deadline(1h, std::move(limited));
  }));
}

TEST_P(limits, a_stop_token_tells_of_the_deadline) {
  if (GetParam().policy == policy::simulated)
    GTEST_SKIP() << "needs threads: its time stands still meanwhile";
  runtime rt(options());
  // A function that begins after the deadline is not run.
  std::atomic<bool> begun = false, told = false;
  const auto works = [&]() -> task<> {
    co_await blocking([&] {
      begun = true;
      const std::stop_token token = this_call::stop_token();
      while (!token.stop_requested()) std::this_thread::yield();
      told = true;
    });
  };
  // the function may return before the wait for it is cancelled
  const std::string result = value_of(rt, error_of(with_deadline(20ms, works())));
  EXPECT_TRUE(result == "timed out" || (result == "none" && told)) << result;
  EXPECT_EQ(told, begun);  // run() returns when the function has
}

TEST_P(limits, children_and_nested_groups_end) {
  runtime rt(options());
  const auto all = []() -> task<> {
    co_await scope([](task_scope& s) {
      for (int i = 0; i < 10; ++i) {
        s.spawn([]() -> task<> {
          auto one = sleeps(1h);
          auto other = with_deadline(2h, sleeps(1h));
          co_await when_all(std::move(one), std::move(other));
        });
      }
    });
  };
  EXPECT_EQ(value_of(rt, error_of(with_deadline(1ms, all()))), "timed out");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, the_end_of_the_runtime_ends_them) {
  {
    runtime rt(options());
    auto one = rt.spawn<link>();
    rt.spawn(error_of(with_deadline(
        1h, [](ref<link> to) -> task<> { co_await to.ask<&link::wait>(to, 0); }(one))));
    rt.spawn([&rt]() -> task<> {
      co_await sleep_for(1ms);
      rt.stop();
    });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(limits, many_at_once) {
  runtime rt(options());
  auto one = rt.spawn<link>();
  static constexpr int count = fewer(2'000, 10);
  EXPECT_EQ(value_of(
                rt,
                [](ref<link> to) -> task<int> {
                  int over = 0;
                  co_await scope([&](task_scope& s) {
                    for (int i = 0; i < count; ++i) {
                      s.spawn(
                          [&over, to](int n) mutable -> task<> {
                            const auto asks = [](ref<link> of) -> task<> {
                              co_await of.ask<&link::note>();
                            };
                            auto inner = error_of(
                                with_deadline(std::chrono::microseconds(n % 50), asks(to)));
                            const std::string text = co_await std::move(inner);
                            if (text == "timed out" || text == "none") ++over;
                          },
                          i);
                    }
                  });
                  co_return over;
                },
                one),
            count);
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(limits, all_settings);

}  // namespace
}  // namespace troupe::test
