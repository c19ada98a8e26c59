// The counts in runtime::metrics(), for each worker and in total.
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class metrics : public conformance {};

struct counter {
  int sum = 0;
  void add(int n) { sum += n; }
  task<> wait(event until) { co_await until.wait(); }
  void fail() { throw std::runtime_error("failed"); }
};

TEST_P(metrics, sums_are_exact_at_rest) {
  runtime rt(options());
  {
    std::vector<ref<counter>> all;
    for (int i = 0; i < 50; ++i) all.push_back(rt.spawn<counter>());
    for (int i = 0; i < 1'000; ++i) all[static_cast<std::size_t>(i % 50)].tell<&counter::add>(1);
    auto pinned_one = rt.spawn<counter>(pinned("one"));
    for (int i = 0; i < 20; ++i) pinned_one.tell<&counter::add>(1);
    rt.run();
    const runtime_metrics now = rt.metrics();
    EXPECT_EQ(now.workers.size(), rt.workers());
    EXPECT_EQ(now.total.messages, 1'021u) << "with the constructor of the one that is pinned";
    EXPECT_EQ(now.total.spawned - now.total.ended, 52u) << "with the main thread's own";
    EXPECT_EQ(now.actors, 51u);
    EXPECT_GE(now.total.turns, 1u);
    EXPECT_EQ(now.total.queued, 0u);
    EXPECT_EQ(now.suspended, 0u);
    EXPECT_GT(now.up_ns, 0);
    worker_metrics sum = now.others;
    for (const worker_metrics& one : now.workers) sum.messages += one.messages;
    EXPECT_EQ(sum.messages, now.total.messages);
  }
  rt.run();
  EXPECT_EQ(rt.metrics().actors, 0u);
}

TEST_P(metrics, gauges_show_what_waits) {
  runtime rt(options());
  event go, shown;
  auto one = rt.spawn<counter>();
  one.tell<&counter::wait>(go);
  const int bell = ::eventfd(0, 0);
  const auto listen = [](int fd) -> task<> { co_await readable(fd); };
  rt.spawn(listen(bell));
  auto far = rt.after(24h, [] {});
  const auto look = [](runtime& of, event at_last, int fd, event goes, timer timed) -> task<> {
    runtime_metrics now = of.metrics();
    while (now.suspended < 2 || now.io_in_flight < 1) {
      co_await sleep_for(100us);
      now = of.metrics();
    }
    EXPECT_GE(now.suspended, 2u) << "and this one, once it has slept";
    EXPECT_EQ(now.io_in_flight, 1u);
    EXPECT_EQ(now.io_waits, 1u);
    EXPECT_GE(now.io_open, 1u);
    EXPECT_GE(now.timers_armed, 1u);
    EXPECT_EQ(now.actors, 3u) << "and two tasks";
    const std::uint64_t count = 1;
    EXPECT_EQ(::write(fd, &count, sizeof count), ssize_t{sizeof count});
    goes.set();
    timed.cancel();
    at_last.set();
  };
  if (GetParam().policy == policy::simulated) {
    ::close(bell);
    GTEST_SKIP() << "needs threads: a simulation has no descriptors of the system";
  }
  rt.spawn(look(rt, shown, bell, go, std::move(far)));
  rt.run();
  const runtime_metrics now = rt.metrics();
  EXPECT_EQ(now.suspended, 0u);
  EXPECT_EQ(now.io_in_flight, 0u);
  EXPECT_EQ(now.timers_armed, 0u);
  ::close(bell);
}

TEST_P(metrics, lazies_failures_and_blocking_calls) {
  runtime rt(options());
  auto one = rt.spawn<counter>();
  one.tell<&counter::fail>();
  one.tell<&counter::fail>();
  rt.post([&rt] {
    std::vector<lazy<int>> all;
    for (int i = 0; i < 30; ++i) all.emplace_back([i] { return i; });
    int sum = 0;
    for (const auto& part : all) sum += part.get();
    EXPECT_EQ(sum, 435);
    EXPECT_GE(rt.metrics().total.lazies, 30u);
  });
  auto aside = rt.blocking([&rt] { return rt.metrics().blocking_calls; });
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(aside.get(), GetParam().policy == policy::simulated ? 0u : 1u);
  const runtime_metrics now = rt.metrics();
  EXPECT_EQ(now.failures, 2u);
  EXPECT_EQ(now.total.lazies, 30u);
  EXPECT_EQ(now.lazies_queued, 0u);
  EXPECT_EQ(now.blocking_calls, 0u);
}

// The tasks that sleep until the value comes send proxy jobs for a lazy that another thread keeps.
TEST_P(metrics, a_lazy_that_many_await_counts_once) {
  runtime rt(options());
  const lazy kept([] { return 1; });
  auto wants = [](lazy<int> of) -> task<> { static_cast<void>(co_await of); };
  for (int i = 0; i < 10; ++i) rt.spawn(wants(kept));
  rt.run();
  EXPECT_EQ(rt.metrics().total.lazies, 1u);
  EXPECT_EQ(rt.metrics().lazies_dropped, 0u);
}

TEST_P(metrics, dead_letters_are_no_messages_that_were_handled) {
  runtime rt(options());
  auto one = rt.spawn<counter>();
  for (int i = 0; i < 3; ++i) one.tell<&counter::add>(1);
  one.stop();
  rt.run();
  const std::uint64_t handled = rt.metrics().total.messages, dead = rt.metrics().dead_letters;
  for (int i = 0; i < 20; ++i) one.tell<&counter::add>(1);
  rt.run();
  EXPECT_EQ(rt.metrics().total.messages, handled);
  EXPECT_EQ(rt.metrics().dead_letters, dead + 20);
}

TEST_P(metrics, a_message_that_waited_for_its_predicate_counts_once) {
  runtime rt(options());
  auto one = rt.spawn<counter>();
  const auto is_ten = [](const counter& self) { return self.sum == 10; };
  for (int i = 0; i < 5; ++i) one.tell_when<&counter::add>(is_ten, 0);
  for (int i = 0; i < 10; ++i) one.tell<&counter::add>(1);
  rt.run();
  EXPECT_EQ(rt.metrics().total.messages, 15u);
}

// This also holds in a simulation, whose time and counters otherwise belong to one thread.
// ThreadSanitizer would see a race.
TEST_P(metrics, any_thread_reads_them_and_arms_timers_meanwhile) {
  runtime rt(options());
  struct runner {
    int left = fewer(20'000);
    void go() {
      if (--left > 0) self(this).tell<&runner::go>();
    }
  };
  auto one = rt.spawn<runner>();
  one.tell<&runner::go>();
  std::atomic<int> called{0};
  std::thread own([&rt, &called, open = rt.hold()] {
    std::uint64_t turns = 0;
    std::chrono::nanoseconds time{0};
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t seen = rt.metrics().total.turns;
      EXPECT_LE(turns, seen);
      turns = seen;
      const auto now = rt.now();
      EXPECT_LE(time, now);
      time = now;
      static_cast<void>(rt.after(1us, [&called] { ++called; }));
      std::this_thread::yield();
    }
  });
  rt.run();
  own.join();
  EXPECT_EQ(called.load(), 200);
}

TROUPE_TEST_EACH(metrics, all_settings);

}  // namespace
}  // namespace troupe::test
