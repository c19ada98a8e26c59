// Conditional messages: tell_when() handles a message once a predicate over the actor's state
// holds.
#include <algorithm>
#include <memory>
#include <mutex>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class guarded : public conformance {};

struct till {
  counted here;
  int coins = 0;
  std::vector<std::string> log;
  void put(int n) { coins += n; }
  void pay(int n, std::string who) {
    coins -= n;
    log.push_back(std::move(who));
  }
  task<> pay_slowly(int n, std::string who) {
    coins -= n;
    co_await sleep_for(100us);
    log.push_back(std::move(who));
  }
  task<> wait(event until) { co_await until.wait(); }
  void note(std::string what) { log.push_back(std::move(what)); }
  void fail() { throw std::runtime_error("till"); }
  std::vector<std::string> read() { return log; }
  int left() const { return coins; }
};
struct busy_till : till {
  static constexpr bool reentrant = true;
};

auto has(int n) {
  return [n](const till& self) { return self.coins >= n; };
}
std::vector<std::string> words(std::initializer_list<const char*> all) {
  return {all.begin(), all.end()};
}

TEST_P(guarded, waits_until_it_holds_and_lets_others_pass) {
  for (const thread_kind& where : thread_kinds("g")) {
    runtime rt(options());
    auto one = spawn_on<till>(rt, where);
    one.tell_when<&till::pay>(has(10), 10, std::string("ten"));
    one.tell<&till::note>("first");
    one.tell<&till::put>(4);
    one.tell<&till::note>("four");
    one.tell<&till::put>(6);
    one.tell<&till::note>("behind");
    auto log = one.ask<&till::read>();
    auto left = one.ask<&till::left>();
    rt.run();
    EXPECT_EQ(log.get(), words({"first", "four", "ten", "behind"}))
        << "at once behind what made it hold";
    EXPECT_EQ(left.get(), 0);
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(guarded, one_that_holds_is_handled_in_its_place) {
  runtime rt(options());
  auto one = rt.spawn<till>();
  one.tell<&till::note>("a");
  one.tell_when<&till::note>([](const till&) { return true; }, "b");
  one.tell<&till::note>("c");
  one.tell_when([](const till&) { return true; }, [](till& self) { self.log.push_back("d"); });
  one.tell<&till::note>("e");
  auto log = one.ask<&till::read>();
  rt.run();
  EXPECT_EQ(log.get(), words({"a", "b", "c", "d", "e"}));
}

TEST_P(guarded, of_several_that_hold_the_oldest_goes_first) {
  runtime rt(options());
  auto one = rt.spawn<till>();
  one.tell_when<&till::pay>(has(5), 5, std::string("1"));
  one.tell_when<&till::pay>(has(3), 3, std::string("2"));
  one.tell_when<&till::pay>(has(1), 1, std::string("3"));
  one.tell<&till::put>(2);  // "3" can be paid
  one.tell<&till::put>(7);  // now "1" can be paid of 8 coins, and then "2" of the 3 that are left
  one.tell_when<&till::pay>(has(1), 1, std::string("4"));
  one.tell_when<&till::pay_slowly>(has(2), 2, std::string("5"));
  one.tell_when<&till::pay>(has(2), 2, std::string("6"));
  one.tell<&till::put>(1);
  one.tell<&till::put>(4);
  auto log = one.ask<&till::read>();
  rt.run();
  EXPECT_EQ(log.get(), words({"3", "1", "2", "4", "5", "6"}));
}

TEST_P(guarded, is_looked_at_when_a_suspended_turn_is_over) {
  runtime rt(options());
  auto one = rt.spawn<till>();
  auto busy = rt.spawn<busy_till>();
  struct slow {
    static task<> put(till& self) {
      self.coins += 1;
      co_await sleep_for(1ms);
      self.coins += 1;
      co_await sleep_for(1ms);
      self.log.push_back("slow");
    }
  };
  one.tell_when<&till::note>(has(2), "two");
  one.tell([](till& self) { return slow::put(self); });
  busy.tell_when<&till::note>(has(2), "two");
  busy.tell([](busy_till& self) { return slow::put(self); });
  rt.run();
  auto log = one.ask<&till::read>();
  auto early = busy.ask<&till::read>();
  rt.run();
  EXPECT_EQ(log.get(), words({"slow", "two"})) << "the turn is exclusive";
  EXPECT_EQ(early.get(), words({"two", "slow"})) << "reentrant: as soon as the other call waits";
}

TEST_P(guarded, a_predicate_that_throws_is_the_actors_failure) {
  runtime rt(options());
  auto one = rt.spawn<till>();
  one.tell_when<&till::note>(
      [](const till& self) {
        if (self.coins == 1) throw std::runtime_error("no such coin");
        return self.coins == 2;
      },
      "never");
  one.tell<&till::put>(1);
  one.tell<&till::put>(1);
  one.tell<&till::note>("goes on");
  auto log = one.ask<&till::read>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_NE(rt.thrown().method.find("note"), std::string::npos) << rt.thrown().method;
  EXPECT_EQ(log.get(), words({"goes on"}));
  rt.run();
}

TEST_P(guarded, what_never_holds_is_a_stall_and_then_a_dead_letter) {
  runtime_options chosen = options();
  std::vector<std::string> dead;
  std::mutex mutex;
  chosen.on_dead_letter = [&](const dead_letter& one) {
    std::lock_guard lock(mutex);
    dead.push_back(one.method);
  };
  {
    runtime rt(chosen);
    auto one = rt.spawn<till>();
    auto other = rt.spawn<till>();
    auto third = rt.spawn<till>();
    const counted argument;
    for (auto& to : {one, other, third}) {
      to.tell_when([argument](const till& self) { return self.coins > 0; },
                   [argument](till& self) { self.coins = 0; });
      to.tell_when<&till::pay>(has(10), 10, std::string("ten"));
    }
    std::string said;
    try {
      rt.run();
      FAIL();
    } catch (const stalled& why) {
      said = why.what();
    }
    EXPECT_NE(said.find("till #" + std::to_string(one.id()) + ": &"), std::string::npos) << said;
    EXPECT_NE(said.find("pay waits for its predicate"), std::string::npos) << said;
    EXPECT_NE(rt.dump().find("suspended: 6\n"), std::string::npos) << rt.dump();
    one.stop();
    other = {};
    third.tell<&till::put>(1);
    EXPECT_THROW(rt.run(), stalled) << "ten is not there yet";
    EXPECT_EQ(rt.metrics().dead_letters, 4u);
    EXPECT_EQ(dead.size(), 4u);
    rt.stop();
    rt.run();  // a wait that a stop ends is no stall
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(guarded, a_restarted_actor_keeps_them_for_the_new_object) {
  for (const auto backoff : {0ns, 1'000'000ns}) {
    runtime rt(options());
    auto one = rt.spawn<till>({.on_error = error_policy::restart,
                               .restart = {.times = 5, .per = 1h, .backoff = backoff}});
    one.tell<&till::put>(5);
    one.tell_when<&till::pay>(has(6), 6, std::string("six"));
    one.tell<&till::fail>();
    one.tell<&till::put>(5);
    one.tell<&till::note>("five");
    one.tell<&till::put>(1);
    auto log = one.ask<&till::read>();
    EXPECT_THROW(rt.run(), std::runtime_error);
    EXPECT_EQ(log.get(), words({"five", "six"}));
  }
}

TEST_P(guarded, waiting_takes_no_room_of_a_bounded_mailbox) {
  for (const when_full policy : {when_full::fail, when_full::drop_old}) {
    runtime rt(options());
    auto one = rt.spawn<till>({.mailbox = {.messages = 3, .when_full = policy}});
    for (int i = 0; i < 20; ++i) {
      one.tell_when<&till::pay>(has(1), 1, std::to_string(i));
      EXPECT_THROW(rt.run(), stalled);
    }
    for (int i = 0; i < 20; ++i) {
      one.tell<&till::put>(1);
      if (i < 19) {
        EXPECT_THROW(rt.run(), stalled);
      }
    }
    rt.run();
    auto log = one.ask<&till::read>();
    rt.run();
    const auto seen = log.get();
    ASSERT_EQ(seen.size(), 20u);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], std::to_string(i));
    EXPECT_EQ(rt.metrics().dead_letters, 0u);
  }
}

TEST_P(guarded, a_consumer_waits_for_them) {
  runtime rt(options());
  auto one = rt.activate(std::make_unique<till>());
  one.tell_when<&till::pay>(has(1), 1, std::string("one"));
  auto take = [](ref<till> from) -> task<std::size_t> {
    const std::unique_ptr<till> back = co_await from.consume();
    co_return back->log.size();
  };
  auto size = rt.spawn(take(one));
  rt.after(1ms, [one] { one.tell<&till::put>(1); });
  rt.run();
  EXPECT_EQ(size.get(), 1u);
  EXPECT_EQ(live.load(), 0);
}

// The bounded buffer of the textbooks.
struct buffer {
  std::vector<int> items;
  static constexpr std::size_t room = 4;
  std::size_t most = 0;
  void put(int n) {
    items.push_back(n);
    most = std::max(most, items.size());
  }
  void take(ref<struct taker> to);
};
struct taker {
  std::vector<int> got;
  void item(int n) { got.push_back(n); }
};
void buffer::take(ref<taker> to) {
  to.tell<&taker::item>(items.front());
  items.erase(items.begin());
}

TEST_P(guarded, a_bounded_buffer_loses_and_reorders_nothing) {
  const int each = fewer(500, 10), producers = 3;
  runtime rt(options());
  auto free_list = rt.spawn<buffer>();
  auto sink = rt.spawn<taker>();
  struct producer {
    void make(ref<buffer> to, int from, int count) {
      for (int i = 0; i < 20 && count > 0; ++i, --count, ++from) {
        to.tell_when<&buffer::put>(
            [](const buffer& self) { return self.items.size() < buffer::room; }, from);
      }
      if (count > 0) self(this).tell<&producer::make>(to, from, count);
    }
  };
  struct consumer {
    void order(ref<buffer> of, ref<taker> to, int count) {
      for (int i = 0; i < 15 && count > 0; ++i, --count) {
        of.tell_when<&buffer::take>([](const buffer& self) { return !self.items.empty(); }, to);
      }
      if (count > 0) self(this).tell<&consumer::order>(of, to, count);
    }
  };
  for (int p = 0; p < producers; ++p) {
    rt.spawn<producer>().tell<&producer::make>(free_list, p * each, each);
    rt.spawn<consumer>().tell<&consumer::order>(free_list, sink, each);
  }
  rt.run();
  std::vector<int> got;
  std::size_t most = 0;
  sink.tell([&got](taker& self) { got = self.got; });
  free_list.tell([&most](buffer& self) { most = self.most; });
  rt.run();
  ASSERT_EQ(got.size(), static_cast<std::size_t>(producers * each));
  EXPECT_LE(most, buffer::room);
  std::vector<int> last(producers, -1);
  for (const int n : got) {
    int& before = last[static_cast<std::size_t>(n / each)];
    EXPECT_LT(before, n) << "one sender's keep their order";
    before = n;
  }
}

TEST_P(guarded, many_that_become_ready_at_once_keep_nobody_out) {
  const int many = fewer(3000, 10);
  runtime_options chosen = options();
  chosen.turn = {.messages = 16, .time = 100us};
  runtime rt(chosen);
  auto one = rt.spawn<till>();
  for (int i = 0; i < many; ++i)
    one.tell_when<&till::note>([](const till& self) { return self.coins != 0; }, std::to_string(i));
  one.tell<&till::put>(1);
  rt.run();
  auto log = one.ask<&till::read>();
  rt.run();
  const auto seen = log.get();
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(many));
  for (int i = 0; i < many; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_P(guarded, storms_with_stops_leave_nothing_behind) {
  const int actors = fewer(100, 10);
  std::atomic<int> handled{0}, dead{0};
  runtime_options chosen = options();
  chosen.on_dead_letter = [&](const dead_letter&) { ++dead; };
  {
    runtime rt(chosen);
    std::vector<ref<till>> all;
    for (int i = 0; i < actors; ++i) {
      all.push_back(rt.spawn<till>());
      const counted argument;
      for (int k = 1; k <= 10; ++k) {
        all.back().tell_when([k](const till& self) { return self.coins >= k; },
                             [argument, &handled](till&) { ++handled; });
      }
    }
    struct shaker {
      std::vector<ref<till>> all;
      task<> go(int n) {
        for (int i = 0; i < n; ++i) {
          for (std::size_t k = 0; k < all.size(); ++k) {
            if (k % 5 == 0 && i == static_cast<int>(k) % n) all[k].stop();
            all[k].tell([](till& self) { ++self.coins; });
          }
          co_await yield();
        }
        all.clear();
      }
    };
    rt.spawn<shaker>(std::move(all)).tell<&shaker::go>(8);
    rt.run();  // no ref to the actors is left, so this is no stall
    EXPECT_EQ(live.load(), 0);
    EXPECT_GE(handled.load(), actors * 6);
    EXPECT_GE(dead.load(), actors * 2) << "those that wanted nine and ten";
  }
}

TROUPE_TEST_EACH(guarded, all_settings);

}  // namespace
}  // namespace troupe::test
