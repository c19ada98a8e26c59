// What a look at suspended calls holds up: the actor that it looks at, and no other.
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "actor/system/actor_system.hpp"
#include "actor/turn/turn.hpp"
#include "actor/waits/suspended.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class looks : public conformance {
 protected:
  static actor::actor_system& system_of(runtime& rt) {
    auto found = rt.spawn(
        []() -> task<actor::actor_system*> { co_return &actor::running_system("a test"); });
    rt.run();
    return *found.get();
  }
  // How many parked calls the lists have.
  static std::size_t count_listed(actor::actor_system& system) {
    std::size_t count = 0;
    const std::lock_guard lock(system.looking);
    system.waiting.for_each_call([&](const auto&, const auto&) { ++count; });
    return count;
  }
  static std::size_t count_parked_reentrant(actor::actor_system& system) {
    std::size_t count = 0;
    const std::lock_guard lock(system.looking);
    system.waiting.for_each_reentrant([&](actor::cell& one, const auto&) {
      count += actor::mailbox::is_parked(actor::mailbox(one.word).read()) ? 1 : 0;
    });
    return count;
  }
};

struct lodger {
  event open;
  std::atomic<int>* left;
  task<> stay() {
    co_await open.wait();
    left->fetch_add(1);
    left->notify_all();
  }
};

// The look does not return before all other actors have taken their calls from the lists: it would
// not return at all if it held the lock of a list meanwhile.
TEST_P(looks, other_actors_resume_and_end_while_a_look_holds_one) {
  if (!threaded()) GTEST_SKIP() << "needs threads: one thread, inside run()";
  constexpr int count = 200;
  runtime rt(options());
  actor::actor_system& system = system_of(rt);
  std::atomic<int> left{0};
  event open;
  for (int i = 0; i < count; ++i) rt.spawn<lodger>(open, &left).tell<&lodger::stay>();
  std::thread looker([&, holds = rt.hold()] {
    while (count_listed(system) != count) std::this_thread::yield();
    bool is_first = true;
    const std::lock_guard lock(system.looking);
    static_cast<void>(for_each_held(system, [&](actor::cell&, const tasks::async_call&) {
      if (!std::exchange(is_first, false)) return;
      open.set();
      wait_for(left, count - 1);
    }));
    EXPECT_FALSE(is_first);
  });
  rt.run();
  looker.join();
  EXPECT_EQ(left.load(), count);
}

struct house {
  static constexpr bool reentrant = true;
  event open;
  std::atomic<int>* left;
  task<> stay() { co_await open.wait(); }
  void call() {
    left->fetch_add(1);
    left->notify_all();
  }
};

TEST_P(looks, other_reentrant_actors_suspend_their_first_calls_while_a_look_holds_one) {
  if (!threaded()) GTEST_SKIP() << "needs threads: one thread, inside run()";
  constexpr int count = 20;
  runtime rt(options());
  actor::actor_system& system = system_of(rt);
  std::atomic<int> left{0};
  event open;
  auto first = rt.spawn<house>(open, &left);
  first.tell<&house::stay>();
  std::thread looker([&, holds = rt.hold()] {
    while (count_parked_reentrant(system) != 1) std::this_thread::yield();
    bool is_first = true;
    const std::lock_guard lock(system.looking);
    static_cast<void>(for_each_held(system, [&](actor::cell&, const tasks::async_call&) {
      if (!std::exchange(is_first, false)) return;
      for (int i = 0; i < count; ++i) {
        auto other = rt.spawn<house>(open, &left);
        other.tell<&house::stay>();
        other.tell<&house::call>();
      }
      wait_for(left, count);
    }));
    EXPECT_FALSE(is_first);
    open.set();
  });
  rt.run();
  looker.join();
}

struct seen_calls {
  int looks = 0, calls = 0;
};
// Looks in a handler: while the reentrant actor waits on the worker, or is parked.
struct visitor {
  actor::actor_system* system;
  seen_calls look() {
    seen_calls seen;
    std::set<const tasks::async_call*> calls;
    const std::lock_guard lock(system->looking);
    static_cast<void>(
        for_each_held(*system, [&](const actor::cell& of, const tasks::async_call& one) {
          if (!of.type->reentrant) return;
          ++seen.looks;
          calls.insert(&one);
        }));
    seen.calls = static_cast<int>(calls.size());
    return seen;
  }
};

TEST_P(looks, each_of_many_calls_of_an_actor_is_seen_once) {
  constexpr int count = 3 * static_cast<int>(actor::calls_of_hold_max) + 10;
  runtime rt(options());
  actor::actor_system& system = system_of(rt);
  std::atomic<int> left{0};
  event open;
  auto one = rt.spawn<house>(open, &left);
  auto other = rt.spawn<visitor>(&system);
  for (int i = 0; i < count; ++i) one.tell<&house::stay>();
  rt.spawn([&]() -> task<> {
    co_await one.ask<&house::call>();
    const seen_calls early = co_await other.ask<&visitor::look>();
    EXPECT_EQ(early.calls, early.looks) << "one was seen twice";
    // it may be running or about to run, or parked only in part of the look
    if (workers() == 1 && threaded()) {
      EXPECT_TRUE(early.calls == count || early.calls == 0) << early.calls;
    }
  });
  EXPECT_THROW(rt.run(), stalled);
  auto late = other.ask<&visitor::look>();
  EXPECT_THROW(rt.run(), stalled);
  const seen_calls seen = late.get();
  EXPECT_EQ(seen.calls, count);
  EXPECT_EQ(seen.looks, count);
  open.set();
  rt.run();
}

TROUPE_TEST_EACH(looks, all_settings);

}  // namespace
}  // namespace troupe::test
