// Timers of actors: ref::tell_every and tell_after, and after() and every() in a handler.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class timed_actors : public conformance {};

struct shared_counts {
  std::atomic<int> calls{0}, beside{0}, inside{0};
  std::string last;
};

// Says whether two of its handlers run at once.
struct meter {
  std::shared_ptr<shared_counts> counts;
  timer own;
  explicit meter(std::shared_ptr<shared_counts> to) : counts(std::move(to)) {}

  void enter() {
    if (counts->inside.exchange(1) != 0) ++counts->beside;
    const auto until = std::chrono::steady_clock::now() + 50us;
    while (std::chrono::steady_clock::now() < until) {
    }
    counts->inside = 0;
  }
  void tick(std::string text) {
    enter();
    counts->last = std::move(text);
    ++counts->calls;
  }
  task<> slow_tick() {
    ++counts->calls;
    if (counts->inside.exchange(1) != 0) ++counts->beside;
    co_await sleep_for(2ms);
    counts->inside = 0;
  }
  void work() { enter(); }
  void begin_every() {
    own = every(100us, [this] {
      enter();
      if (++counts->calls == 20) own.cancel();
    });
    for (int i = 0; i < 50; ++i) self(this).tell<&meter::work>();
  }
  void begin_after() {
    after(100us, [this] {
      enter();
      ++counts->calls;
    });
  }
  void begin_failing() {
    after(1us, [] { throw std::runtime_error("late"); });
  }
};
struct reentrant_meter : meter {
  static constexpr bool reentrant = true;
  using meter::meter;
};

TEST_P(timed_actors, a_method_is_told_again_and_again_until_the_timer_is_cancelled) {
  timer ticks;  // outlives the runtime: the weak timer that uses it may fire until that has ended
  auto counts = std::make_shared<shared_counts>();
  {
    runtime rt(options());
    auto told = rt.spawn<meter>(counts);
    ticks = told.tell_every<&meter::tick>(100us, std::string("text"));
    rt.every(50us,
             [&] {
               if (counts->calls >= 5) ticks.cancel();
             },
             {.weak = true});
    rt.run();
  }
  EXPECT_GE(counts->calls, 5);
  EXPECT_EQ(counts->last, "text");
  EXPECT_FALSE(ticks.cancel());
}

TEST_P(timed_actors, a_method_is_told_once) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  auto to = rt.spawn<meter>(counts);
  to.tell_after<&meter::tick>(100us, std::string("text"));
  timer taken_back = to.tell_after<&meter::tick>(1h, std::string("never"));
  EXPECT_TRUE(taken_back.cancel());
  rt.run();
  EXPECT_EQ(counts->calls, 1);
  EXPECT_EQ(counts->last, "text");
}

TEST_P(timed_actors, a_period_is_left_out_while_the_last_call_is_not_handled) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  auto to = rt.spawn<reentrant_meter>(counts);
  timer ticks = to.tell_every<&reentrant_meter::slow_tick>(100us);
  rt.after(20ms, [&] { ticks.cancel(); });
  rt.run();
  EXPECT_EQ(counts->beside, 0);
  EXPECT_GE(counts->calls, 1);
  EXPECT_LE(counts->calls, 11);
}

TEST_P(timed_actors, the_end_of_the_actor_ends_its_timer) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  auto to = rt.spawn<meter>(counts);
  static_cast<void>(to.tell_every<&meter::tick>(100us, std::string("text")));
  rt.after(2ms, [to] { to.stop(); });
  rt.run();  // returns: no timer keeps the program alive
  EXPECT_EQ(counts->beside, 0);
}

TEST_P(timed_actors, bad_periods_and_empty_refs_are_refused) {
  runtime rt(options());
  auto to = rt.spawn<meter>(std::make_shared<shared_counts>());
  EXPECT_THROW(static_cast<void>(to.tell_every<&meter::work>(0s)), option_error);
  EXPECT_THROW(static_cast<void>(to.tell_every<&meter::work>(-1s)), option_error);
  EXPECT_THROW(static_cast<void>(ref<meter>().tell_every<&meter::work>(1s)), usage_error);
  EXPECT_THROW(static_cast<void>(ref<meter>().tell_after<&meter::work>(1s)), usage_error);
}

TEST_P(timed_actors, every_in_a_handler_runs_in_turns_of_its_actor) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  auto to = rt.spawn<meter>(counts);
  to.tell<&meter::begin_every>();
  rt.run();
  EXPECT_EQ(counts->calls, 20);
  EXPECT_EQ(counts->beside, 0);
}

TEST_P(timed_actors, after_in_a_handler_keeps_the_actor_and_is_a_turn_of_it) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  rt.spawn<meter>(counts).tell<&meter::begin_after>();
  rt.run();
  EXPECT_EQ(counts->calls, 1);
  EXPECT_EQ(counts->beside, 0);
}

TEST_P(timed_actors, a_stopped_actor_gets_no_call_of_its_timers) {
  runtime rt(options());
  auto counts = std::make_shared<shared_counts>();
  rt.spawn<meter>(counts).tell([](meter& of) {
    self(&of).stop();  // comes before what the timers send, however slow this handler is
    of.begin_after();
    every(1ms, [&of] { ++of.counts->beside; });
  });
  rt.run();
  EXPECT_EQ(counts->calls, 0);
  EXPECT_EQ(counts->beside, 0);
}

TEST_P(timed_actors, a_failure_in_such_a_call_is_one_of_the_actor) {
  runtime_options chosen = options();
  std::atomic<int> of_meter{0};
  chosen.failure_lines = 0;
  chosen.on_error = [&](const failure& one) {
    if (one.actor.find("meter") != std::string::npos) ++of_meter;
  };
  runtime rt(std::move(chosen));
  rt.spawn<meter>(std::make_shared<shared_counts>()).tell<&meter::begin_failing>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(of_meter, 1);
}

TEST_P(timed_actors, main_binds_a_function_for_any_thread) {
  runtime rt(options());
  int sum = 0;  // of the main thread
  auto add = rt.main().bind([&sum](int n) { return sum += n; });
  std::atomic<int> seen{0};
  submit(rt, [&seen, add] { add(2).then([&seen](int now) { seen += now; }); });
  rt.run();
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(seen, 2);
  static_cast<void>(add(3));
  rt.run();
  EXPECT_EQ(sum, 5);
}

TEST_P(timed_actors, a_guarded_value_is_changed_without_a_coroutine) {
  runtime rt(options());
  guarded<std::string> text;
  {
    auto held = *text.try_write();
    submit(rt, [text] {
      text.change([](std::string& of) { of += "b"; }).then([] {});
      EXPECT_THROW(text.write().get(), usage_error);  // also if nobody else holds it
    });
    *held += "a";
  }
  rt.run();
  future<std::size_t> bytes = text.change([](std::string& of) { return of.size(); });
  EXPECT_EQ(bytes.get(), 2u);
  EXPECT_THROW(text.change([](std::string&) { throw std::runtime_error("no"); }).get(),
               std::runtime_error);
  EXPECT_EQ(**text.try_read(), "ab");
}

TROUPE_TEST_EACH(timed_actors, all_settings);

}  // namespace
}  // namespace troupe::test
