// retry: attempts, delays, limits, errors that are not retried, and the budget of many calls.
#include <cmath>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using end = retry_report::end;

class retries : public conformance {
 protected:
  // Runs the task to its end, and rethrows its error.
  template <class T>
  T result_of(task<T> one) {
    runtime rt(options());
    future<T> later = rt.spawn(std::move(one));
    rt.run();
    return later.get();
  }
};

struct flaky : std::runtime_error {
  explicit flaky(int n) : std::runtime_error("flaky"), call(n) {}
  int call;
};

// Fails `failures` times, and then gives the number of the call.
struct service {
  int failures = 0, calls = 0;
  task<int> call() {
    co_await yield();
    if (++calls <= failures) throw flaky(calls);
    co_return calls;
  }
};

task<int> retry_it(service& of, retry_policy policy) {
  const int answer = co_await retry(policy, [&of] { return of.call(); });
  co_return answer;
}

TEST_P(retries, the_first_success_ends_them) {
  service one{.failures = 2};
  retry_report report;
  EXPECT_EQ(result_of(retry_it(one, {.attempts = 5, .delay = 1ms, .report = &report})), 3);
  EXPECT_EQ(one.calls, 3);
  EXPECT_EQ(report.attempts, 3u);
  EXPECT_EQ(report.ended, end::succeeded);
}

TEST_P(retries, the_last_error_is_thrown_as_it_was_with_the_number_of_attempts) {
  service one{.failures = 100};
  retry_report report;
  try {
    result_of(retry_it(one, {.attempts = 4, .delay = 1us, .report = &report}));
    FAIL() << "it cannot succeed";
  } catch (const flaky& last) {
    EXPECT_EQ(last.call, 4);
  }
  EXPECT_EQ(one.calls, 4);
  EXPECT_EQ(report.attempts, 4u);
  EXPECT_EQ(report.ended, end::attempts);
}

TEST_P(retries, one_attempt_is_no_retry) {
  service one{.failures = 1};
  EXPECT_THROW(result_of(retry_it(one, {.attempts = 1})), flaky);
  EXPECT_EQ(one.calls, 1);
}

TEST_P(retries, delays_double_up_to_the_largest) {
  service one{.failures = 5};
  retry_report report;
  const retry_policy slow_policy{.attempts = 6,
                                 .delay = 1ms,
                                 .delay_max = 4ms,
                                 .jitter = retry_jitter::none,
                                 .report = &report};
  EXPECT_EQ(result_of(retry_it(one, slow_policy)), 6);
  EXPECT_EQ(report.waited, 15ms) << "1 + 2 + 4 + 4 + 4";
  EXPECT_GE(report.took, 15ms);
}

TEST_P(retries, jitter_shortens_the_delays) {
  const auto waited = [this](retry_jitter how) {
    service one{.failures = 9};
    retry_report report;
    result_of(retry_it(
        one, {.attempts = 10, .delay = 100us, .factor = 1, .jitter = how, .report = &report}));
    return report.waited;
  };
  EXPECT_EQ(waited(retry_jitter::none), 900us);
  for (int i = 0; i < 5; ++i) {
    const auto equal = waited(retry_jitter::equal), full = waited(retry_jitter::full);
    EXPECT_GE(equal, 450us);
    EXPECT_LT(equal, 900us);
    EXPECT_LT(full, 900us) << "the chance of an error is nil";
  }
}

TEST_P(retries, a_seed_repeats_the_jitter) {
  if (!simulated())
    GTEST_SKIP() << "needs the simulated policy: only the simulated policy has a seed for it";
  const auto waited = [this] {
    service one{.failures = 3};
    retry_report report;
    result_of(retry_it(one, {.attempts = 4, .report = &report}));
    return report.waited;
  };
  const auto first = waited();
  EXPECT_EQ(first, waited());
  EXPECT_GT(first, 0ns);
}

TEST_P(retries, an_attempt_that_takes_too_long_is_cancelled_and_retried) {
  int calls = 0, cancels = 0;
  const auto slow_once = [&]() -> task<int> {
    if (++calls > 1) co_return calls;
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      ++cancels;
      throw;
    }
    co_return 0;
  };
  const auto call = [&]() -> task<int> {
    const int answer = co_await retry({.delay = 1us, .attempt_time = 5ms}, slow_once);
    co_return answer;
  };
  EXPECT_EQ(result_of(call()), 2);
  EXPECT_EQ(cancels, 1);
}

struct slow_actor {
  int calls = 0, cancels = 0, limited = 0;
  task<int> call() {
    ++calls;
    if (this_call::remaining() <= 20ms) ++limited;
    try {
      if (calls == 1) co_await sleep_for(1h);
    } catch (const cancelled&) {
      ++cancels;
      throw;
    }
    co_return calls;
  }
};

TEST_P(retries, the_time_of_an_attempt_goes_with_its_asks) {
  runtime rt(options());
  auto slow = rt.spawn<slow_actor>();
  const auto call = [slow]() -> task<int> {
    const auto ask = [&] { return slow.ask<&slow_actor::call>(); };
    const int answer = co_await retry({.attempts = 9, .delay = 1us, .attempt_time = 20ms}, ask);
    co_return answer;
  };
  auto answer = rt.spawn(call());
  rt.run();
  EXPECT_GE(answer.get(), 2);
  auto counts =
      slow.ask([](slow_actor& of) { return std::pair(of.calls - of.limited, of.cancels); });
  rt.run();
  EXPECT_EQ(counts.get(), std::pair(0, 1));
}

TEST_P(retries, the_total_time_ends_a_running_attempt) {
  retry_report report;
  const auto call = [&]() -> task<> {
    const auto forever = []() -> task<> { co_await sleep_for(1h); };
    co_await retry({.attempts = 9, .total_time = 5ms, .report = &report}, forever);
  };
  EXPECT_THROW(result_of(call()), timed_out);
  EXPECT_EQ(report.attempts, 1u);
  EXPECT_EQ(report.ended, end::total_time);
  EXPECT_GE(report.took, 5ms);
}

TEST_P(retries, no_delay_goes_beyond_the_total_time) {
  service one{.failures = 100};
  retry_report report;
  EXPECT_THROW(result_of(retry_it(one, {.attempts = 9,
                                        .delay = 1h,
                                        .delay_max = 1h,
                                        .jitter = retry_jitter::none,
                                        .total_time = 1min,
                                        .report = &report})),
               flaky);
  EXPECT_EQ(report.attempts, 1u);
  EXPECT_EQ(report.waited, 0ns);
  EXPECT_EQ(report.ended, end::total_time);
}

TEST_P(retries, an_error_that_names_a_time_is_waited_for) {
  retry_report report;
  int calls = 0;
  const auto call = [&]() -> task<int> {
    const auto busy_once = [&]() -> task<int> {
      if (++calls == 1) throw try_later("busy", 7ms);
      co_return calls;
    };
    const int answer = co_await retry({.delay = 1us, .report = &report}, busy_once);
    co_return answer;
  };
  EXPECT_EQ(result_of(call()), 2);
  EXPECT_EQ(report.waited, 7ms);
}

TEST_P(retries, the_predicate_decides) {
  retry_report report;
  int calls = 0;
  const auto call = [&]() -> task<> {
    const auto fails = [&]() -> task<> {
      ++calls;
      throw flaky(calls);
      co_return;
    };
    const auto retries_the_first = [](const std::exception& e) {
      return dynamic_cast<const flaky&>(e).call < 2;
    };
    co_await retry({.attempts = 9, .delay = 1us, .report = &report}, fails, retries_the_first);
  };
  EXPECT_THROW(result_of(call()), flaky);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(report.ended, end::refused);
}

TEST_P(retries, misuse_is_not_retried) {
  int calls = 0;
  const auto call = [&]() -> task<> {
    const auto wrong = [&]() -> task<> {
      ++calls;
      throw usage_error("wrong");
      co_return;
    };
    co_await retry({.attempts = 9, .delay = 1us}, wrong);
  };
  EXPECT_THROW(result_of(call()), usage_error);
  EXPECT_EQ(calls, 1);
}

TEST_P(retries, an_error_says_itself_whether_it_is_worth_another_attempt) {
  struct own : error {
    own(verdict::again when) : error("own"), when_(when) {}
    verdict judged() const noexcept override {
      return {verdict::party::upstream, verdict::effect::none, when_};
    }
    verdict::again when_;
  };
  for (const auto when : {verdict::again::never, verdict::again::now, verdict::again::later}) {
    int calls = 0;
    const auto call = [&]() -> task<> {
      const auto fails = [&]() -> task<> {
        ++calls;
        throw own(when);
        co_return;
      };
      co_await retry({.attempts = 3, .delay = 1us}, fails);
    };
    EXPECT_THROW(result_of(call()), own);
    EXPECT_EQ(calls, when == verdict::again::never ? 1 : 3);
  }
}

TEST_P(retries, cancellation_is_never_retried) {
  retry_report report;
  int calls = 0;
  const auto always = [](const std::exception_ptr&) { return true; };
  const auto call = [&]() -> task<> {
    const auto stopped = [&]() -> task<> {
      ++calls;
      throw cancelled("stopped");
      co_return;
    };
    co_await retry({.attempts = 9, .delay = 1us, .report = &report}, stopped, always);
  };
  EXPECT_THROW(result_of(call()), cancelled);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(report.ended, end::cancelled);
}

TEST_P(retries, a_delay_can_be_cancelled) {
  service one{.failures = 100};
  retry_report report;
  const auto call = [&]() -> task<> {
    auto retried = retry_it(one, {.attempts = 9,
                                  .delay = 1h,
                                  .delay_max = 1h,
                                  .jitter = retry_jitter::none,
                                  .report = &report});
    co_await std::move(retried).timeout(5ms);
  };
  EXPECT_THROW(result_of(call()), timed_out);
  EXPECT_EQ(one.calls, 1);
  EXPECT_EQ(report.attempts, 1u);
  EXPECT_EQ(report.ended, end::cancelled);
}

TEST_P(retries, an_attempt_knows_its_number_and_the_last_error) {
  std::vector<unsigned> numbers;
  const auto call = [&]() -> task<> {
    const auto fails = [&](const retry_attempt& attempt) -> task<> {
      numbers.push_back(attempt.number);
      EXPECT_EQ(attempt.last_error == nullptr, attempt.number == 1);
      throw flaky(1);
      co_return;
    };
    co_await retry({.attempts = 3, .delay = 1us}, fails);
  };
  EXPECT_THROW(result_of(call()), flaky);
  EXPECT_EQ(numbers, (std::vector{1u, 2u, 3u}));
}

TEST_P(retries, an_error_of_the_callable_itself_counts_as_the_attempts) {
  int calls = 0;
  const auto call = [&]() -> task<int> {
    const auto throws_once = [&]() -> future<int> {
      if (++calls == 1) throw flaky(1);
      promise<int> ready;
      future<int> later = ready.get_future();
      ready.set_value(calls);
      return later;
    };
    const int answer = co_await retry({.delay = 1us}, throws_once);
    co_return answer;
  };
  EXPECT_EQ(result_of(call()), 2) << "and a future is as good as a task";
}

TEST_P(retries, what_the_callable_captures_is_destroyed_once) {
  ASSERT_EQ(live, 0);
  const auto call = [](std::string text) -> task<std::string> {
    int calls = 0;
    auto make = [&calls, text, held = counted()]() -> task<std::string> {
      co_await yield();
      if (++calls < 3) throw flaky(calls);
      co_return text;
    };
    std::string answer = co_await retry({.attempts = 5, .delay = 1us}, std::move(make));
    co_return answer;
  };
  EXPECT_EQ(result_of(call("a text that is too long for the inside of a string")),
            "a text that is too long for the inside of a string");
  EXPECT_EQ(live, 0);
}

TEST_P(retries, a_policy_that_makes_no_sense_is_refused) {
  service one;
  EXPECT_THROW(result_of(retry_it(one, {.attempts = 0})), option_error);
  EXPECT_THROW(result_of(retry_it(one, {.delay = -1ns})), option_error);
  EXPECT_THROW(result_of(retry_it(one, {.factor = 0.5})), option_error);
  EXPECT_THROW(result_of(retry_it(one, {.attempt_time = 0ns})), option_error);
  EXPECT_THROW(result_of(retry_it(one, {.total_time = 0ns})), option_error);
  EXPECT_EQ(one.calls, 0);
}

TEST_P(retries, a_budget_limits_them_over_many_calls) {
  const retry_budget budget({.ratio = 0.1, .per_second = 0, .kept = 10});
  int attempts = 0;
  const auto call = [&]() -> task<> {
    const auto fails = [&]() -> task<> {
      ++attempts;
      throw flaky(1);
      co_return;
    };
    for (int i = 0; i < 200; ++i) {
      try {
        co_await retry({.attempts = 3, .delay = 1ns, .budget = &budget}, fails);
      } catch (const flaky&) {
      }
    }
  };
  result_of(call());
  EXPECT_GE(attempts, 200 + 10 + 19);
  EXPECT_LE(attempts, 200 + 10 + 20) << "without the budget there would be 600";
}

TEST_P(retries, a_budget_without_tokens_ends_a_call_with_its_error) {
  const retry_budget budget({.ratio = 0, .per_second = 0, .kept = 1});
  service one{.failures = 100};
  retry_report report;
  EXPECT_THROW(
      result_of(retry_it(one, {.attempts = 5, .delay = 1us, .budget = &budget, .report = &report})),
      flaky);
  EXPECT_EQ(report.attempts, 2u);
  EXPECT_EQ(report.ended, end::budget);
  EXPECT_EQ(budget.left(), 0.0);
}

TEST_P(retries, a_budget_fills_with_time) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: exact times need virtual time";
  const retry_budget budget({.ratio = 0, .per_second = 2, .kept = 5});
  const auto call = [&]() -> task<> {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
    co_await sleep_for(1s);
    EXPECT_TRUE(budget.take());
    EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
    co_await sleep_for(1h);
    EXPECT_EQ(budget.left(), 5.0);
  };
  result_of(call());
}

TEST_P(retries, a_budget_that_makes_no_sense_is_refused) {
  EXPECT_THROW(retry_budget({.ratio = -1}), option_error);
  EXPECT_THROW(retry_budget({.ratio = std::nan("")}), option_error);
  EXPECT_THROW(retry_budget({.per_second = -1}), option_error);
  EXPECT_THROW(retry_budget({.kept = 0}), option_error);
}

TROUPE_TEST_EACH(retries, all_settings);

}  // namespace
}  // namespace troupe::test
