// Waits of the main thread for what only the main thread can do are refused. Waits that other
// threads can end are not refused.
#include <latch>
#include <thread>

#include "conformance/time_to_call_run.hpp"
#include "support/conformance.hpp"
#include "troupe/task/shared_state.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class own_waits : public conformance {
 protected:
  const time_to_call_run short_{1ms};
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
  if (!simulated()) return;
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
  for (const std::string& one : all)
    EXPECT_NE(one.find("co_await rt.main().call(f)"), std::string::npos) << one;
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
  if (threaded()) {
    EXPECT_EQ(rt.spawn<teller>(6).ask<&teller::tell>().get(), 6);
    EXPECT_EQ(rt.spawn<teller>(pinned("far"), 7).ask<&teller::tell_later>().get(), 7);
    EXPECT_EQ(rt.spawn([]() -> task<int> { co_return 8; }).get(), 8);
  }
  auto here = rt.spawn<teller>(on_main(), 9);
  future<int> answer = here.ask<&teller::tell>();
  rt.run();
  EXPECT_EQ(answer.get(), 9);
}

// The handler has run, and any thread may resolve the future that it returned.
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
  const time_to_call_run endless(1h);
  std::jthread runner([&] { rt.run(); });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(here.ask<&teller::tell>().get(), 1);
    EXPECT_EQ(here.ask<&teller::tell_later>().get(), 1);
    EXPECT_EQ(rt.main().call_and_wait([i] { return i; }), i);
  }
  open.reset();
  runner.join();
  EXPECT_FALSE(here.ask<&teller::tell>().wait_for(0ns))
      << "this one is no more the thread that runs it";
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

// A runtime leaves no trace behind, and the next one gets the same number.
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

// Returns how many threads are blocked that may have to call run().
std::size_t blocked_threads() {
  std::size_t count = 0;
  static_cast<void>(tasks::for_each_blocked(
      &count, [](void* of, const tasks::blocked_thread&) { ++*static_cast<std::size_t*>(of); }));
  return count;
}

TEST_P(own_waits, until_another_thread_takes_run_over_are_let) {
  const time_to_call_run endless(1h);
  for (const bool has_run : {true, false}) {
    runtime rt(options());
    if (has_run) rt.run();
    auto here = rt.spawn<teller>(on_main(), 1);
    future<int> direct = here.ask<&teller::tell>();
    std::jthread runner([&, open = rt.hold()]() mutable {
      while (blocked_threads() == 0) std::this_thread::yield();
      open = {};
      rt.run();
    });
    EXPECT_EQ(direct.get(), 1);
  }
}

template <class Waits>
std::string deadlocked(Waits&& waits) {
  try {
    waits();
  } catch (const deadlock& e) {
    return e.what();
  }
  return "";
}

// It needs an actor of the main thread for its answers.
struct middle {
  ref<teller> main;
  explicit middle(ref<teller> m) : main(std::move(m)) {}
  task<int> ask_main() { co_return co_await main.ask<&teller::tell>() + 1; }
  future<int> pass_on() { return main.ask<&teller::tell_later>(); }
  task<int> ask_in_time() {
    try {
      co_return co_await main.ask<&teller::tell>().timeout(1ms);
    } catch (const timed_out&) {
      co_return -1;
    }
  }
  task<int> ask_any() {
    const auto first = co_await when_any(main.ask<&teller::tell>(), sleep_for(1ms));
    co_return static_cast<int>(first.index());
  }
  task<int> ask_all() {
    const auto [a, b] =
        co_await when_all(main.ask<&teller::tell>(), main.ask<&teller::tell_later>());
    co_return a + b;
  }
};
struct outer {
  ref<middle> next;
  explicit outer(ref<middle> n) : next(std::move(n)) {}
  task<int> ask_next() { co_return co_await next.ask<&middle::ask_main>() + 1; }
};

TEST_P(own_waits, for_what_needs_the_main_thread_in_its_turn_are_refused) {
  if (!threaded()) return;
  for (const bool has_run : {true, false}) {
    runtime rt(options());
    if (has_run) rt.run();
    auto here = rt.spawn<teller>(on_main(), 7);
    auto one = rt.spawn<middle>(here);
    auto pinned_one = rt.spawn<outer>(pinned("far"), one);
    auto spawned = rt.spawn([](ref<teller> main) -> task<int> {
      co_return co_await main.ask<&teller::tell_later>();
    }(here));
    auto called = rt.spawn([](main_thread main) -> task<int> {
      co_return co_await main.call([] { return 8; });
    }(rt.main()));
    auto chain = pinned_one.ask<&outer::ask_next>();
    auto all = rt.spawn<middle>(here).ask<&middle::ask_all>();
    auto passed = rt.spawn<middle>(here).ask<&middle::pass_on>();
    const std::string said = deadlocked([&] { chain.get(); });
    for (const char* part :
         {"call run() first", "outer #", "middle #", "teller::tell", "own_waits.cpp:"}) {
      EXPECT_NE(said.find(part), std::string::npos) << said;
    }
    EXPECT_LT(said.find("outer #"), said.find("middle #")) << "in the order of the waits";
    EXPECT_NE(deadlocked([&] { spawned.get(); }), "");
    EXPECT_NE(deadlocked([&] { called.wait(); }), "");
    EXPECT_NE(deadlocked([&] { all.get(); }), "");
    EXPECT_NE(refused([&] { passed.get(); }), "");
    EXPECT_EQ(rt.spawn<middle>(here).ask<&middle::ask_in_time>().get(), -1);
    EXPECT_EQ(rt.spawn<middle>(here).ask<&middle::ask_any>().get(), 1) << "a branch of it goes on";
    EXPECT_FALSE(chain.wait_for(1ms)) << "with a limit it ends by itself";
    rt.run();
    EXPECT_EQ(chain.get(), 9) << "it is as it was";
    EXPECT_EQ(spawned.get(), 7);
    EXPECT_EQ(called.get(), 8);
    EXPECT_EQ(all.get(), 14);
    EXPECT_EQ(passed.get(), 7);
  }
}

// Its turn is suspended on the main thread. The event has come, but only the main thread can resume
// the turn.
struct resident {
  task<int> wait_for(event what) {
    co_await what.wait();
    co_return 4;
  }
};

TEST_P(own_waits, for_a_suspended_turn_of_the_main_thread_are_refused) {
  if (!threaded()) return;
  runtime rt(options());
  event go;
  auto here = rt.spawn<resident>(on_main());
  auto answer = rt.spawn([](ref<resident> main, event what) -> task<int> {
    co_return co_await main.ask<&resident::wait_for>(what);
  }(here, go));
  auto open = std::make_optional(rt.hold());
  while (rt.metrics().suspended < 2) rt.poll();
  go.set();
  EXPECT_NE(deadlocked([&] { answer.get(); }), "");
  open.reset();
  rt.run();
  EXPECT_EQ(answer.get(), 4);
}

TEST_P(own_waits, for_room_of_an_actor_of_the_main_thread_are_refused) {
  if (!threaded()) return;
  runtime rt(options());
  auto full = rt.spawn<teller>(on_main({.mailbox = {1, when_full::suspend}}), 3);
  full.tell<&teller::set>(4);
  auto sent = rt.spawn([](ref<teller> to) -> task<> { co_await to.send<&teller::set>(5); }(full));
  EXPECT_NE(deadlocked([&] { sent.get(); }), "");
  rt.run();
  sent.get();
}

TEST_P(own_waits, across_runtimes_of_one_thread_are_refused) {
  if (!threaded()) return;
  runtime first(options()), second(options());
  auto main_of_second = second.spawn<teller>(on_main(), 7);
  auto answer = first.spawn<middle>(main_of_second).ask<&middle::ask_main>();
  EXPECT_NE(deadlocked([&] { answer.get(); }), "");
  second.run();
  EXPECT_EQ(answer.get(), 8);
}

TEST_P(own_waits, for_what_needs_a_thread_that_is_in_run_are_let) {
  if (!threaded()) return;
  runtime rt(options());
  auto one = rt.spawn<middle>(rt.spawn<teller>(on_main(), 7));
  std::jthread runner;  // joined when no hold keeps the program open any more, also after a failure
  auto open = std::make_optional(rt.hold());
  std::latch runs(1);
  rt.main().post([&] { runs.count_down(); });  // only run() handles this
  runner = std::jthread([&] { rt.run(); });
  runs.wait();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(one.ask<&middle::ask_main>().get(), 8);
  open.reset();
}

TROUPE_TEST_EACH(own_waits, all_settings);

}  // namespace
}  // namespace troupe::test
