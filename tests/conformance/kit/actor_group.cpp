// actor_group: which member gets a message, and what becomes of members that come and go.
#include <algorithm>
#include <map>
#include <numeric>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct Worker {
  explicit Worker(int n) : number(n) {}
  int number;
  int handled = 0;
  counted alive{};

  int who() {
    ++handled;
    return number;
  }
  int handled_so_far() { return handled; }
  void note(std::string) { ++handled; }
  task<int> slow(int turns) {
    for (int i = 0; i < turns; ++i) co_await yield();
    co_return number;
  }
  void fail() { throw std::runtime_error("as asked"); }
};

using workers_group = actor_group<Worker>;

class actor_groups : public conformance {
 protected:
  // Spawns so many members, numbered from 0.
  void make(runtime& rt, const workers_group& group, int count) {
    for (int i = 0; i < count; ++i) {
      all.push_back(rt.spawn<Worker>(i));
      EXPECT_TRUE(group.add(all.back()));
    }
  }
  void run_task(runtime& rt, task<> one) {
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
  void TearDown() override {
    all.clear();
    EXPECT_EQ(live, 0);
    live = 0;
    conformance::TearDown();
  }
  std::vector<ref<Worker>> all;
};

TEST_P(actor_groups, members_are_in_the_order_in_which_they_were_added) {
  const workers_group group;
  runtime rt(options());
  make(rt, group, 5);
  EXPECT_TRUE(group.remove(all[1]));
  EXPECT_FALSE(group.remove(all[1]));
  EXPECT_EQ(group.members(), (std::vector{all[0], all[2], all[3], all[4]}));
  EXPECT_TRUE(group.add(all[1]));
  EXPECT_TRUE(group.remove(all[4]));
  EXPECT_EQ(group.members(), (std::vector{all[0], all[2], all[3], all[1]}));
  for (const auto& one : group.members()) EXPECT_TRUE(group.remove(one));
  EXPECT_EQ(group.size(), 0u);
  EXPECT_THROW(group.tell<&Worker::fail>(), group_empty);
}

TEST_P(actor_groups, round_robin_takes_one_after_the_other) {
  const workers_group group;
  runtime rt(options());
  make(rt, group, 3);
  const auto uses = [&]() -> task<> {
    std::vector<int> order;
    for (int i = 0; i < 7; ++i) order.push_back(co_await group.ask<&Worker::who>());
    EXPECT_EQ(order, (std::vector{0, 1, 2, 0, 1, 2, 0}));
    EXPECT_EQ(co_await group.ask([](Worker& self) { return self.number; }), 1);
    EXPECT_EQ(co_await group.ask<&Worker::slow>(3), 2);
  };
  run_task(rt, uses());
}

TEST_P(actor_groups, random_takes_each_about_as_often) {
  const workers_group group(group_choice::random);
  runtime rt(options());
  make(rt, group, 4);
  const auto uses = [&]() -> task<> {
    std::map<int, int> times;
    for (int i = 0; i < 400; ++i) ++times[co_await group.ask<&Worker::who>()];
    for (int i = 0; i < 4; ++i) {
      EXPECT_GT(times[i], 50);
      EXPECT_LT(times[i], 150);
    }
  };
  run_task(rt, uses());
}

TEST_P(actor_groups, least_loaded_leaves_out_those_that_are_busy) {
  const workers_group group(group_choice::least_loaded);
  runtime rt(options());
  make(rt, group, 3);
  const auto uses = [&]() -> task<> {
    event ends;
    const auto holds = [](event until) -> task<int> {
      co_await until.wait();
      co_return 0;
    };
    // the next one, which is number 0
    future<int> busy = group.ask([holds, ends](Worker&) { return holds(ends); });
    std::map<int, int> times;
    for (int i = 0; i < 20; ++i) {
      ++times[co_await group.ask<&Worker::who>()];
      // an answer may come a little before the message is gone
      for (int n = 0; n < 3; ++n) co_await yield();
    }
    EXPECT_EQ(times[0], 0);
    EXPECT_GE(times[1], 5);
    EXPECT_GE(times[2], 5);
    ends.set();
    co_await std::move(busy);
    for (int i = 0; i < 300; ++i) group.tell<&Worker::note>("so");
    for (int i = 0; i < 30; ++i) group.tell([](Worker& self) { ++self.handled; });
    EXPECT_EQ(co_await group.ask<&Worker::slow>(2) / 3, 0);
    int sum = 0;
    auto counts = group.ask_all<&Worker::handled_so_far>();
    for (int one : co_await when_all(std::move(counts))) sum += one;
    EXPECT_EQ(sum, 350);
  };
  run_task(rt, uses());
}

TEST_P(actor_groups, a_key_keeps_its_member) {
  const workers_group group;
  runtime rt(options());
  make(rt, group, 5);
  std::map<int, ref<Worker>> before;
  std::map<std::uint64_t, int> keys_of;
  for (int key = 0; key < 1000; ++key) {
    before[key] = group.of(key);
    ++keys_of[before[key].id()];
    EXPECT_EQ(group.of(key), before[key]);
  }
  ASSERT_EQ(keys_of.size(), 5u);
  for (const auto& [id, count] : keys_of) EXPECT_NEAR(count, 200, 60);
  group.remove(all[2]);
  int moved = 0;
  for (int key = 0; key < 1000; ++key) {
    if (before[key] == all[2]) {
      EXPECT_NE(group.of(key), all[2]);
      ++moved;
    } else {
      EXPECT_EQ(group.of(key), before[key]) << "only keys of the member that left move";
    }
  }
  EXPECT_EQ(moved, keys_of[all[2].id()]);
  for (int key = 0; key < 1000; ++key) before[key] = group.of(key);
  const ref<Worker> late = rt.spawn<Worker>(9);
  group.add(late);
  for (int key = 0; key < 1000; ++key)
    EXPECT_TRUE(group.of(key) == before[key] || group.of(key) == late);
  EXPECT_EQ(group.of(std::string("Ada")), group.of(std::string("Ada")));
  const ref<Worker> adas = group.of("Ada");
  group.remove(adas);
  group.add(adas);
  EXPECT_EQ(group.of("Ada"), adas) << "who comes back has its keys again";
  EXPECT_EQ(group.of("Ada"), group.of(std::string("Ada")));
  EXPECT_EQ(group.of(std::string_view("Ada")), group.of(std::string("Ada")));
  rt.run();
}

TEST_P(actor_groups, all_are_told_and_asked) {
  const workers_group group;
  runtime rt(options());
  EXPECT_EQ(group.tell_all<&Worker::note>("nobody"), 0u);
  make(rt, group, 4);
  const auto uses = [&]() -> task<> {
    EXPECT_EQ(group.tell_all<&Worker::note>("all"), 4u);
    auto later = group.ask_all<&Worker::who>();
    const std::vector<int> numbers = co_await when_all(std::move(later));
    EXPECT_EQ(numbers, (std::vector{0, 1, 2, 3}));
    auto handled = group.ask_all<&Worker::handled_so_far>();
    const std::vector<int> counts = co_await when_all(std::move(handled));
    EXPECT_EQ(counts, (std::vector{2, 2, 2, 2}));
  };
  run_task(rt, uses());
}

TEST_P(actor_groups, a_full_mailbox_is_left_out) {
  const workers_group group;
  runtime rt(options());
  const ref<Worker> small =
      rt.spawn<Worker>({.mailbox = {.messages = 1, .when_full = when_full::fail}}, 0);
  event begins, ends;
  group.add(small);
  make(rt, group, 2);
  const auto uses = [&]() -> task<> {
    small.tell([begins, ends](Worker&) -> task<> {
      begins.set();
      co_await ends.wait();
    });
    co_await begins.wait();  // from now on no worker takes from the full mailbox
    bool full = false;
    while (!full) {
      try {
        small.tell<&Worker::note>("fills it");
      } catch (const mailbox_full&) {
        full = true;
      }
    }
    EXPECT_EQ(group.tell_all<&Worker::note>("all"), 2u);
    ends.set();
    co_return;
  };
  run_task(rt, uses());
}

TEST_P(actor_groups, members_come_and_go) {
  const workers_group group;
  EXPECT_THROW(group.tell<&Worker::note>("nobody"), group_empty);
  EXPECT_THROW(static_cast<void>(group.next()), group_empty);
  EXPECT_THROW(static_cast<void>(group.of(1)), group_empty);
  EXPECT_THROW(group.add({}), usage_error);
  runtime rt(options());
  make(rt, group, 2);
  EXPECT_FALSE(group.add(all[0])) << "it is a member already";
  EXPECT_EQ(group.size(), 2u);
  EXPECT_EQ(group.members(), all);
  EXPECT_TRUE(group.remove(all[0]));
  EXPECT_FALSE(group.remove(all[0]));
  EXPECT_EQ(group.next(), all[1]);
  EXPECT_TRUE(group.add(all[0]));
  EXPECT_EQ(group.size(), 2u);
  rt.run();
}

TEST_P(actor_groups, a_member_that_ends_is_removed) {
  const workers_group group(group_choice::least_loaded);
  runtime rt(options());
  make(rt, group, 3);
  const ref<Worker> fails = rt.spawn<Worker>({.on_error = error_policy::stop}, 7);
  group.add(fails);
  const auto uses = [&]() -> task<> {
    all[1].stop();
    co_await all[1].watch();
    fails.tell<&Worker::fail>();
    co_await fails.watch();
    while (group.size() > 2) co_await yield();
    for (int i = 0; i < 10; ++i) EXPECT_NE(co_await group.ask<&Worker::who>(), 1);
    group.add(all[1]);  // it has ended
    while (group.size() > 2) co_await yield();
  };
  future<> later = rt.spawn(uses());
  EXPECT_THROW(rt.run(), std::runtime_error) << "the failure of a member is told as ever";
  later.get();
}

TEST_P(actor_groups, members_change_while_messages_are_sent) {
  const workers_group group(group_choice::least_loaded);
  runtime rt(options());
  make(rt, group, 2);
  std::atomic<int> answers{0}, refused{0};
  const auto sends = [&]() -> task<> {
    for (int i = 0; i < 200; ++i) {
      try {
        co_await group.ask<&Worker::slow>(i % 3);
        ++answers;
      } catch (const actor_stopped&) {
        ++refused;
      }
    }
  };
  const auto changes = [&](int first) -> task<> {
    for (int i = 0; i < 40; ++i) {
      const ref<Worker> extra = spawn<Worker>(first + i);
      group.add(extra);
      for (int n = 0; n < 5; ++n) co_await yield();
      i % 2 == 0 ? static_cast<void>(group.remove(extra)) : extra.stop();
    }
  };
  for (int i = 0; i < 4; ++i) rt.spawn(sends());
  rt.spawn(changes(100));
  rt.spawn(changes(200));
  rt.run();
  EXPECT_EQ(answers + refused, 800);
  EXPECT_EQ(group.size(), 2u);
}

TEST_P(actor_groups, the_group_may_outlive_the_runtime) {
  const workers_group group;
  {
    runtime rt(options());
    make(rt, group, 2);
    rt.run();
    EXPECT_EQ(group.size(), 2u);
  }
  EXPECT_EQ(group.size(), 0u);
}

TROUPE_TEST_EACH(actor_groups, all_settings);

}  // namespace
}  // namespace troupe::test
