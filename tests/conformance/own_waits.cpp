// Waits of the main thread for what only it can do: they are refused, and those that others end are not.
#include <latch>
#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class own_waits : public conformance {
 protected:
  bool is_simulated() const { return options().policy == policy::simulated; }
};

struct teller {
  int value = 0;
  explicit teller(int v) : value(v) {}
  int tell() { return value; }
  void set(int v) { value = v; }
  task<int> tell_later() {
    co_await yield();
    co_return value;
  }
  future<int> tell_of(unchecked<future<int>*> other) { return std::move(*other); }
};

template <class Waits>
std::string refused(Waits&& waits) {
  try {
    waits();
  } catch (const usage_error& e) {
    return e.what();
  }
  return "";
}

TEST_P(own_waits, for_an_actor_of_the_main_thread_are_refused) {
  for (const bool has_run : {true, false}) {
    runtime rt(options());
    if (has_run) rt.run();
    auto here = rt.spawn<teller>(on_main(), 7);
    future<int> plain = here.ask<&teller::tell>();
    EXPECT_NE(refused([&] { plain.get(); }).find("run()"), std::string::npos);
    EXPECT_TRUE(plain.valid());
    if (!has_run) {
      rt.run();
      EXPECT_EQ(plain.get(), 7) << "it is as it was";
      continue;
    }
    future<int> later = here.ask<&teller::tell_later>();
    future<int> called = rt.main().call([] { return 8; });
    EXPECT_NE(refused([&] { later.wait(); }).find("run()"), std::string::npos);
    EXPECT_NE(refused([&] { called.get(); }).find("run()"), std::string::npos);
    EXPECT_FALSE(later.wait_for(1ms)) << "with a limit it ends by itself";
    while (!called.ready()) rt.poll();
    EXPECT_EQ(called.get(), 8);
    rt.run();
    EXPECT_EQ(plain.get(), 7);
    EXPECT_EQ(later.get(), 7);
  }
}

TEST_P(own_waits, for_a_simulated_program_are_refused) {
  if (!is_simulated()) return;
  for (const bool has_run : {true, false}) {
    runtime rt(options());
    if (has_run) rt.run();
    auto one = rt.spawn<teller>(3);
    future<int> asked = one.ask<&teller::tell>();
    auto work = []() -> task<int> {
      co_await yield();
      co_return 4;
    };
    future<int> spawned = rt.spawn(work());
    future<int> aside = rt.blocking([] { return 5; });
    future<ended> end = one.watch();
    one.stop();
    future<int> in_context = rt.spawn(context_options{.name = "own"}, work());
    EXPECT_NE(refused([&] { spawned.get(); }).find("run()"), std::string::npos);
    if (has_run) {
      EXPECT_NE(refused([&] { asked.get(); }).find("run()"), std::string::npos);
      EXPECT_NE(refused([&] { aside.get(); }).find("run()"), std::string::npos);
      EXPECT_NE(refused([&] { end.wait(); }).find("run()"), std::string::npos);
      EXPECT_NE(refused([&] { in_context.get(); }).find("run()"), std::string::npos);
      EXPECT_FALSE(spawned.wait_for(1ms));
    }
    rt.run();
    EXPECT_EQ(asked.get(), 3);
    EXPECT_EQ(spawned.get(), 4);
    EXPECT_EQ(in_context.get(), 4);
    EXPECT_EQ(aside.get(), 5);
    EXPECT_EQ(end.get().reason, ended::why::stopped);
  }
}

TEST_P(own_waits, call_and_wait_is_refused_before_it_sends) {
  runtime rt(options());
  std::atomic<int> calls{0};
  const auto count = [&] { ++calls; };
  const auto try_it = [&] { return refused([&] { rt.main().call_and_wait(count); }); };
  EXPECT_NE(try_it().find("co_await rt.main().call(f)"), std::string::npos) << "before run()";
  rt.run();
  EXPECT_NE(try_it().find("co_await rt.main().call(f)"), std::string::npos);
  std::vector<std::string> all(5);
  struct tries {
    void run(std::move_only_function<void()> what) { what(); }
  };
  rt.spawn<tries>().tell<&tries::run>([&] { all[0] = try_it(); });
  rt.spawn<tries>(pinned("tries")).tell<&tries::run>([&] { all[1] = try_it(); });
  rt.spawn<tries>(on_main()).tell<&tries::run>([&] { all[2] = try_it(); });
  rt.post([&] { all[3] = try_it(); });
  rt.spawn([&]() -> task<> {
    co_await yield();
    all[4] = try_it();
  });
  rt.run();
  for (const std::string& one : all) EXPECT_NE(one.find("co_await rt.main().call(f)"), std::string::npos) << one;
  EXPECT_EQ(calls, 0) << "nothing was sent";
}

TEST_P(own_waits, that_others_end_are_let) {
  runtime rt(options());
  rt.run();
  promise<int> foreign;
  future<int> given = foreign.get_future();
  std::latch waits(1);
  std::jthread giver([&] {
    waits.wait();
    foreign.set_value(5);
  });
  waits.count_down();
  EXPECT_EQ(given.get(), 5);
  if (!is_simulated()) {
    EXPECT_EQ(rt.spawn<teller>(6).ask<&teller::tell>().get(), 6);
    EXPECT_EQ(rt.spawn<teller>(pinned("far"), 7).ask<&teller::tell_later>().get(), 7);
    EXPECT_EQ(rt.spawn([]() -> task<int> { co_return 8; }).get(), 8);
  }
  auto here = rt.spawn<teller>(on_main(), 9);
  future<int> answer = here.ask<&teller::tell>();
  rt.run();
  EXPECT_EQ(answer.get(), 9);
}

// Its handler has run, and what it returned others may resolve at any time.
TEST_P(own_waits, for_a_future_that_was_passed_on_are_let) {
  runtime rt(options());
  promise<int> foreign;
  future<int> given = foreign.get_future();
  auto here = rt.spawn<teller>(on_main(), 9);
  future<int> answer = here.ask<&teller::tell_of>(unchecked<future<int>*>{&given});
  rt.run();
  std::jthread giver([&] { foreign.set_value(5); });
  EXPECT_EQ(answer.get(), 5);
}

TEST_P(own_waits, while_another_thread_runs_the_program_are_let) {
  runtime rt(options());
  auto here = rt.spawn<teller>(on_main(), 1);
  auto open = std::make_optional(rt.hold());
  std::jthread runner([&] { rt.run(); });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(here.ask<&teller::tell>().get(), 1);
    EXPECT_EQ(here.ask<&teller::tell_later>().get(), 1);
    EXPECT_EQ(rt.main().call_and_wait([i] { return i; }), i);
  }
  open.reset();
  runner.join();
  EXPECT_FALSE(here.ask<&teller::tell>().wait_for(0ns)) << "this one is no more the thread that runs it";
}

TEST_P(own_waits, of_other_threads_for_the_main_one_are_let) {
  runtime rt(options());
  auto here = rt.spawn<teller>(on_main(), 1);
  std::jthread asks([&, open = rt.hold()] {
    EXPECT_EQ(rt.main().call_and_wait([] { return 2; }), 2);
    EXPECT_EQ(here.ask<&teller::tell>().get(), 1);
  });
  rt.run();
  rt.run();
}

// What a runtime leaves behind, and the next one with the same number.
TEST_P(own_waits, are_looked_at_for_each_runtime) {
  for (int i = 0; i < 300; ++i) {
    runtime rt(options());
    rt.run();
    future<int> asked = rt.spawn<teller>(on_main(), i).ask<&teller::tell>();
    ASSERT_NE(refused([&] { asked.get(); }), "");
    rt.run();
    ASSERT_EQ(asked.get(), i);
  }
  std::optional<runtime> gone;
  gone.emplace(options());
  gone->run();
  future<int> lost = gone->spawn<teller>(on_main(), 1).ask<&teller::tell>();
  gone.reset();
  runtime next(options());
  next.run();
  EXPECT_THROW(lost.get(), actor_stopped);
}

TROUPE_TEST_EACH(own_waits, all_settings);

}  // namespace
}  // namespace troupe::test
