// What happens to an actor that fails: restart with a budget and backoff, stop, escalate. Also
// parents, children and watches.
#include <algorithm>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class supervision : public conformance {};

struct worker {
  std::shared_ptr<std::atomic<int>> born, alive;
  std::string name;
  int handled = 0;
  worker(std::shared_ptr<std::atomic<int>> births, std::shared_ptr<std::atomic<int>> living,
         std::string called)
      : born(std::move(births)), alive(std::move(living)), name(std::move(called)) {
    ++*born;
    ++*alive;
  }
  ~worker() { --*alive; }
  void work() { ++handled; }
  void fail() { throw std::runtime_error(name + " failed"); }
  task<> fail_later() {
    co_await sleep_for(10us);
    throw std::runtime_error(name + " failed later");
  }
  task<> wait(event until) { co_await until.wait(); }
  int count() { return handled; }
};

struct counts {
  std::shared_ptr<std::atomic<int>> born = std::make_shared<std::atomic<int>>(0),
                                    alive = std::make_shared<std::atomic<int>>(0);
};

void run_through_failures(runtime& rt) {
  for (bool failed = true; failed;) {
    failed = false;
    try {
      rt.run();
    } catch (const std::runtime_error&) {
      failed = true;
    }
  }
}

TEST_P(supervision, a_restarted_actor_begins_anew_and_handles_what_came_behind) {
  runtime rt(options());
  for (const bool pinned_one : {false, true}) {
    const counts of;
    const spawn_options chosen{.on_error = error_policy::restart,
                               .restart = {.times = 3, .per = 1h}};
    auto one = pinned_one ? rt.spawn<worker>(pinned("one", chosen), of.born, of.alive, "one")
                          : rt.spawn<worker>(chosen, of.born, of.alive, "one");
    one.tell<&worker::work>();
    one.tell<&worker::fail>();
    one.tell<&worker::work>();
    one.tell<&worker::work>();
    one.tell<&worker::fail_later>();
    one.tell<&worker::work>();
    auto count = one.ask<&worker::count>();
    run_through_failures(rt);
    EXPECT_EQ(count.get(), 1);
    EXPECT_EQ(of.born->load(), 3);
    EXPECT_EQ(of.alive->load(), 1);
    auto end = one.watch();
    rt.run();
    one.tell<&worker::fail>();
    one.tell<&worker::fail>();
    one.tell<&worker::work>();
    run_through_failures(rt);
    EXPECT_EQ(end.get().reason, ended::why::failed) << "the fourth failure within the period";
    EXPECT_EQ(of.born->load(), 4);
    EXPECT_EQ(of.alive->load(), 0);
  }
}

TEST_P(supervision, backoff_delays_the_new_one_and_doubles) {
  runtime rt(options());
  const counts of;
  auto one = rt.spawn<worker>(
      {.on_error = error_policy::restart, .restart = {.times = 3, .per = 1h, .backoff = 2ms}},
      of.born, of.alive, "slow");
  const auto before = rt.now();
  for (int i = 0; i < 3; ++i) one.tell<&worker::fail>();
  one.tell<&worker::work>();
  auto count = one.ask<&worker::count>();
  run_through_failures(rt);
  EXPECT_GE(rt.now() - before, 14ms) << "2, 4 and 8 ms";
  EXPECT_EQ(count.get(), 1);
  EXPECT_EQ(of.born->load(), 4);
}

TEST_P(supervision, backoff_may_double_up_to_the_end_of_time) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: it takes centuries";
  runtime rt(options());
  const counts of;
  constexpr auto ever = std::chrono::nanoseconds::max();
  auto one =
      rt.spawn<worker>({.on_error = error_policy::restart,
                        .restart = {.times = 30, .per = ever, .backoff = 1h, .backoff_max = ever}},
                       of.born, of.alive, "slow");
  for (int i = 0; i < 30; ++i) one.tell<&worker::fail>();
  auto count = one.ask<&worker::count>();
  run_through_failures(rt);
  EXPECT_EQ(count.get(), 0);
  EXPECT_EQ(of.born->load(), 31);
}

TEST_P(supervision, a_stop_during_the_backoff_ends_it) {
  runtime rt(options());
  const counts of;
  auto one =
      rt.spawn<worker>({.on_error = error_policy::restart,
                        .restart = {.times = 3, .per = 1h, .backoff = 1h, .backoff_max = 1h}},
                       of.born, of.alive, "slow");
  auto end = one.watch();
  one.tell<&worker::fail>();
  one.tell<&worker::work>();
  one.stop_now();
  run_through_failures(rt);
  EXPECT_EQ(end.get().reason, ended::why::stopped);
  EXPECT_EQ(of.alive->load(), 0);
}

// The messages before the stop are handled, by an object that has been constructed anew.
TEST_P(supervision, a_stop_cuts_the_backoff_short) {
  for (const bool behind_it : {false, true}) {
    runtime rt(options());
    const counts of;
    auto one =
        rt.spawn<worker>({.on_error = error_policy::restart,
                          .restart = {.times = 3, .per = 1h, .backoff = 1h, .backoff_max = 1h}},
                         of.born, of.alive, "slow");
    auto end = one.watch();
    one.tell<&worker::work>();
    one.tell<&worker::fail>();
    one.tell<&worker::work>();
    auto count = one.ask<&worker::count>();
    if (behind_it) {
      rt.after(2ms, [one] { one.stop(); });
    } else {
      one.stop();
    }
    run_through_failures(rt);
    EXPECT_EQ(count.get(), 1);
    EXPECT_EQ(end.get().reason, ended::why::stopped);
    EXPECT_EQ(of.born->load(), 2);
    EXPECT_EQ(of.alive->load(), 0);
  }
}

// The backoff ends while all messages become dead letters: then no object is constructed, now or
// later.
TEST_P(supervision, a_backoff_that_ends_during_a_stop_that_discards_ends_the_actor) {
  runtime rt(options());
  const counts of;
  auto one = rt.spawn<worker>(
      {.on_error = error_policy::restart, .restart = {.times = 3, .per = 1h, .backoff = 1ms}},
      of.born, of.alive, "slow");
  one.tell<&worker::fail>();
  rt.post([&rt] {
    rt.stop(stop_mode::discard, 1h);
    std::this_thread::sleep_for(10ms);  // sleeps: the procedure runs until the backoff is over
  });
  run_through_failures(rt);
  one.tell<&worker::work>();
  auto count = one.ask<&worker::count>();
  run_through_failures(rt);
  try {
    // The stop came within the backoff, or the failing message became a dead letter.
    EXPECT_EQ(count.get(), 1);
  } catch (const actor_stopped&) {
    EXPECT_EQ(of.alive->load(), 0);
  }
  EXPECT_LE(of.alive->load(), 1);
}

struct born_once {
  explicit born_once(std::shared_ptr<std::atomic<int>> births) {
    if ((*births)++ != 0) throw std::runtime_error("not again");
  }
  void fail() { throw std::runtime_error("failed"); }
  int answer() { return 1; }
};

// A stopped actor is constructed anew only once, however many restarts are allowed: otherwise its
// stop would never come.
TEST_P(supervision, one_that_is_stopped_is_tried_to_be_constructed_once) {
  runtime rt(options());
  const auto births = std::make_shared<std::atomic<int>>(0);
  auto one = rt.spawn<born_once>(
      {.on_error = error_policy::restart,
       .restart = {.times = 1'000'000'000, .per = 1h, .backoff = 1h, .backoff_max = 1h}},
      births);
  auto end = one.watch();
  one.tell<&born_once::fail>();
  auto answer = one.ask<&born_once::answer>();
  one.stop();
  run_through_failures(rt);
  EXPECT_THROW(answer.get(), actor_stopped);
  EXPECT_EQ(end.get().reason, ended::why::failed);
  EXPECT_EQ(births->load(), 2);
}

// The attempts must not be nested calls.
TEST_P(supervision, a_constructor_may_fail_very_often_in_a_row) {
  runtime rt(options());
  const auto births = std::make_shared<std::atomic<int>>(0);
  auto one = rt.spawn<born_once>(
      {.on_error = error_policy::restart, .restart = {.times = 20'000, .per = 1h}}, births);
  auto end = one.watch();
  one.tell<&born_once::fail>();
  run_through_failures(rt);
  EXPECT_EQ(end.get().reason, ended::why::failed);
  EXPECT_EQ(births->load(), 20'001);
}

struct grower {
  std::shared_ptr<std::atomic<int>> alive;
  explicit grower(std::shared_ptr<std::atomic<int>> living) : alive(std::move(living)) { ++*alive; }
  ~grower() { --*alive; }
  int one() { return 1; }
  task<int> grow() {
    int sum = 0;
    for (int i = 0; i < 3; ++i)
      sum += co_await spawn<grower>({.parent = self(this)}, alive).ask<&grower::one>();
    co_return sum;
  }
};

// GCC 12 destroys the options in such an expression twice: the ref to the parent would be dropped
// while other refs exist.
TEST_P(supervision, options_may_be_made_in_the_expression_that_awaits) {
  const counts of;
  {
    runtime rt(options());
    auto top = rt.spawn<grower>(of.alive);
    auto sum = top.ask<&grower::grow>();
    rt.run();
    EXPECT_EQ(sum.get(), 3);
    EXPECT_EQ(of.alive->load(), 1) << "its children have no refs left";
    auto again = top.ask<&grower::one>();
    rt.run();
    EXPECT_EQ(again.get(), 1);
  }
  EXPECT_EQ(of.alive->load(), 0);
}

struct door {
  static constexpr bool reentrant = true;
  static constexpr int calls = 6;
  std::shared_ptr<std::atomic<int>> ended = std::make_shared<std::atomic<int>>(0);
  int begun = 0;
  task<> wait(bool fails) {
    if (++begun == calls) self(this).stop_now();
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      ++*ended;
      if (fails) throw std::runtime_error("cleaning up went wrong");
      throw;
    }
  }
  std::shared_ptr<std::atomic<int>> count() { return ended; }
};

// Each failure ends the actor once more, while its calls are being cancelled.
TEST_P(supervision, calls_that_fail_when_they_are_cancelled_are_cancelled_once) {
  constexpr int calls = door::calls;
  for (const error_policy policy :
       {error_policy::stop, error_policy::escalate, error_policy::resume}) {
    for (int failing = 1; failing < 1 << calls; failing = 2 * failing + 1) {
      runtime rt(options());
      auto one = rt.spawn<door>({.on_error = policy});
      auto ended = one.ask<&door::count>();
      for (int i = 0; i < calls; ++i) one.tell<&door::wait>((failing >> i & 1) != 0);
      run_through_failures(rt);
      EXPECT_EQ(ended.get()->load(), calls);
    }
  }
}

struct again {
  static constexpr bool reentrant = true;
};

TEST_P(supervision, a_bounded_actor_restarts_as_any_other) {
  struct eager {
    std::shared_ptr<std::atomic<int>> alive;
    explicit eager(std::shared_ptr<std::atomic<int>> living) : alive(std::move(living)) {
      ++*alive;
    }
    eager(const eager&) = delete;
    ~eager() { --*alive; }
    task<> fail_at_once() {
      throw std::runtime_error("at once");
      co_return;
    }
    int fine() { return 1; }
  };
  for (const auto backoff : {0ns, 1'000'000ns}) {
    const counts of;
    {
      runtime rt(options());
      auto one = rt.spawn<eager>({.on_error = error_policy::restart,
                                  .restart = {.times = 9, .per = 1h, .backoff = backoff},
                                  .mailbox = {.messages = 100}},
                                 of.alive);
      for (int i = 0; i < 3; ++i) one.tell<&eager::fail_at_once>();
      auto answer = one.ask<&eager::fine>();
      run_through_failures(rt);
      EXPECT_EQ(answer.get(), 1);
      EXPECT_EQ(of.alive->load(), 1);
    }
    EXPECT_EQ(of.alive->load(), 0);
  }
}

TEST_P(supervision, a_runtime_may_end_during_the_backoff) {
  const counts of;
  for (const bool later : {false, true}) {
    runtime rt(options());
    auto one = rt.spawn<worker>(
        {.on_error = error_policy::restart,
         .restart = {.times = 3, .per = 1h, .backoff = later ? 1h : 1ns, .backoff_max = 1h}},
        of.born, of.alive, "slow");
    one.tell<&worker::work>();
    one.tell<&worker::fail>();
    one.tell<&worker::work>();
    rt.stop(stop_mode::drain);
    EXPECT_THROW(rt.run(), std::runtime_error);
  }
  EXPECT_EQ(of.alive->load(), 0);
}

TEST_P(supervision, what_cannot_be_restarted_is_refused) {
  struct moved {
    explicit moved(std::unique_ptr<int>) {}
  };
  runtime rt(options());
  const spawn_options chosen{.on_error = error_policy::restart};
  EXPECT_THROW(rt.spawn<moved>(chosen, std::make_unique<int>(1)), option_error);
  EXPECT_THROW(rt.spawn<again>(chosen), option_error);
  EXPECT_THROW(rt.spawn<counts>({.on_error = error_policy::restart, .restart = {.times = 0}}),
               option_error);
  runtime other(options());
  EXPECT_THROW(rt.spawn<counts>({.parent = other.spawn<counts>()}), option_error);
}

TEST_P(supervision, watches_tell_why) {
  runtime rt(options());
  const counts of;
  auto failing = rt.spawn<worker>({.on_error = error_policy::stop}, of.born, of.alive, "a");
  auto stopped = rt.spawn<worker>(of.born, of.alive, "b");
  auto dropped = rt.spawn<worker>(of.born, of.alive, "c");
  auto kept = rt.spawn<worker>(of.born, of.alive, "d");
  std::vector<future<ended>> ends;
  for (const auto* one : {&failing, &stopped, &dropped}) ends.push_back(one->watch());
  auto second = failing.watch();
  auto never = kept.watch();
  failing.tell<&worker::fail>();
  stopped.stop();
  dropped = {};
  run_through_failures(rt);
  const ended failed = ends[0].get();
  EXPECT_EQ(failed.reason, ended::why::failed);
  EXPECT_THROW(std::rethrow_exception(failed.what), std::runtime_error);
  EXPECT_EQ(ends[1].get().reason, ended::why::stopped);
  EXPECT_EQ(ends[2].get().reason, ended::why::unreferenced);
  EXPECT_EQ(second.get().reason, ended::why::failed);
  auto late = failing.watch();
  rt.run();
  EXPECT_EQ(late.get().reason, ended::why::before);
  EXPECT_FALSE(never.ready());
}

TEST_P(supervision, the_runtimes_end_tells_its_watchers) {
  future<ended> end;
  ref<worker> one;
  {
    runtime rt(options());
    const counts of;
    one = rt.spawn<worker>(of.born, of.alive, "a");
    end = one.watch();
    rt.run();
  }
  EXPECT_EQ(end.get().reason, ended::why::runtime_ended);
}

TEST_P(supervision, children_end_with_their_parent_at_any_depth) {
  runtime rt(options());
  const counts of;
  auto top = rt.spawn<worker>(of.born, of.alive, "top");
  std::vector<ref<worker>> all{top};
  for (int i = 0; i < 30; ++i) {
    const spawn_options chosen{.parent = all[static_cast<std::size_t>(i) / 2]};
    all.push_back(i % 5 == 0 ? rt.spawn<worker>(pinned("p", chosen), of.born, of.alive, "child")
                             : rt.spawn<worker>(chosen, of.born, of.alive, "child"));
  }
  event never;
  for (std::size_t i = 1; i < all.size(); i += 3) all[i].tell<&worker::wait>(never);
  all[7].stop_now();
  EXPECT_THROW(rt.run(), stalled);
  EXPECT_EQ(of.alive->load(), 31 - 3) << "number 7 had two children";
  top.stop();
  rt.run();
  EXPECT_EQ(of.alive->load(), 0);
  auto late = rt.spawn<worker>({.parent = top}, of.born, of.alive, "late");
  auto end = late.watch();
  rt.run();
  const ended how = end.get();
  EXPECT_TRUE(how.reason == ended::why::stopped || how.reason == ended::why::before)
      << "its parent had ended before";
}

TEST_P(supervision, a_child_keeps_its_parent_and_goes_when_nobody_refers_to_it) {
  runtime rt(options());
  const counts of;
  auto top = rt.spawn<worker>(of.born, of.alive, "top");
  auto child = rt.spawn<worker>({.parent = top}, of.born, of.alive, "child");
  top = {};
  rt.run();
  EXPECT_EQ(of.alive->load(), 2);
  child = {};
  rt.run();
  EXPECT_EQ(of.alive->load(), 0);
}

TEST_P(supervision, escalation_goes_up_to_who_can_help) {
  runtime rt(options());
  const counts of, above;
  auto top =
      rt.spawn<worker>({.on_error = error_policy::restart, .restart = {.times = 5, .per = 1h}},
                       above.born, above.alive, "top");
  auto middle = rt.spawn<worker>({.on_error = error_policy::escalate, .parent = top}, of.born,
                                 of.alive, "middle");
  auto low = rt.spawn<worker>({.on_error = error_policy::escalate, .parent = middle}, of.born,
                              of.alive, "low");
  auto end = low.watch(), middle_end = middle.watch();
  low.tell<&worker::fail>();
  run_through_failures(rt);
  EXPECT_EQ(end.get().reason, ended::why::failed);
  EXPECT_EQ(middle_end.get().reason, ended::why::failed);
  EXPECT_EQ(of.alive->load(), 0);
  EXPECT_EQ(above.born->load(), 2) << "the top began anew";
  EXPECT_EQ(above.alive->load(), 1);
}

TEST_P(supervision, escalation_without_a_parent_stops_the_program) {
  runtime rt(options());
  const counts of;
  struct endless {
    void go() { self(this).tell<&endless::go>(); }
  };
  auto loop = rt.spawn<endless>();
  loop.tell<&endless::go>();
  auto one = rt.spawn<worker>({.on_error = error_policy::escalate}, of.born, of.alive, "one");
  one.tell<&worker::fail>();
  EXPECT_THROW(rt.run(), std::runtime_error);
}

struct fragile {
  static constexpr bool reentrant = true;
  task<> fail_at_the_end() {
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      throw std::runtime_error("at the end");
    }
  }
  void fail() { throw std::runtime_error("first"); }
};

TEST_P(supervision, what_calls_throw_that_are_cancelled_for_a_failure_is_not_escalated_again) {
  runtime rt(options());
  const counts of;
  auto parent =
      rt.spawn<worker>({.on_error = error_policy::restart, .restart = {.times = 3, .per = 1h}},
                       of.born, of.alive, "parent");
  auto child = rt.spawn<fragile>({.on_error = error_policy::escalate, .parent = parent});
  for (int i = 0; i < 4; ++i) child.tell<&fragile::fail_at_the_end>();
  child.tell<&fragile::fail>();
  auto end = child.watch();
  run_through_failures(rt);
  EXPECT_EQ(of.born->load(), 2);
  EXPECT_EQ(of.alive->load(), 1);
  EXPECT_TRUE(end.ready());
}

struct child_of_busy {
  void fail() { throw std::runtime_error("the child failed"); }
};
struct busy {
  std::shared_ptr<std::atomic<int>> born;
  explicit busy(std::shared_ptr<std::atomic<int>> births) : born(std::move(births)) { ++*born; }
  task<> yield_for_ever() {
    for (;;) co_await yield();
  }
  task<> yield_while_it_fails(ref<child_of_busy> child) {
    child.tell<&child_of_busy::fail>();
    co_await yield_for_ever();
  }
  int count() { return born->load(); }
};

// A stop cannot cancel a yield at once, nor a wait whose end is on its way to the actor.
TEST_P(supervision, who_waits_for_what_is_on_its_way_has_the_failure_of_its_child_all_the_same) {
  for (const error_policy chosen : {error_policy::restart, error_policy::stop}) {
    for (int round = 0; round < fewer(40); ++round) {
      runtime rt(options());
      const counts of;
      auto parent =
          rt.spawn<busy>({.on_error = chosen, .restart = {.times = 3, .per = 1h}}, of.born);
      auto child = rt.spawn<child_of_busy>({.on_error = error_policy::escalate, .parent = parent});
      auto end = parent.watch();
      parent.tell<&busy::yield_while_it_fails>(child);
      auto behind = parent.ask<&busy::count>();
      run_through_failures(rt);
      if (chosen == error_policy::restart) {
        ASSERT_FALSE(end.ready()) << "it has ended, and not begun anew";
        EXPECT_EQ(behind.get(), 2);
      } else {
        ASSERT_TRUE(end.ready());
        const ended how = end.get();
        EXPECT_EQ(how.reason, ended::why::failed);
        EXPECT_TRUE(how.what != nullptr);
        EXPECT_THROW(behind.get(), actor_stopped);
      }
    }
  }
}

TEST_P(supervision, one_that_is_stopped_before_it_could_begin_anew_does_not) {
  for (const bool now : {true, false}) {
    runtime rt(options());
    const counts of;
    auto parent = rt.spawn<busy>(
        {.on_error = error_policy::restart, .restart = {.times = 3, .per = 1h, .backoff = 1h}},
        of.born);
    auto child = rt.spawn<child_of_busy>({.on_error = error_policy::escalate, .parent = parent});
    auto end = parent.watch();
    parent.tell<&busy::yield_for_ever>();
    auto behind = parent.ask<&busy::count>();
    child.tell([parent, now](child_of_busy& self) {
      if (now) {
        parent.stop_now();
      } else {
        parent.stop();
      }
      self.fail();
    });
    run_through_failures(rt);
    ASSERT_TRUE(end.ready());
    if (now) {
      EXPECT_THROW(behind.get(), actor_stopped);
    } else {
      EXPECT_GE(behind.get(), 1) << "what was sent before the stop is handled";
    }
  }
}

TEST_P(supervision, storms_of_failures_lose_nobody) {
  runtime rt(options());
  const counts of;
  const int groups = fewer(50, 5);
  std::vector<ref<worker>> all;
  for (int g = 0; g < groups; ++g) {
    auto parent =
        rt.spawn<worker>({.on_error = g % 2 == 0 ? error_policy::stop : error_policy::restart,
                          .restart = {.times = 2, .per = 1h}},
                         of.born, of.alive, "parent");
    all.push_back(parent);
    for (int c = 0; c < 8; ++c) {
      const spawn_options chosen{
          .on_error = c % 2 == 0 ? error_policy::escalate : error_policy::restart,
          .restart = {.times = 2, .per = 1h, .backoff = std::chrono::microseconds(c * 10)},
          .parent = parent};
      all.push_back(rt.spawn<worker>(chosen, of.born, of.alive, "child"));
    }
  }
  std::vector<future<ended>> ends;
  for (const auto& one : all) ends.push_back(one.watch());
  for (int round = 0; round < 4; ++round) {
    for (auto& one : all) {
      one.tell<&worker::work>();
      one.tell<&worker::fail>();
    }
  }
  run_through_failures(rt);
  for (auto& one : all) one.stop();
  all.clear();
  run_through_failures(rt);
  for (auto& one : ends) EXPECT_TRUE(one.ready());
  EXPECT_EQ(of.alive->load(), 0);
}

TROUPE_TEST_EACH(supervision, all_settings);

}  // namespace
}  // namespace troupe::test
