// stop() ends a program that still has work, by draining or by discarding, in bounded time.
#include <latch>
#include <memory>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class stop : public conformance {};

struct runner {
  std::atomic<int>* seen;
  explicit runner(std::atomic<int>* seen) : seen(seen) {}
  void work() { ++*seen; }
  void for_ever() {
    ++*seen;
    self(this).tell<&runner::for_ever>();
  }
  void countdown(int left) {
    ++*seen;
    if (left > 1) self(this).tell<&runner::countdown>(left - 1);
  }
};

TEST_P(stop, drain_handles_what_is_there_and_what_that_causes) {
  std::atomic<int> seen{0};
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("runner")) {
    seen = 0;
    auto one = spawn_on<runner>(rt, where, unchecked{&seen});
    one.tell<&runner::countdown>(500);
    rt.stop(stop_mode::drain);
    rt.run();
    EXPECT_EQ(seen.load(), 500);
  }
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

TEST_P(stop, drain_does_not_wait_for_holds) {
  std::atomic<int> seen{0};
  runtime rt(options());
  hold open = rt.hold();
  auto one = rt.spawn<runner>(&seen);
  one.tell<&runner::countdown>(100);
  rt.stop(stop_mode::drain);
  rt.run();
  EXPECT_EQ(seen.load(), 100);
  // In the next run the hold counts again.
  std::latch started(1);
  rt.post([&] { started.count_down(); });
  std::thread outside([&] {
    started.wait();
    one.tell<&runner::work>();
    open.release();
  });
  rt.run();
  EXPECT_EQ(seen.load(), 101);
  outside.join();
}

TEST_P(stop, discard_ends_programs_that_would_never_end) {
  std::atomic<int> seen{0};
  runtime rt(options());
  std::vector<ref<runner>> all{rt.spawn<runner>(&seen),
                               rt.spawn<runner>(pinned("runner"), unchecked{&seen}),
                               rt.spawn<runner>(on_main(), unchecked{&seen})};
  // Otherwise the stop may discard the construction of the pinned actor and of the main thread's.
  rt.run();
  for (auto& one : all) one.tell<&runner::for_ever>();
  hold open = rt.hold();
  rt.post([&rt] { rt.stop(stop_mode::discard); });
  rt.run();
  EXPECT_GE(rt.metrics().dead_letters, 1u);
  // The actors still exist, and the runtime can be used again.
  open.release();
  seen = 0;
  for (auto& one : all) one.tell<&runner::work>();
  rt.run();
  EXPECT_EQ(seen.load(), 3);
}

task<> sleep_for_an_hour() { co_await sleep_for(1h); }

// Tasks without an end, which wake themselves or each other; alone, or as branches of another task.
TEST_P(stop, discard_ends_tasks_that_would_never_end) {
  for (const auto& [alone, nested] :
       {std::pair(true, false), {false, false}, {true, true}, {false, true}}) {
    auto rt = std::make_unique<runtime>(options());
    std::atomic<int> rounds{0}, ended{0};
    event first, second;
    auto goes_on = [&, alone = alone](event mine, event theirs) -> task<> {
      try {
        for (;;) {
          if (++rounds == 100) rt->stop(stop_mode::discard, 1h);
          if (alone) {
            co_await yield();
          } else {
            theirs.set();
            co_await mine.wait();
            mine.reset();
          }
        }
      } catch (const cancelled&) {
        ++ended;
      }
    };
    auto both = [&]() -> task<> {
      co_await when_all(goes_on(first, second), goes_on(second, first));
    };
    auto outer = [&]() -> task<> { co_await when_any(both(), sleep_for_an_hour()); };
    if (nested) {
      rt->spawn(outer());
    } else {
      rt->spawn(goes_on(first, second));
      rt->spawn(goes_on(second, first));
    }
    try {
      rt->run();
    } catch (const stalled&) {  // one task ended before it set the event of the other
    }
    rt.reset();  // destroys the runtime before the variables that suspended tasks use
    EXPECT_GE(ended, 1);
    EXPECT_GE(rounds, 100);
  }
}

struct busy {
  static constexpr bool reentrant = true;
  std::atomic<int>* rounds;
  explicit busy(std::atomic<int>* rounds) : rounds(rounds) {}
  task<> go_on() {
    for (;;) {
      ++*rounds;
      co_await yield();
    }
  }
  task<> both() { co_await when_all(go_on(), go_on()); }
  task<> nested() { co_await when_any(both(), sleep_for_an_hour()); }
};

// The wait is untouched, whatever else the actor is sent meanwhile: here the request of watch().
TEST_P(stop, discard_leaves_alone_what_stays_suspended) {
  struct patient {
    task<int> wait(event until) {
      co_await until.wait();
      co_await sleep_for(1us);
      co_return 4;
    }
  };
  runtime rt(options());
  event until;
  auto one = rt.spawn<patient>();
  auto answer = one.ask<&patient::wait>(until);
  EXPECT_THROW(rt.run(), stalled);
  hold open = rt.hold();
  rt.stop(stop_mode::discard);
  auto end = one.watch();
  rt.run();
  open.release();
  until.set();
  rt.run();
  EXPECT_EQ(answer.get(), 4);
}

// The calls of a reentrant actor end, too.
TEST_P(stop, discard_ends_calls_side_by_side_that_would_never_end) {
  std::atomic<int> rounds{0};
  runtime rt(options());
  auto one = rt.spawn<busy>(&rounds);
  one.tell<&busy::both>();
  one.tell<&busy::nested>();
  one.tell([&rt](busy& self) -> task<> {
    while (*self.rounds < 100) co_await yield();
    rt.stop(stop_mode::discard, 1h);
  });
  rt.run();
  EXPECT_GE(rounds, 100);
}

TEST_P(stop, from_a_handler_on_any_thread) {
  struct stopper {
    runtime* rt;
    explicit stopper(runtime* rt) : rt(rt) {}
    void now() { rt->stop(stop_mode::discard); }
  };
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<runner>(&seen);
  for (const thread_kind& where : thread_kinds("stopper")) {
    one.tell<&runner::for_ever>();
    spawn_on<stopper>(rt, where, unchecked{&rt}).tell<&stopper::now>();
    rt.run();
  }
}

TEST_P(stop, from_outside) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<runner>(&seen);
  for (int i = 0; i < fewer(20); ++i) {
    std::latch started(1);
    rt.post([&] { started.count_down(); });
    one.tell<&runner::for_ever>();
    std::thread outside([&] {
      started.wait();
      rt.stop(stop_mode::discard);
    });
    rt.run();
    outside.join();
  }
}

TEST_P(stop, before_run_counts_for_the_next_one_only) {
  std::atomic<int> seen{0};
  runtime rt(options());
  hold open = rt.hold();
  rt.stop();
  rt.run();
  open.release();
  rt.spawn<runner>(&seen).tell<&runner::countdown>(50);
  rt.run();
  EXPECT_EQ(seen.load(), 50);
}

TEST_P(stop, the_stricter_of_two_counts) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<runner>(&seen);
  one.tell<&runner::for_ever>();
  rt.post([&rt] {
    rt.stop(stop_mode::discard);
    rt.stop(stop_mode::drain);
  });
  rt.run();
}

TEST_P(stop, posted_procedures_are_discarded_too) {
  auto token = std::make_shared<int>(1);
  runtime rt(options());
  std::atomic<int> ran{0};
  rt.stop(stop_mode::discard);
  for (int i = 0; i < 20; ++i) {
    rt.spawn<runner>(on_main(), unchecked{&ran}).tell([token, &ran](runner&) { ++ran; });
  }
  rt.run();
  EXPECT_EQ(ran.load(), 0);
  EXPECT_EQ(token.use_count(), 1);
}

// A long handler: it runs until it is told to end.
struct stuck {
  std::atomic<bool>* entered;
  std::atomic<bool>* go_on;
  stuck(std::atomic<bool>* entered, std::atomic<bool>* go_on) : entered(entered), go_on(go_on) {}
  void sit() {
    set_and_wake(*entered, true);
    wait_for(*go_on, true);
  }
};

// Returns the text of the missed deadline; empty if the run met its deadline.
std::string run_past_deadline(runtime& rt) {
  try {
    rt.run();
  } catch (const deadline_error& e) {
    return e.what();
  }
  return {};
}

TEST_P(stop, a_deadline_names_the_handlers_that_still_run) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the stuck handler would be on the thread that waits";
  for (const stop_mode mode : {stop_mode::drain, stop_mode::discard}) {
    for (const thread_kind& where : {thread_kind(), thread_kind(pinned("stuck"))}) {
      std::atomic<bool> entered{false}, go_on{false};
      std::atomic<int> seen{0};
      runtime rt(options());
      auto one = spawn_on<stuck>(rt, where, unchecked{&entered}, unchecked{&go_on});
      one.tell<&stuck::sit>();
      one.tell([&seen](stuck&) { ++seen; });
      wait_for(entered, true);
      rt.stop(mode, 20ms);
      const auto before = std::chrono::steady_clock::now();
      const std::string said = run_past_deadline(rt);
      EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
      EXPECT_NE(said.find("stuck::sit"), std::string::npos) << said;
      set_and_wake(go_on, true);
      // The queued messages are discarded; the next run begins without them.
      while (rt.metrics().dead_letters == 0) std::this_thread::yield();
      EXPECT_EQ(seen.load(), 0);
      rt.run();
      one.tell([&seen](stuck&) { ++seen; });
      rt.run();
      EXPECT_EQ(seen.load(), 1);
    }
  }
}

TEST_P(stop, a_missed_deadline_discards_until_the_stuck_handler_has_ended) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the stuck handler would be on the thread that waits";
  std::atomic<bool> entered{false}, go_on{false};
  std::atomic<int> seen{0};
  runtime rt(options());
  hold open = rt.hold();
  auto one = rt.spawn<stuck>(&entered, &go_on);
  auto main = rt.spawn<runner>(on_main(), unchecked{&seen});
  one.tell<&stuck::sit>();
  for (int i = 0; i < 10; ++i) one.tell([&seen](stuck&) { ++seen; });
  wait_for(entered, true);
  main.tell<&runner::work>();
  rt.stop(stop_mode::drain, 5ms);
  EXPECT_THROW(rt.run(), deadline_error);
  const int handled = seen.load();  // perhaps the main thread has handled its message
  // The next run waits until that stop has ended, although the run is called before.
  std::thread later([&] {
    // sleeps: run() is likely to have begun then, and the test holds if it has not
    std::this_thread::sleep_for(20ms);
    set_and_wake(go_on, true);
  });
  open.release();
  rt.run();
  later.join();
  EXPECT_EQ(seen.load(), handled);
  EXPECT_GE(rt.metrics().dead_letters, 10u);
  // Everything works as it did before the stop: holds count, messages arrive, failures are kept.
  hold again = rt.hold();
  one.tell([&](stuck&) {
    ++seen;
    again.release();
    throw std::runtime_error("seen");
  });
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(seen.load(), handled + 1);
}

TEST_P(stop, a_missed_deadline_comes_to_its_end_without_another_run) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the stuck handler would be on the thread that waits";
  std::atomic<bool> entered{false}, go_on{false};
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<stuck>(&entered, &go_on);
  one.tell<&stuck::sit>();
  wait_for(entered, true);
  rt.stop(stop_mode::drain, 1ms);
  EXPECT_THROW(rt.run(), deadline_error);
  set_and_wake(go_on, true);
  // Once the stop has ended, messages arrive again.
  while (seen.load() == 0) {
    one.tell([&seen](stuck&) { ++seen; });
    std::this_thread::yield();
  }
  rt.run();
}

TEST_P(stop, a_deadline_names_a_posted_procedure_that_still_runs) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the stuck procedure would be on the thread that waits";
  std::atomic<bool> entered{false}, go_on{false};
  runtime rt(options());
  rt.post([&] {
    set_and_wake(entered, true);
    wait_for(go_on, true);
  });
  wait_for(entered, true);
  rt.stop(stop_mode::drain, 1ms);
  const std::string said = run_past_deadline(rt);
  EXPECT_NE(said.find("post"), std::string::npos) << said;
  set_and_wake(go_on, true);
  rt.run();
}

TEST_P(stop, a_discard_cancels_blocking_calls_that_have_not_begun) {
  runtime_options chosen = options();
  chosen.blocking_threads = 1;
  runtime rt(chosen);
  struct Idle {};
  const ref<Idle> idle = rt.spawn<Idle>();
  int began = 0, cancelled_calls = 0;
  const auto calls = [&]() -> task<> {
    const auto stops = [&] {
      ++began;
      rt.stop(stop_mode::discard);
      while (!simulated() && rt.metrics().dead_letters == 0) idle.tell([](Idle&) {});
    };
    std::vector<future<>> both;
    for (int i = 0; i < 2; ++i) both.push_back(blocking(stops));
    for (auto& one : both) {
      try {
        co_await std::move(one);
      } catch (const cancelled&) {
        ++cancelled_calls;
        throw;  // no failure: run() throws nothing
      }
    }
  };
  rt.spawn(calls());
  rt.run();
  EXPECT_EQ(began, 1);
  EXPECT_EQ(cancelled_calls, 1);
}

TEST_P(stop, a_deadline_names_blocking_calls_that_still_run) {
  if (!threaded()) GTEST_SKIP() << "needs threads: the call would be on the thread that waits";
  for (const int calls : {1, 2}) {
    std::atomic<bool> entered{false}, go_on{false};
    runtime rt(options());
    std::vector<future<>> results;
    for (int i = 0; i < calls; ++i) {
      results.push_back(rt.blocking([&] {
        set_and_wake(entered, true);
        wait_for(go_on, true);
      }));
    }
    wait_for(entered, true);
    rt.stop(stop_mode::drain, 1ms);
    const std::string said = run_past_deadline(rt);
    const std::string expected =
        calls == 1 ? "running: a blocking call;" : "running: 2 blocking calls;";
    EXPECT_NE(said.find(expected), std::string::npos) << said;
    EXPECT_NE(rt.dump().find("blocking call"), std::string::npos);
    set_and_wake(go_on, true);
    rt.run();
    EXPECT_EQ(rt.dump().find("blocking call"), std::string::npos);
  }
}

TEST_P(stop, a_deadline_that_is_met_throws_nothing) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<runner>(&seen);
  one.tell<&runner::countdown>(10);
  rt.stop(stop_mode::drain, 10min);
  rt.run();
  rt.stop(stop_mode::drain, std::chrono::nanoseconds::max());
  rt.run();
  rt.stop(stop_mode::discard, 0ns);
  rt.run();
  EXPECT_EQ(seen.load(), 10);
}

TEST_P(stop, a_program_that_never_drains_meets_its_deadline) {
  std::atomic<int> seen{0};
  runtime rt(options());
  std::vector<ref<runner>> all{rt.spawn<runner>(&seen),
                               rt.spawn<runner>(pinned("runner"), unchecked{&seen}),
                               rt.spawn<runner>(on_main(), unchecked{&seen})};
  for (auto& one : all) one.tell<&runner::for_ever>();
  rt.stop(stop_mode::drain, 5ms);
  EXPECT_THROW(rt.run(), deadline_error);
  // This stop discards the remaining messages, so that the program ends.
  rt.stop(stop_mode::discard);
  rt.run();
}

TEST_P(stop, handlers_and_senders_race_a_stop_that_discards) {
  for (int round = 0; round < fewer(20); ++round) {
    std::atomic<int> seen{0};
    runtime rt(options());
    std::vector<ref<runner>> all;
    for (int i = 0; i < 20; ++i) {
      all.push_back(i % 7 == 0 ? rt.spawn<runner>(pinned("runner"), unchecked{&seen})
                               : rt.spawn<runner>(&seen));
      all.back().tell<&runner::for_ever>();
    }
    std::atomic<bool> end{false};
    std::thread outside([&] {
      while (!end.load()) {
        for (auto& one : all) one.tell<&runner::work>();
      }
    });
    while (threaded() && seen.load() < 100) std::this_thread::yield();
    std::thread stopper([&] {
      rt.stop(stop_mode::discard);
      end = true;
    });
    rt.run();
    stopper.join();
    outside.join();
  }
}

// Dead letters that other threads keep causing must not keep the program busy.
TEST_P(stop, senders_that_go_on_hold_up_neither_a_stop_nor_the_end) {
  std::atomic<int> seen{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> senders;
  {
    runtime rt(options());
    const std::vector<ref<runner>> all{rt.spawn<runner>(&seen),
                                       rt.spawn<runner>(pinned("runner"), unchecked{&seen}),
                                       rt.spawn<runner>(on_main(), unchecked{&seen})};
    std::atomic<bool> stopped{false};
    for (int i = 0; i < 3; ++i) {
      senders.emplace_back([&end, all] {
        while (!end.load()) {
          for (auto& one : all) one.tell<&runner::work>();
        }
      });
    }
    std::thread poster([&] {
      while (!stopped.load()) rt.post([&seen] { ++seen; });
    });
    rt.stop(stop_mode::discard, 5s);
    EXPECT_NO_THROW(rt.run());
    stopped = true;
    poster.join();
  }
  end = true;
  for (std::thread& one : senders) one.join();
}

TROUPE_TEST_EACH(stop, all_settings);

}  // namespace
}  // namespace troupe::test
