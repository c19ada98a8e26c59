// registry and topic: names and subscriptions, and their end with the actor.
#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct Named {
  explicit Named(int n) : number(n) {}
  int number;
  counted alive{};
  int who() { return number; }
};
struct Other {};

class registries : public conformance {
 protected:
  void run_task(runtime& rt, task<> one) {
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
  void TearDown() override {
    EXPECT_EQ(live, 0);
    live = 0;
    conformance::TearDown();
  }
};

TEST_P(registries, a_name_stands_for_one_actor_of_its_class) {
  const registry names;
  runtime rt(options());
  const ref<Named> one = rt.spawn<Named>(1);
  EXPECT_FALSE(names.find<Named>("one"));
  EXPECT_TRUE(names.add("one", one));
  EXPECT_TRUE(names.add("same", one));
  EXPECT_FALSE(names.add("one", rt.spawn<Named>(2)));
  EXPECT_EQ(names.find<Named>("one"), one);
  EXPECT_EQ(names.names(), (std::vector<std::string>{"one", "same"}));
  EXPECT_THROW(static_cast<void>(names.find<Other>("one")), usage_error);
  EXPECT_THROW(static_cast<void>(names.add("none", ref<Named>())), usage_error);
  EXPECT_TRUE(names.remove("one"));
  EXPECT_FALSE(names.remove("one"));
  EXPECT_FALSE(names.find<Named>("one"));
  EXPECT_TRUE(names.add("one", rt.spawn<Other>()));
  rt.run();
}

TEST_P(registries, a_name_is_free_again_when_its_actor_has_ended) {
  const registry names;
  runtime rt(options());
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 5; ++i) {
      const ref<Named> one = spawn<Named>(i);
      EXPECT_TRUE(names.add("one", one));
      EXPECT_TRUE(names.add("too", one));
      one.stop();
      while (!names.names().empty()) co_await yield();
      EXPECT_TRUE(names.add("one", one)) << "it has ended, and is removed at once";
      while (!names.names().empty()) co_await yield();
    }
  };
  run_task(rt, uses());
}

TEST_P(registries, a_wait_ends_when_the_name_is_added) {
  const registry names;
  runtime rt(options());
  const auto uses = [&]() -> task<> {
    std::stop_source stop;
    const auto waits = [&]() -> task<> {
      const ref<Named> found = co_await names.wait<Named>("late");
      EXPECT_EQ(co_await found.ask<&Named::who>(), 7);
    };
    const auto limited = [&]() -> task<> {
      EXPECT_THROW(static_cast<void>(co_await names.wait<Named>("never").timeout(1ms)), timed_out);
      stop.request_stop();
      EXPECT_TRUE(names.add("late", spawn<Named>(7)));
    };
    const auto stopped = [&]() -> task<> {
      EXPECT_THROW(static_cast<void>(co_await names.wait<Named>("late").stop(stop.get_token())),
                   cancelled);
    };
    const auto of_other = [&]() -> task<> {
      EXPECT_THROW(static_cast<void>(co_await names.wait<Other>("late")), usage_error);
    };
    co_await when_all(waits(), waits(), limited(), stopped(), of_other());
    const ref<Named> found = co_await names.wait<Named>("late").timeout(0ns);
    EXPECT_TRUE(found) << "no wait was needed";
  };
  run_task(rt, uses());
}

TEST_P(registries, many_add_and_find) {
  const registry names;
  runtime rt(options());
  std::atomic<int> added{0}, found{0};
  const auto adds = [&](int first) -> task<> {
    for (int i = 0; i < 50; ++i) {
      const ref<Named> one = spawn<Named>(first + i);
      if (names.add(std::to_string(i), one)) ++added;
      const ref<Named> brief = spawn<Named>(0);
      if (names.add("brief " + std::to_string(first + i), brief)) brief.stop();
      co_await yield();
    }
  };
  const auto finds = [&]() -> task<> {
    for (int i = 0; i < 50; ++i) {
      const ref<Named> one = co_await names.wait<Named>(std::to_string(i)).timeout(1min);
      if (one) ++found;
    }
  };
  for (int i = 0; i < 3; ++i) rt.spawn(adds(100 * i));
  for (int i = 0; i < 3; ++i) rt.spawn(finds());
  rt.run();
  EXPECT_EQ(added, 50);
  EXPECT_EQ(found, 150);
  EXPECT_EQ(names.names().size(), 50u);
}

TEST_P(registries, it_may_outlive_the_runtime) {
  const registry names;
  {
    runtime rt(options());
    EXPECT_TRUE(names.add("one", rt.spawn<Named>(1)));
    rt.run();
    EXPECT_TRUE(names.find<Named>("one"));
  }
  EXPECT_FALSE(names.find<Named>("one"));
}

TROUPE_TEST_EACH(registries, all_settings);

struct Reader {
  explicit Reader(std::vector<int>& kept) : seen(kept) {}
  std::vector<int>& seen;
  counted alive{};
  void read(const int& value) { seen.push_back(value); }
  void read_twice(int value) {
    seen.push_back(value);
    seen.push_back(value);
  }
  void read_negated(int value) { seen.push_back(-value); }
};

class topics : public registries {};

TEST_P(topics, all_subscribers_are_told_in_order) {
  const topic<int> numbers;
  EXPECT_EQ(numbers.publish(0), 0u);
  std::vector<int> first, second;
  runtime rt(options());
  const ref<Reader> one = rt.spawn<Reader>(first), two = rt.spawn<Reader>(second);
  EXPECT_TRUE(numbers.subscribe<&Reader::read>(one));
  EXPECT_FALSE(numbers.subscribe<&Reader::read>(one)) << "it subscribes already";
  EXPECT_TRUE(numbers.subscribe<&Reader::read>(two));
  for (const int n : {1, 2, 3}) EXPECT_EQ(numbers.publish(n), 2u);
  EXPECT_TRUE(numbers.subscribe<&Reader::read_twice>(two)) << "another method";
  EXPECT_TRUE(numbers.unsubscribe<&Reader::read>(one));
  EXPECT_FALSE(numbers.unsubscribe<&Reader::read>(one));
  EXPECT_EQ(numbers.publish(4), 2u);
  rt.run();
  EXPECT_EQ(first, (std::vector{1, 2, 3}));
  EXPECT_EQ(second, (std::vector{1, 2, 3, 4, 4, 4}));
  EXPECT_EQ(numbers.counts().subscribers, 2u);
  EXPECT_EQ(numbers.counts().published, 5u);
  EXPECT_EQ(numbers.counts().told, 8u);
  EXPECT_EQ(numbers.counts().missed, 0u);
  EXPECT_THROW(numbers.subscribe<&Reader::read>(ref<Reader>()), usage_error);
}

TEST_P(topics, the_oldest_subscription_is_told_first) {
  const topic<int> numbers;
  std::vector<int> seen;
  runtime rt(options());
  const ref<Reader> one = rt.spawn<Reader>(seen);
  numbers.subscribe<&Reader::read_twice>(one);
  numbers.subscribe<&Reader::read>(one);
  numbers.subscribe<&Reader::read_negated>(one);
  numbers.publish(1);
  numbers.unsubscribe<&Reader::read_twice>(one);
  numbers.publish(2);
  numbers.subscribe<&Reader::read_twice>(one);
  numbers.publish(3);
  rt.run();
  EXPECT_EQ(seen, (std::vector{1, 1, 1, -1, 2, -2, 3, -3, 3, 3}));
}

TEST_P(topics, an_actor_that_ends_is_unsubscribed) {
  const topic<int> numbers;
  std::vector<int> seen, seen_by_other;
  runtime rt(options());
  const auto uses = [&]() -> task<> {
    const ref<Reader> one = spawn<Reader>(seen);
    numbers.subscribe<&Reader::read>(one);
    numbers.subscribe<&Reader::read_twice>(one);
    numbers.subscribe<&Reader::read>(spawn<Reader>(seen_by_other));
    numbers.publish(1);
    one.stop();
    while (numbers.counts().subscribers > 1) co_await yield();
    EXPECT_EQ(numbers.publish(2), 1u);
    EXPECT_TRUE(numbers.subscribe<&Reader::read>(one));
    while (numbers.counts().subscribers > 1) co_await yield();
  };
  run_task(rt, uses());
  EXPECT_EQ(seen, (std::vector{1, 1, 1}));
  EXPECT_EQ(seen_by_other, (std::vector{1, 2}));
}

TEST_P(topics, the_bound_of_its_mailbox_says_what_a_slow_subscriber_misses) {
  const topic<int> numbers;
  std::vector<int> newest, oldest, all;
  runtime rt(options());
  const auto bounded = [](when_full policy) {
    return spawn_options{.mailbox = {.messages = 2, .when_full = policy}};
  };
  const ref<Reader> keeps_newest = rt.spawn<Reader>(bounded(when_full::drop_old), newest);
  const ref<Reader> keeps_oldest = rt.spawn<Reader>(bounded(when_full::fail), oldest);
  const ref<Reader> keeps_all = rt.spawn<Reader>(all);
  const auto uses = [&]() -> task<> {
    event ends;
    std::atomic<int> held{0};
    const auto holds = [&held](event until) -> task<> {
      ++held;
      co_await until.wait();
    };
    for (const auto& one : {keeps_newest, keeps_oldest, keeps_all}) {
      one.tell([holds, ends](Reader&) { return holds(ends); });
      numbers.subscribe<&Reader::read>(one);
    }
    while (held < 3) co_await yield();
    for (int n = 1; n <= 5; ++n) numbers.publish(n);
    ends.set();
  };
  run_task(rt, uses());
  EXPECT_EQ(all, (std::vector{1, 2, 3, 4, 5}));
  ASSERT_FALSE(newest.empty());
  EXPECT_LE(newest.size(), 2u);
  EXPECT_EQ(newest.back(), 5);
  ASSERT_FALSE(oldest.empty());
  EXPECT_LE(oldest.size(), 2u);
  EXPECT_EQ(oldest.front(), 1);
  EXPECT_EQ(numbers.counts().missed, 5 - oldest.size());
}

TEST_P(topics, subscribers_change_while_values_are_published) {
  const topic<std::shared_ptr<const int>> numbers;
  struct Sum {
    explicit Sum(std::atomic<int>& to) : all(to) {}
    std::atomic<int>& all;
    counted alive{};
    void add(std::shared_ptr<const int> n) { all += *n; }
  };
  std::atomic<int> sum{0}, others{0};
  runtime rt(options());
  const ref<Sum> keeps = rt.spawn<Sum>(sum);
  numbers.subscribe<&Sum::add>(keeps);
  const auto publishes = [&]() -> task<> {
    for (int i = 0; i < 100; ++i) {
      numbers.publish(std::make_shared<const int>(1));
      co_await yield();
    }
  };
  const auto changes = [&]() -> task<> {
    for (int i = 0; i < 50; ++i) {
      const ref<Sum> extra = spawn<Sum>(others);
      numbers.subscribe<&Sum::add>(extra);
      co_await yield();
      i % 2 == 0 ? static_cast<void>(numbers.unsubscribe<&Sum::add>(extra)) : extra.stop();
    }
  };
  for (int i = 0; i < 3; ++i) rt.spawn(publishes());
  for (int i = 0; i < 2; ++i) rt.spawn(changes());
  rt.run();
  EXPECT_EQ(sum, 300);
  EXPECT_EQ(numbers.counts().subscribers, 1u);
}

TROUPE_TEST_EACH(topics, all_settings);

}  // namespace
}  // namespace troupe::test
