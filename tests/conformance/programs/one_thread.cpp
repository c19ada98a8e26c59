// P4, P6, P10, P11: a program under policy::one_thread has one thread, the one inside run(), which
// also expires the timers, serves the I/O and searches for deadlocks.
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "conformance/time_to_call_run.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

const runtime_options alone{.policy = policy::one_thread};

class one_thread : public ::testing::Test {
 protected:
  void SetUp() override { skip_other_policies(policy::one_thread); }
};

std::ptrdiff_t threads_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

struct Counter {
  int add() { return ++count; }
  int count = 0;
};

struct Pair {
  void meet(ref<Pair> other) { partner = other; }
  task<int> ask_partner() { co_return co_await partner.ask<&Pair::ask_partner>(); }
  ref<Pair> partner;
};

TEST_F(one_thread, timers_sockets_asks_and_deadlocks_need_no_further_thread) {
  const std::ptrdiff_t before = threads_of_process();
  runtime rt(alone);
  const auto main_id = std::this_thread::get_id();
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint server = listener.local();
  auto served = rt.spawn([](tcp_listener from) -> task<void> {
    tcp_stream stream = co_await from.accept();
    std::array<std::byte, 5> bytes;
    co_await stream.read_exact(bytes);
    co_await sleep_for(2ms);
    co_await stream.write(bytes);
  }(std::move(listener)));
  std::ptrdiff_t most = 0;
  auto asked = rt.spawn([](endpoint to, std::thread::id id, std::ptrdiff_t& seen) -> task<int> {
    tcp_stream stream = co_await tcp_stream::connect(to);
    co_await stream.write(std::as_bytes(std::span("hello", 5)));
    std::array<std::byte, 5> bytes;
    co_await stream.read_exact(bytes);
    ref<Counter> counter = spawn<Counter>();
    for (int i = 0; i < 10; ++i) co_await counter.ask<&Counter::add>();
    const auto first = spawn<Pair>(), second = spawn<Pair>();
    first.tell<&Pair::meet>(second);
    second.tell<&Pair::meet>(first);
    try {
      co_await first.ask<&Pair::ask_partner>();
    } catch (const deadlock&) {
      seen = threads_of_process();
    }
    EXPECT_EQ(std::this_thread::get_id(), id);
    co_return co_await counter.ask<&Counter::add>();
  }(server, main_id, most));
  rt.run();
  served.get();
  EXPECT_EQ(asked.get(), 11);
  EXPECT_EQ(most, before);
}

// A queue that never runs dry keeps neither a timer nor a stop waiting.
TEST_F(one_thread, timers_and_stops_come_while_turns_follow_each_other) {
  struct Busy {
    void step() {
      ++steps;
      self(this).tell<&Busy::step>();
    }
    std::uint64_t steps = 0;
  };
  runtime rt(alone);
  const auto busy = rt.spawn<Busy>();
  busy.tell<&Busy::step>();
  std::vector<int> order;
  const auto began = clock::now();
  rt.after(20ms, [&order] { order.push_back(2); });
  rt.after(10ms, [&order] { order.push_back(1); });
  rt.after(30ms, [&] {
    order.push_back(3);
    rt.stop(stop_mode::discard, 10s);
  });
  rt.run();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  EXPECT_GE(clock::now() - began, 30ms);
  EXPECT_LT(clock::now() - began, 30ms + 10s);
}

TEST_F(one_thread, other_threads_send_arm_and_stop) {
  runtime rt(alone);
  const auto counter = rt.spawn<Counter>();
  std::atomic<int> fired{0};
  std::thread outside([&, open = rt.hold()]() mutable {
    for (int i = 0; i < 1'000; ++i) counter.tell<&Counter::add>();
    // the worker sleeps until the first of them: each next one must wake it earlier
    for (const auto span : {1h, 0h})
      rt.after(span, [&fired] { set_and_wake(fired, 1); }, {.weak = true});
    wait_for(fired, 1);
    EXPECT_EQ(counter.ask<&Counter::add>().get(), 1'001);
    rt.stop(stop_mode::drain, 10s);
  });
  rt.run();
  outside.join();
}

TEST_F(one_thread, work_waits_for_run) {
  runtime rt(alone);
  const auto counter = rt.spawn<Counter>();
  auto later = counter.ask<&Counter::add>();
  EXPECT_THROW(later.get(), usage_error);
  int posted = 0;
  rt.post([&posted] { ++posted; });
  auto again = counter.ask<&Counter::add>();
  EXPECT_EQ(posted, 0);
  EXPECT_FALSE(again.ready());
  rt.run();
  EXPECT_EQ(posted, 1);
  EXPECT_EQ(again.get(), 2);
}

TEST_F(one_thread, a_round_ends_although_work_is_left) {
  struct Busy {
    void step() {
      if (++steps < 1'000'000) self(this).tell<&Busy::step>();
    }
    int steps = 0;
  };
  runtime rt(alone);
  const auto busy = rt.spawn<Busy>();
  busy.tell<&Busy::step>();
  int rounds = 0;
  while (rt.run_once(1h)) ++rounds;
  EXPECT_GT(rounds, 3);
  EXPECT_FALSE(rt.poll());
  EXPECT_THROW(rt.wake_descriptor(), usage_error);
}

TEST_F(one_thread, work_that_is_left_at_the_end_is_discarded) {
  const auto probe = std::make_shared<int>();
  {
    runtime rt(alone);
    const auto counter = rt.spawn<Counter>();
    counter.tell<&Counter::add>();
    rt.run();
    rt.post([probe] {});
    rt.spawn([](std::shared_ptr<int>) -> task<void> { co_await sleep_for(1h); }(probe));
    counter.tell<&Counter::add>();
    EXPECT_TRUE(rt.poll());
    rt.post([probe] {});
  }
  EXPECT_EQ(probe.use_count(), 1);
}

// Results of other threads do not need run(), although the thread that waits would call it.
TEST_F(one_thread, results_of_blocking_calls_and_pinned_actors_come_without_run) {
  struct Slow {
    int value() {
      std::this_thread::sleep_for(20ms);  // sleeps: longer than a thread has to call run()
      return 5;
    }
  };
  const time_to_call_run brief(1ms);
  runtime rt(alone);
  EXPECT_EQ(rt.blocking([] { return Slow().value(); }).get(), 5);
  const auto slow = rt.spawn<Slow>(pinned("own"));
  EXPECT_EQ(slow.ask<&Slow::value>().get(), 5);
  rt.run();
}

// No thread is in run() when the runtime ends, and a blocking call waits for an answer.
TEST_F(one_thread, the_end_answers_threads_that_wait) {
  std::atomic<int> state{0};
  {
    runtime rt(alone);
    const auto counter = rt.spawn<Counter>();
    rt.spawn([](ref<Counter> asked, std::atomic<int>& at) -> task<> {
      co_await blocking([&] {
        auto later = asked.ask<&Counter::add>();
        set_and_wake(at, 1);
        try {
          later.get();
        } catch (const std::exception&) {
        }
        set_and_wake(at, 2);
      });
    }(counter, state));
    EXPECT_TRUE(rt.poll());
    wait_for(state, 1);
  }
  EXPECT_EQ(state.load(), 2);
}

// A far timer moves in its wheel meanwhile, which is nothing to return for.
TEST_F(one_thread, a_round_waits_for_work) {
  runtime rt(alone);
  int fired = 0;
  rt.after(300ms, [&fired] { ++fired; });
  while (rt.run_once()) EXPECT_EQ(fired, 1);
  EXPECT_EQ(fired, 1);
}

TEST_F(one_thread, the_worker_has_all_numbers) {
  runtime_options chosen = alone;
  chosen.observe = true;
  runtime rt(chosen);
  const auto counter = rt.spawn<Counter>();
  for (int i = 0; i < 10; ++i) counter.tell<&Counter::add>();
  rt.run();
  const runtime_metrics now = rt.metrics();
  ASSERT_EQ(now.workers.size(), 1u);
  EXPECT_GE(now.workers.front().messages, 10u);
  EXPECT_GT(now.workers.front().turns, 0u);
}

// One thread runs both: it would wait for itself.
TEST_F(one_thread, a_result_that_needs_run_by_way_of_another_runtime_is_refused) {
  struct Between {
    task<int> ask(ref<Counter> far) { co_return co_await far.ask<&Counter::add>(); }
  };
  runtime first({.workers = 1}), second(alone);
  auto answer = first.spawn<Between>().ask<&Between::ask>(second.spawn<Counter>());
  EXPECT_THROW(answer.get(), deadlock);
  second.run();
  EXPECT_EQ(answer.get(), 1);
}

// The thread that ran a program outlives it, and runs the next one.
TEST_F(one_thread, threads_take_turns_in_run) {
  for (int round = 0; round < 3; ++round) {
    auto rt = std::make_unique<runtime>(alone);
    int steps = 0;
    const auto step = [&] {
      rt->spawn([](int& count) -> task<> {
        for (int i = 0; i < 100; ++i) spawn<Counter>().tell<&Counter::add>();
        ++count;
        co_return;
      }(steps));
      rt->run();
    };
    std::thread(step).join();
    step();
    std::thread(step).join();
    EXPECT_EQ(steps, 3);
    std::thread([&] { rt.reset(); }).join();
  }
}

// While one thread is in run(), a scope of another one waits for it.
TEST_F(one_thread, a_scope_of_another_thread_is_run_by_the_thread_in_run) {
  runtime rt(alone);
  std::thread outside([&, open = rt.hold()] {
    EXPECT_EQ(scope(rt, [](task_scope&) -> task<int> { co_return 7; }), 7);
  });
  rt.run();
  outside.join();
  EXPECT_EQ(scope(rt, [](task_scope&) -> task<int> { co_return 8; }), 8);
}

// A blocked call has a thread of its own, and so have pinned actors; their results come back.
TEST_F(one_thread, blocking_calls_and_pinned_actors_have_their_own_threads) {
  runtime rt(alone);
  const auto pinned_there = rt.spawn<Counter>(pinned("own"));
  auto sum = rt.spawn([](ref<Counter> there) -> task<int> {
    const auto id = std::this_thread::get_id();
    const auto other = co_await blocking([] { return std::this_thread::get_id(); });
    EXPECT_NE(other, id);
    EXPECT_EQ(std::this_thread::get_id(), id);
    co_return co_await there.ask<&Counter::add>();
  }(pinned_there));
  rt.run();
  EXPECT_EQ(sum.get(), 1);
}

TEST_F(one_thread, any_number_of_workers_is_one) {
  for (const unsigned workers : {0u, 1u, 8u}) {
    runtime rt({.workers = workers, .policy = policy::one_thread});
    EXPECT_EQ(rt.workers(), 1u);
  }
}

}  // namespace
}  // namespace troupe::test
