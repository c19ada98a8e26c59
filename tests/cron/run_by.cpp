// run_by and until_next: in virtual time, and by the clock of the system.
#include "troupe/cron/run_by.hpp"

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "cron/times.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using time_point = cron_schedule::time_point;

class cron_runs : public testing::TestWithParam<std::uint64_t> {
 protected:
  runtime_options options() const { return {.policy = policy::simulated, .seed = GetParam()}; }
  // Nothing but the simulated policy has virtual time.
  void SetUp() override {
    const char* forced = std::getenv("TROUPE_POLICY");
    if (forced != nullptr && *forced != '\0' && forced != std::string("simulated"))
      GTEST_SKIP() << "TROUPE_POLICY is set: " << forced;
  }
};

TEST_P(cron_runs, each_time_of_the_schedule_in_virtual_time) {
  std::string told;
  std::chrono::nanoseconds passed{};
  std::stop_source stop;
  runtime rt(options());
  const auto note = [&](time_point at) {
    told += text_of(at) + '\n';
    passed = std::chrono::floor<std::chrono::seconds>(now());
    if (told.size() == 60) stop.request_stop();
  };
  rt.spawn(run_by(cron_schedule("30 2 * * *", "Europe/Berlin"), note, stop.get_token(),
                  {.simulated_start = utc("2024-03-30 00:00:00")}));
  rt.run();
  EXPECT_EQ(told, "2024-03-30 01:30:00\n2024-03-31 01:00:00\n2024-04-01 00:30:00\n");
  EXPECT_EQ(passed, 48h + 30min);
}

TEST_P(cron_runs, the_simulated_program_begins_in_the_year_2000_unless_told_otherwise) {
  std::string told;
  const auto ask = [](std::string& into) -> task<> {
    const time_point at = co_await until_next(cron_schedule("@yearly"));
    into = text_of(at);
  };
  runtime rt(options());
  rt.spawn(ask(told));
  rt.run();
  EXPECT_EQ(told, "2001-01-01 00:00:00");
}

TEST_P(cron_runs, a_task_is_awaited_and_times_that_come_meanwhile_are_left_out) {
  std::vector<std::chrono::nanoseconds> began;
  std::stop_source stop;
  const auto work = [&]() -> task<> {
    began.push_back(std::chrono::floor<std::chrono::seconds>(now()));
    if (began.size() == 3) stop.request_stop();
    co_await sleep_for(90s);
  };
  runtime rt(options());
  rt.spawn(run_by(cron_schedule("* * * * *"), work, stop.get_token()));
  rt.run();
  EXPECT_EQ(began, (std::vector<std::chrono::nanoseconds>{1min, 3min, 5min}));
}

TEST_P(cron_runs, a_stop_ends_the_wait_at_once) {
  int calls = 0;
  std::chrono::nanoseconds ended{};
  std::stop_source stop;
  const auto run = [](int& count, std::stop_token token, std::chrono::nanoseconds& end) -> task<> {
    auto work = [&count] { ++count; };
    task<> runs = run_by(cron_schedule("@daily"), work, std::move(token));
    co_await std::move(runs);
    end = std::chrono::floor<std::chrono::seconds>(now());
  };
  const auto halt = [](std::stop_source by) -> task<> {
    co_await sleep_for(36h);
    by.request_stop();
  };
  runtime rt(options());
  rt.spawn(run(calls, stop.get_token(), ended));
  rt.spawn(halt(stop));
  rt.run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ended, 36h);
}

TEST_P(cron_runs, a_stop_that_was_requested_before_lets_nothing_run) {
  int calls = 0;
  std::stop_source stop;
  stop.request_stop();
  runtime rt(options());
  future<> later = rt.spawn(run_by(
      cron_schedule("@daily"), [&] { ++calls; }, stop.get_token()));
  rt.run();
  later.get();
  EXPECT_EQ(calls, 0);
}

TEST_P(cron_runs, the_error_of_the_procedure_ends_it) {
  int calls = 0;
  const auto fails = [&] {
    if (++calls == 2) throw std::runtime_error("the disk is full");
  };
  runtime rt(options());
  future<> later = rt.spawn(run_by(cron_schedule("@hourly"), fails));
  rt.run();
  EXPECT_THROW(later.get(), std::runtime_error);
  EXPECT_EQ(calls, 2);
}

TEST_P(cron_runs, a_weak_wait_lets_the_program_end) {
  int calls = 0;
  const auto other = []() -> task<> { co_await sleep_for(150s); };
  runtime rt(options());
  rt.spawn(run_by(cron_schedule("* * * * *"), [&] { ++calls; }, {.weak = true}));
  rt.spawn(other());
  rt.run();
  EXPECT_EQ(calls, 2) << "while another task ran";
}

TEST_P(cron_runs, until_next_takes_a_time_limit_and_a_stop) {
  std::string told;
  std::stop_source stop;
  const auto wait = [](std::string& into, std::stop_source by) -> task<> {
    const cron_schedule noon("0 12 * * *");
    try {
      co_await until_next(noon).timeout(1h);
    } catch (const timed_out&) {
      into += "timed out after " + std::to_string(now() / 1h) + " h, ";
    }
    static_cast<void>(co_await until_next(noon).timeout(11h));
    into += "noon at " + std::to_string(now() / 1h) + " h, ";
    after(1h, [by]() mutable { by.request_stop(); });
    try {
      co_await until_next(noon).stop(by.get_token());
    } catch (const cancelled&) {
      into += "stopped after " + std::to_string(now() / 1h) + " h";
    }
  };
  runtime rt(options());
  rt.spawn(wait(told, stop));
  rt.run();
  EXPECT_EQ(told, "timed out after 1 h, noon at 12 h, stopped after 13 h");
}

TEST_P(cron_runs, it_runs_in_an_actor_too) {
  struct keeper {
    task<int> keep() {
      auto work = [this] {
        if (++calls == 3) stop.request_stop();
      };
      task<> runs = run_by(cron_schedule("@monthly"), std::move(work), stop.get_token());
      co_await std::move(runs);
      co_return calls;
    }
    int calls = 0;
    std::stop_source stop;
  };
  runtime rt(options());
  auto later = rt.spawn<keeper>().ask<&keeper::keep>();
  rt.run();
  EXPECT_EQ(std::move(later).get(), 3);
}

INSTANTIATE_TEST_SUITE_P(seeds, cron_runs, testing::Values(1u, 2u, 3u));

class cron_runs_in_real_time : public conformance {};

TEST_P(cron_runs_in_real_time, a_schedule_of_each_second_follows_the_clock_of_the_system) {
  std::vector<time_point> named;
  std::vector<std::chrono::system_clock::time_point> called;
  std::stop_source stop;
  runtime rt(options());
  rt.spawn(run_by(
      cron_schedule("* * * * * *"),
      [&](time_point at) {
        called.push_back(std::chrono::system_clock::now());
        named.push_back(at);
        if (named.size() == 2) stop.request_stop();
      },
      stop.get_token()));
  rt.run();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_GT(named[1], named[0]);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(called[i], named[i]) << "never too early";
}

std::vector<setting> two_workers() { return {{policy::work_stealing, 2, 1}}; }
TROUPE_TEST_EACH(cron_runs_in_real_time, two_workers);

}  // namespace
}  // namespace troupe::test
