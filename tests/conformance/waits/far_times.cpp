// Times at the ends of a clock's range: a time long past is due at once, a time far away never
// comes.
#include <memory>
#include <thread>
#include <utility>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

class far_times : public conformance {};

TEST_P(far_times, a_sleep_of_less_than_nothing_is_over_at_once) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<int> {
    co_await sleep_for(nanoseconds::min());
    co_await sleep_for(steady_clock::time_point() - steady_clock::now());
    co_await sleep_for(-1ns);
    co_return 4;
  }());
  rt.run();
  EXPECT_EQ(done.get(), 4);
}

TEST_P(far_times, a_thread_that_waits_almost_for_ever_waits_until_the_result) {
  promise<int> late;
  auto result = late.get_future();
  EXPECT_FALSE(result.wait_for(nanoseconds::min()));
  EXPECT_FALSE(result.wait_for(0ns));
  std::thread resolver([late = std::move(late)]() mutable {
    std::this_thread::sleep_for(2ms);  // sleeps: so that the main thread usually waits
    late.set_value(7);
  });
  EXPECT_TRUE(result.wait_for(nanoseconds::max() - 1ns));
  resolver.join();
}

TEST_P(far_times,
       a_wait_with_a_far_limit_is_ended_by_its_result_and_one_with_a_past_limit_at_once) {
  runtime rt(options());
  event go;
  auto far = rt.spawn(
      [](event until) -> task<> { co_await until.wait().timeout(nanoseconds::max() - 1ns); }(go));
  auto past = rt.spawn(
      [](event never) -> task<> { co_await never.wait().timeout(nanoseconds::min()); }(event()));
  rt.post([go] { go.set(); });
  rt.run();
  EXPECT_NO_THROW(far.get());
  EXPECT_THROW(past.get(), timed_out);
}

TEST_P(far_times, limits_of_several_operations_are_over_when_they_are_past) {
  runtime rt(options());
  auto over = rt.spawn([]() -> task<bool> {
    const tasks::limits past(nanoseconds::min(), {}), far(nanoseconds::max() - 1ns, {});
    const auto begun = now();
    while (now() == begun) co_await yield();
    co_return past.over() && !far.over();
  }());
  rt.run();
  EXPECT_TRUE(over.get());
}

TEST_P(far_times, calls_come_at_once_or_can_be_taken_back) {
  runtime rt(options());
  int called = 0;
  auto at_once = rt.after(nanoseconds::min(), [&called] { ++called; });
  rt.run();
  EXPECT_EQ(called, 1);
  auto far = rt.after(nanoseconds::max() - 1ns, [] {}), often = rt.every(nanoseconds::max(), [] {});
  EXPECT_TRUE(far.cancel());
  EXPECT_TRUE(often.cancel());
  rt.run();
}

// ---- spans of coarse units, which nanoseconds cannot hold ----

struct service {
  event go;
  explicit service(event until) : go(std::move(until)) {}
  task<> work() {
    auto waits = go.wait();
    co_await std::move(waits);
  }
};
task<> wait_for_event(event go) { co_await go.wait(); }
async_generator<int> one_value(event go) {
  auto waits = go.wait();
  co_await std::move(waits);
  co_yield 1;
}

// Waits for `go` within the span; throws if the span is over before.
struct limited_wait {
  const char* name;
  task<> (*wait)(time_span, event go);
};
constexpr limited_wait limited_waits[] = {
    {"event", [](time_span span, event go) -> task<> { co_await go.wait().timeout(span); }},
    {"task",
     [](time_span span, event go) -> task<> {
       auto waits = wait_for_event(std::move(go)).timeout(span);
       co_await std::move(waits);
     }},
    {"with_deadline",
     [](time_span span, event go) -> task<> {
       auto waits = with_deadline(span, wait_for_event(std::move(go)));
       co_await std::move(waits);
     }},
    {"ask",
     [](time_span span, event go) -> task<> {
       const ref<service> of = spawn<service>(std::move(go));
       auto asks = of.ask<&service::work>().timeout(span);
       co_await std::move(asks);
     }},
    {"future",
     [](time_span span, event go) -> task<> {
       auto begun = spawn(wait_for_event(std::move(go)));
       auto waits = std::move(begun).timeout(span);
       co_await std::move(waits);
     }},
    {"mutex",
     [](time_span span, event go) -> task<> {
       mutex of;
       auto locks = of.lock();
       auto held = std::make_shared<mutex::guard>(co_await std::move(locks));
       auto release = [](std::shared_ptr<mutex::guard> its, event until) -> task<> {
         auto waits = until.wait();
         co_await std::move(waits);
         its.reset();
       };
       auto releases = spawn(release(std::move(held), std::move(go)));
       auto again = of.lock().timeout(span);
       auto second = co_await std::move(again);
       co_await std::move(releases);
     }},
    {"channel",
     [](time_span span, event go) -> task<> {
       auto of = channel<int>::bounded(1);
       auto send = [](channel<int> to, event until) -> task<> {
         auto waits = until.wait();
         co_await std::move(waits);
         auto sends = to.send(1);
         co_await std::move(sends);
       };
       auto sent = spawn(send(of, std::move(go)));
       auto receives = of.receive().timeout(span);
       static_cast<void>(co_await std::move(receives));
       co_await std::move(sent);
     }},
    {"generator",
     [](time_span span, event go) -> task<> {
       auto values = one_value(std::move(go));
       auto next = values.next().timeout(span);
       static_cast<void>(co_await std::move(next));
     }},
    {"sleep",
     [](time_span span, event go) -> task<> {
       auto first = [](time_span long_one) -> task<> {
         auto sleeps = sleep_for(long_one);
         co_await std::move(sleeps);
       };
       auto either = when_any(first(span), wait_for_event(std::move(go)));
       const auto won = co_await std::move(either);
       if (won.index() != 1) throw timed_out("the sleep is over");
     }},
};

constexpr std::pair<const char*, time_span> far_spans[] = {
    {"hours::max()", std::chrono::hours::max()},
    {"minutes::max()", std::chrono::minutes::max()},
    {"seconds::max()", std::chrono::seconds::max()},
    {"milliseconds::max()", std::chrono::milliseconds::max()},
    {"nanoseconds::max()", nanoseconds::max()},
    {"300 years", std::chrono::years(300)},
    {"1e300 seconds", std::chrono::duration<double>(1e300)},
};

TEST_P(far_times, a_limit_of_a_coarse_unit_is_not_over_at_once) {
  for (const auto& [unit, span] : far_spans) {
    for (const limited_wait& one : limited_waits) {
      runtime rt(options());
      event go;
      auto done = rt.spawn(one.wait(span, go));
      auto soon = [](event set) -> task<> {
        co_await sleep_for(1ms);
        set.set();
      };
      rt.spawn(soon(go));
      rt.run();
      EXPECT_NO_THROW(done.get()) << one.name << " within " << unit;
    }
  }
}

TEST_P(far_times, a_call_after_a_span_of_a_coarse_unit_does_not_come_at_once) {
  for (const auto& [unit, span] : far_spans) {
    runtime rt(options());
    int called = 0;
    auto once = rt.after(span, [&called] { ++called; });
    auto often = rt.every(span, [&called] { ++called; });
    rt.after(1ms, [&] {
      EXPECT_TRUE(once.cancel()) << unit;
      EXPECT_TRUE(often.cancel()) << unit;
    });
    rt.run();
    EXPECT_EQ(called, 0) << unit;
  }
}

// At the end of virtual time no further timer fires.
TEST_P(far_times, a_simulation_goes_on_when_time_has_come_to_its_end) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: in real time nobody sees it";
  runtime rt(options());
  int often = 0, very_seldom = 0, submitted = 0;
  rt.every(nanoseconds::max() / 3, [&often] { ++often; });
  rt.every(nanoseconds::max(), [&very_seldom] { ++very_seldom; });
  rt.every(nanoseconds::max() / 3, [&submitted] { ++submitted; }, {.context = context_options{}});
  rt.run();
  EXPECT_GE(often, 2);
  EXPECT_LE(often, 3);
  EXPECT_EQ(very_seldom, 1);
  EXPECT_GE(submitted, 2);
  const auto end = rt.now();
  auto slept = rt.spawn([]() -> task<int> {
    for (int i = 0; i < 100; ++i) co_await sleep_for(std::chrono::hours(1'000'000));
    co_return 100;
  }());
  rt.run();
  EXPECT_EQ(slept.get(), 100);
  EXPECT_GE(rt.now(), end);
}

TEST_P(far_times, a_stop_whose_deadline_is_past_is_late) {
  if (!threaded()) GTEST_SKIP() << "needs threads: nothing runs beside the stop";
  std::atomic<bool> go{false};  // the posted procedure may read it until the runtime has ended
  runtime rt(options());
  rt.post([&go] { wait_for(go, true); });
  rt.stop(stop_mode::drain, nanoseconds::min());
  EXPECT_THROW(rt.run_once(), deadline_error);
  set_and_wake(go, true);
}

TROUPE_TEST_EACH(far_times, each_policy);

}  // namespace
}  // namespace troupe::test
