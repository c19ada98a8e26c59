// Options, environment variables and wrong calls: the error names them, and nothing has been
// started.
#include <sched.h>

#include <functional>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class options_of : public conformance {};

struct idle {};

// Returns the error with which the construction of such a runtime fails; empty when it succeeds.
std::string complaint(const runtime_options& chosen) {
  try {
    runtime rt(chosen);
    rt.run();
  } catch (const option_error& e) {
    return e.what();
  }
  return "";
}

std::string spawn_complaint(runtime& rt, const thread_kind& where) {
  try {
    static_cast<void>(spawn_on<idle>(rt, where));
  } catch (const option_error& e) {
    return e.what();
  }
  return "";
}

TEST_P(options_of, a_runtime_says_how_many_workers_it_has) {
  runtime rt(options());
  EXPECT_EQ(rt.workers(), threaded() ? workers() : 1u);
}

TEST_P(options_of, bad_options_are_refused_by_name) {
  runtime_options chosen = options();
  chosen.workers = 1025;
  EXPECT_NE(complaint(chosen).find("workers"), std::string::npos);
  EXPECT_NE(complaint(chosen).find("1025"), std::string::npos);
  EXPECT_NE(complaint(chosen).find("1024"), std::string::npos);
  chosen = options();
  chosen.turn.messages = 0;
  EXPECT_NE(complaint(chosen).find("turn"), std::string::npos);
  chosen = options();
  chosen.turn.time = -1us;
  EXPECT_NE(complaint(chosen).find("turn"), std::string::npos);
}

TEST_P(options_of, bad_spawn_options_are_refused_by_name) {
  runtime rt(options());
  for (const turn_limits wrong : {turn_limits{0, 5us}, turn_limits{5, -5us}}) {
    for (const thread_kind& where : thread_kinds("db", {.turn = wrong})) {
      EXPECT_NE(spawn_complaint(rt, where).find("turn"), std::string::npos);
    }
  }
  EXPECT_THROW(static_cast<void>(pinned("")), option_error);
  for (const turn_limits right : {turn_limits{1, 0us}, turn_limits{0, 0us}}) {
    for (const thread_kind& where : thread_kinds("db", {.turn = right}))
      EXPECT_EQ(spawn_complaint(rt, where), "");
  }
}

TEST_P(options_of, the_longest_time_of_a_turn_is_no_limit_of_time) {
  if (!threaded()) GTEST_SKIP() << "needs threads: the seed alone ends turns";
  struct slow_one {
    void work() {
      const auto began = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - began < 10us) {
      }
    }
  };
  constexpr turn_limits longest{.messages = 4096, .time = std::chrono::microseconds::max()};
  for (const bool own : {false, true}) {
    runtime_options chosen = options();
    chosen.workers = 1;
    if (!own) chosen.turn = longest;
    runtime rt(chosen);
    const auto one =
        own ? rt.spawn<slow_one>(spawn_options{.turn = longest}) : rt.spawn<slow_one>();
    rt.post([one] {
      for (int i = 0; i < 100; ++i) one.tell<&slow_one::work>();
    });
    rt.run();
    EXPECT_LT(rt.metrics().total.turns, 20u);
  }
}

TEST_P(options_of, environment_variables_are_read_and_checked) {
  const scoped_environment no_policy("TROUPE_POLICY", nullptr);
  runtime_options by_default;
  {
    const scoped_environment set("TROUPE_WORKERS", "3");
    EXPECT_EQ(runtime(by_default).workers(), 3u);
    by_default.workers = 2;
    EXPECT_EQ(runtime(by_default).workers(), 2u) << "a limit is no wish";
    by_default.workers = 8;
    EXPECT_EQ(runtime(by_default).workers(), 3u) << "it limits the program's own choice";
    by_default.workers = 0;
  }
  {
    const scoped_environment set("TROUPE_WORKERS", "");
    EXPECT_EQ(complaint(by_default), "");
  }
  for (const char* bad :
       {"0", "-1", "1025", "many", "2 ", " 2", "2.5", "0x2", "99999999999999999999999"}) {
    const scoped_environment set("TROUPE_WORKERS", bad);
    const std::string said = complaint(by_default);
    EXPECT_NE(said.find("TROUPE_WORKERS"), std::string::npos) << bad;
    EXPECT_NE(said.find(bad), std::string::npos) << bad;
  }
  {
    const scoped_environment set("TROUPE_SEED", "18446744073709551615");
    EXPECT_EQ(runtime(by_default).seed(), UINT64_MAX);
  }
  for (const char* bad : {"-1", "18446744073709551616", "seed"}) {
    const scoped_environment set("TROUPE_SEED", bad);
    EXPECT_NE(complaint(by_default).find("TROUPE_SEED"), std::string::npos) << bad;
  }
  for (const char* good : {"work_stealing", "shared_queue", "simulated", "one_thread", ""}) {
    const scoped_environment set("TROUPE_POLICY", good);
    EXPECT_EQ(complaint(by_default), "") << good;
  }
  for (const char* bad : {"fifo", "Simulated", "work-stealing"}) {
    const scoped_environment set("TROUPE_POLICY", bad);
    const std::string said = complaint(by_default);
    EXPECT_NE(said.find("TROUPE_POLICY"), std::string::npos) << bad;
    EXPECT_NE(said.find("shared_queue"), std::string::npos) << bad;
  }
}

TEST_P(options_of, the_pool_has_a_worker_for_each_cpu_that_the_process_may_use) {
  const scoped_environment no_workers("TROUPE_WORKERS", nullptr);
  const scoped_environment no_policy("TROUPE_POLICY", nullptr);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const auto allowed = static_cast<unsigned>(CPU_COUNT(&before));
  EXPECT_LE(runtime().workers(), allowed);
  EXPECT_GE(runtime().workers(), 1u);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(runtime().workers(), 1u);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST_P(options_of, a_thousand_pinned_threads_and_not_one_more) {
  if (threaded())
    GTEST_SKIP() << "needs the simulated policy: the simulated policy counts them as well, without "
                    "the threads";
  runtime rt(options());
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(spawn_complaint(rt, pinned("thread" + std::to_string(i))), "");
  EXPECT_NE(spawn_complaint(rt, pinned("one too many")).find("one too many"), std::string::npos);
  EXPECT_EQ(spawn_complaint(rt, pinned("thread5")), "") << "those that exist are shared";
  rt.run();
}

TEST_P(options_of, a_pool_of_1024_workers_is_the_largest) {
  if (GetParam().policy != policy::work_stealing || slow)
    GTEST_SKIP() << "needs work stealing without a sanitizer: once is enough";
  runtime_options chosen = options();
  chosen.workers = 1024;
  std::atomic<int> ran{0};
  runtime rt(chosen);
  for (int i = 0; i < 5000; ++i) rt.post([&ran] { ++ran; });
  rt.run();
  EXPECT_EQ(ran.load(), 5000);
}

// Wrong calls.

TEST_P(options_of, run_inside_a_handler_is_a_usage_error) {
  struct wrong {
    runtime* rt;
    std::atomic<int>* refused;
    wrong(runtime* rt, std::atomic<int>* refused) : rt(rt), refused(refused) {}
    void run() {
      try {
        rt->run();
      } catch (const usage_error&) {
        ++*refused;
      }
    }
  };
  std::atomic<int> refused{0};
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("wrong")) {
    spawn_on<wrong>(rt, where, unchecked{&rt}, unchecked{&refused}).tell<&wrong::run>();
  }
  rt.run();
  EXPECT_EQ(refused.load(), 3);
}

TEST_P(options_of, run_inside_a_posted_procedure_is_a_usage_error) {
  std::atomic<int> refused{0};
  runtime rt(options());
  const auto wrong = [&] {
    try {
      rt.run();
    } catch (const usage_error&) {
      ++refused;
      refused.notify_all();
    }
  };
  rt.post(wrong);
  if (threaded()) wait_for(refused, 1);  // no thread is in run() meanwhile
  rt.run();
  rt.post(wrong);
  rt.run();
  EXPECT_EQ(refused.load(), 2);
}

TEST_P(options_of, two_threads_in_run_at_once_are_a_usage_error) {
  runtime rt(options());
  hold open = rt.hold();
  std::atomic<bool> inside{false};
  struct knock {
    std::atomic<bool>* inside;
    explicit knock(std::atomic<bool>* inside) : inside(inside) {}
    void here() { set_and_wake(*inside, true); }
  };
  rt.spawn<knock>(on_main(), unchecked{&inside}).tell<&knock::here>();
  std::thread first([&] { rt.run(); });
  wait_for(inside, true);
  EXPECT_THROW(rt.run(), usage_error);
  open.release();
  first.join();
  rt.run();
}

TEST_P(options_of, an_empty_procedure_is_a_usage_error) {
  runtime rt(options());
  EXPECT_THROW(rt.post(nullptr), usage_error);
  EXPECT_THROW(rt.post(unique_function<void()>()), usage_error);
  EXPECT_THROW(rt.post(std::move_only_function<void()>()), usage_error);
  EXPECT_THROW(rt.post(std::function<void()>()), usage_error);
  rt.run();
}

TEST_P(options_of, time_goes_on) {
  runtime rt(options());
  const auto before = rt.now();
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) rt.post([&ran] { ++ran; });
  rt.run();
  EXPECT_GT(rt.now(), before);
  EXPECT_GE(rt.metrics().total.turns, 100u);
}

TROUPE_TEST_EACH(options_of, each_policy);

}  // namespace
}  // namespace troupe::test
