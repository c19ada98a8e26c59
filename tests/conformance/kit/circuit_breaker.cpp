// circuit_breaker: when it opens, whom it refuses, and how it closes again.
#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class circuit_breakers : public conformance {
 protected:
  void in_task(task<> one) {
    runtime rt(options());
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
};

task<int> succeeds(int n) {
  co_await yield();
  co_return n;
}
task<int> fails() {
  co_await yield();
  throw std::runtime_error("down");
}
task<> call_in_vain(circuit_breaker breaker, int times) {
  for (int i = 0; i < times; ++i) {
    try {
      co_await breaker.call(fails());
      ADD_FAILURE() << "it succeeded";
    } catch (const circuit_open&) {
      ADD_FAILURE() << "call " << i << " was refused";
    } catch (const std::runtime_error&) {
    }
  }
}

TEST_P(circuit_breakers, opens_when_most_calls_fail_and_refuses_what_follows) {
  const circuit_breaker breaker({.calls_min = 5, .open_for = 1h});
  const auto calls = [&]() -> task<> {
    co_await call_in_vain(breaker, 4);
    EXPECT_EQ(breaker.state(), circuit::closed) << "fewer than calls_min";
    co_await call_in_vain(breaker, 1);
    EXPECT_EQ(breaker.state(), circuit::open);
    bool begun = false;
    const auto never = [](bool& begins) -> task<> {
      begins = true;
      co_return;
    };
    try {
      co_await breaker.call(never(begun));
      ADD_FAILURE() << "it was let through";
    } catch (const circuit_open& refused) {
      EXPECT_GT(refused.retry_after(), 59min);
      EXPECT_LE(refused.retry_after(), 1h);
    }
    EXPECT_FALSE(begun);
  };
  in_task(calls());
  const circuit_counts seen = breaker.counts();
  EXPECT_EQ(seen.state, circuit::open);
  EXPECT_EQ(seen.refused, 1u);
  EXPECT_EQ(seen.opened, 1u);
  EXPECT_GT(seen.retry_after, 59min) << "a thread outside sees the program's time";
}

TEST_P(circuit_breakers, stays_closed_below_the_failure_rate) {
  const circuit_breaker breaker({.failure_rate = 0.5, .calls_min = 2});
  const auto calls = [&]() -> task<> {
    for (int i = 0; i < 20; ++i) {
      const int a = co_await breaker.call(succeeds(i));
      EXPECT_EQ(a, i);
      const int b = co_await breaker.call(succeeds(i));
      EXPECT_EQ(b, i);
      co_await call_in_vain(breaker, 1);
    }
  };
  in_task(calls());
  EXPECT_EQ(breaker.state(), circuit::closed);
  EXPECT_EQ(breaker.counts().succeeded, 40u);
  EXPECT_EQ(breaker.counts().failed, 20u);
}

TEST_P(circuit_breakers, a_trial_that_succeeds_closes_it) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 2ms, .trials = 2});
  const auto calls = [&]() -> task<> {
    co_await call_in_vain(breaker, 1);
    EXPECT_EQ(breaker.counts().opened, 1u);
    co_await sleep_for(3ms);
    EXPECT_EQ(breaker.state(), circuit::half_open);
    const int one = co_await breaker.call(succeeds(1));
    EXPECT_EQ(one, 1);
    EXPECT_EQ(breaker.state(), circuit::half_open) << "it wants two";
    const int two = co_await breaker.call(succeeds(2));
    EXPECT_EQ(two, 2);
    EXPECT_EQ(breaker.state(), circuit::closed);
    EXPECT_EQ(breaker.counts().failed, 0u) << "the window begins anew";
  };
  in_task(calls());
}

TEST_P(circuit_breakers, a_trial_that_fails_opens_it_again) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 200ms, .trials = 5});
  const auto calls = [&]() -> task<> {
    co_await call_in_vain(breaker, 1);
    co_await sleep_for(201ms);
    co_await call_in_vain(breaker, 1);
    EXPECT_EQ(breaker.counts().opened, 2u);
    if (simulated()) {
      EXPECT_EQ(breaker.state(), circuit::open);
    }
  };
  in_task(calls());
}

TEST_P(circuit_breakers, lets_no_more_trials_through_than_it_should) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 1ms, .trials = 2});
  const auto calls = [&]() -> task<> {
    co_await call_in_vain(breaker, 1);
    co_await sleep_for(2ms);
    {
      const auto first = breaker.enter();
      const auto second = breaker.enter();
      EXPECT_THROW(static_cast<void>(breaker.enter()), circuit_open);
    }
    // Permits that were dropped give their places back.
    auto first = breaker.enter(), second = breaker.enter();
    EXPECT_EQ(breaker.state(), circuit::half_open);
    first.succeed();
    second.succeed();
    EXPECT_EQ(breaker.state(), circuit::closed);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, results_from_before_a_change_do_not_count) {
  const circuit_breaker breaker({.calls_min = 2, .open_for = 1ms});
  const auto calls = [&]() -> task<> {
    auto old = breaker.enter(), older = breaker.enter();
    co_await call_in_vain(breaker, 2);
    co_await sleep_for(2ms);
    EXPECT_EQ(breaker.state(), circuit::half_open);
    old.succeed();
    EXPECT_EQ(breaker.state(), circuit::half_open) << "it was no trial";
    auto trial = breaker.enter();
    trial.succeed();
    EXPECT_EQ(breaker.state(), circuit::closed);
    older.fail();
    EXPECT_EQ(breaker.counts().failed, 0u);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, failures_leave_the_window) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  const circuit_breaker breaker({.calls_min = 3, .window = 10s});
  const auto calls = [&]() -> task<> {
    for (int i = 0; i < 10; ++i) {
      co_await call_in_vain(breaker, 1);
      co_await sleep_for(5s);
    }
    EXPECT_EQ(breaker.state(), circuit::closed) << "never three within ten seconds";
    co_await call_in_vain(breaker, 2);
    EXPECT_EQ(breaker.counts().opened, 1u);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, cancelled_calls_count_as_neither) {
  const circuit_breaker breaker({.calls_min = 1});
  const auto calls = [&]() -> task<> {
    const auto forever = []() -> task<> { co_await sleep_for(1h); };
    try {
      co_await breaker.call(forever()).timeout(1ms);
      ADD_FAILURE() << "an hour went by";
    } catch (const timed_out&) {
    }
    EXPECT_EQ(breaker.state(), circuit::closed);
    EXPECT_EQ(breaker.counts().succeeded + breaker.counts().failed, 0u);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, the_predicate_says_which_errors_are_failures) {
  const circuit_breaker breaker({.calls_min = 1});
  const auto calls = [&]() -> task<> {
    const auto none = [](const std::exception&) { return false; };
    try {
      co_await breaker.call(fails(), none);
      ADD_FAILURE() << "it succeeded";
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(breaker.state(), circuit::closed);
    EXPECT_EQ(breaker.counts().succeeded, 1u);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, a_callable_is_called_only_when_it_is_let_through) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 1h});
  const auto calls = [&]() -> task<> {
    int made = 0;
    auto make = [&made, held = counted()] {
      ++made;
      return fails();
    };
    try {
      co_await breaker.call(make);
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(made, 1);
    try {
      co_await breaker.call(make);
      ADD_FAILURE() << "it was let through";
    } catch (const circuit_open&) {
    }
    EXPECT_EQ(made, 1);
  };
  in_task(calls());
  EXPECT_EQ(live, 0);
}

TEST_P(circuit_breakers, retry_waits_until_it_lets_calls_through) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 4ms});
  int calls_made = 0;
  const auto calls = [&]() -> task<> {
    const auto down_once = [&]() -> task<int> {
      if (++calls_made == 1) throw std::runtime_error("down");
      co_return calls_made;
    };
    const auto attempt = [&] { return breaker.call(down_once); };
    const int answer = co_await retry({.attempts = 3, .delay = 1us}, attempt);
    EXPECT_EQ(answer, 2);
  };
  in_task(calls());
  EXPECT_EQ(breaker.state(), circuit::closed);
}

TEST_P(circuit_breakers, many_tasks_share_one) {
  const circuit_breaker breaker({.calls_min = 20, .open_for = 1h});
  std::atomic<int> refused{0}, failed{0};
  runtime rt(options());
  const auto one = [&]() -> task<> {
    for (int i = 0; i < 20; ++i) {
      try {
        co_await breaker.call(fails());
      } catch (const circuit_open&) {
        ++refused;
      } catch (const std::runtime_error&) {
        ++failed;
      }
    }
  };
  for (int i = 0; i < 10; ++i) rt.spawn(one());
  rt.run();
  EXPECT_EQ(refused + failed, 200);
  EXPECT_GE(failed, 20);
  EXPECT_LE(failed, 30) << "those that were under way when it opened";
  EXPECT_EQ(breaker.counts().refused, static_cast<std::uint64_t>(refused));
}

template <class Error>
task<> call_that_throws(circuit_breaker breaker, Error what) {
  const auto throws = [&what]() -> task<> {
    throw what;
    co_return;
  };
  try {
    co_await breaker.call(throws);
    ADD_FAILURE() << "it succeeded";
  } catch (const Error&) {
  }
}

TEST_P(circuit_breakers, only_faults_of_the_service_are_its_failures) {
  const circuit_breaker breaker({.calls_min = 4, .open_for = 1h});
  const auto calls = [&]() -> task<> {
    for (int i = 0; i < 10; ++i) {
      co_await call_that_throws(breaker, usage_error("wrong"));
      co_await call_that_throws(breaker, mailbox_full("full"));
      co_await call_that_throws(breaker, cancelled("stopped"));
    }
    EXPECT_EQ(breaker.counts().succeeded, 0u) << "nothing is known of the service";
    EXPECT_EQ(breaker.counts().failed, 0u);
    for (int i = 0; i < 4; ++i) co_await call_that_throws(breaker, timed_out("away"));
    EXPECT_EQ(breaker.state(), circuit::open);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, a_trial_that_shows_nothing_is_followed_by_another) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 1ns});
  const auto calls = [&]() -> task<> {
    co_await call_that_throws(breaker, timed_out("away"));
    co_await sleep_for(1ms);
    for (int i = 0; i < 3; ++i) co_await call_that_throws(breaker, usage_error("wrong"));
    EXPECT_EQ(breaker.state(), circuit::half_open);
    const int answer = co_await breaker.call(succeeds(3));
    EXPECT_EQ(answer, 3);
    EXPECT_EQ(breaker.state(), circuit::closed);
  };
  in_task(calls());
}

TEST_P(circuit_breakers, options_that_make_no_sense_are_refused) {
  EXPECT_THROW(circuit_breaker({.failure_rate = 0}), option_error);
  EXPECT_THROW(circuit_breaker({.failure_rate = 1.1}), option_error);
  EXPECT_THROW(circuit_breaker({.calls_min = 0}), option_error);
  EXPECT_THROW(circuit_breaker({.window = 9ns}), option_error);
  EXPECT_THROW(circuit_breaker({.open_for = 0ns}), option_error);
  EXPECT_THROW(circuit_breaker({.trials = 0}), option_error);
}

TEST_P(circuit_breakers, reset_closes_it) {
  const circuit_breaker breaker({.calls_min = 1, .open_for = 1h});
  breaker.enter().fail();
  EXPECT_EQ(breaker.state(), circuit::open);
  breaker.reset();
  EXPECT_EQ(breaker.state(), circuit::closed);
  breaker.enter().succeed();
}

TROUPE_TEST_EACH(circuit_breakers, all_settings);

}  // namespace
}  // namespace troupe::test
