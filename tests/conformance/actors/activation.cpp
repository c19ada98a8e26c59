// Turning an object to which no other code refers into an actor, and getting the object back.
#include <memory>
#include <optional>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class activation : public conformance {};

// Cannot be moved, and refers to itself.
struct ledger {
  counted here;
  ledger* const me = this;
  int sum = 0;
  ledger() = default;
  ledger(const ledger&) = delete;
  void add(int n) { sum += n; }
  void add_later(int n) {
    if (n == 0) return;
    ++sum;
    self(this).tell<&ledger::add_later>(n - 1);
  }
  task<int> wait(event until) {
    co_await until.wait();
    co_return ++sum;
  }
  int read() const { return sum; }
  void fail() { throw std::runtime_error("ledger"); }
};
struct movable {
  counted here;
  std::string text;
  explicit movable(std::string begin) : text(std::move(begin)) {}
  void add(std::string more) { text += more; }
};
struct door {
  static constexpr bool reentrant = true;
  counted here;
  int inside = 0;
  task<> enter(event until) {
    co_await until.wait();
    ++inside;
  }
  task<int> enter_myself() {
    const auto back = co_await self(this).consume();
    co_return 1;
  }
};

// How a call of consume() ended.
enum class outcome : int { none, object, stopped, usage, late, cancelled, deadlocked, other };
template <class T>
task<outcome> take(ref<T> from, std::unique_ptr<T>* to) {
  counted here;
  outcome how = outcome::none;
  try {
    *to = co_await from.consume();
    how = outcome::object;
  } catch (const actor_stopped&) {
    how = outcome::stopped;
  } catch (const usage_error&) {
    how = outcome::usage;
  } catch (const deadlock&) {
    how = outcome::deadlocked;
  } catch (const std::exception&) {
    how = outcome::other;
  }
  co_return how;
}
task<outcome> take_within(ref<ledger> from, std::chrono::nanoseconds span, std::stop_token stop) {
  counted here;
  outcome how = outcome::none;
  std::unique_ptr<ledger> got;
  try {
    got = co_await from.consume().timeout(span).stop(stop);
    how = outcome::object;
  } catch (const timed_out&) {
    how = outcome::late;
  } catch (const cancelled&) {
    how = outcome::cancelled;
  }
  co_return how;
}

TEST_P(activation, an_object_becomes_an_actor_and_comes_back_the_same) {
  for (const thread_kind& where : thread_kinds("a")) {
    runtime_options chosen = options();
    runtime rt(chosen);
    auto made = std::make_unique<ledger>();
    ledger* const address = made.get();
    ref<ledger> one =
        std::visit([&](const auto& there) { return rt.activate(there, std::move(made)); }, where);
    for (int i = 0; i < 100; ++i) one.tell<&ledger::add>(1);
    one.tell<&ledger::add_later>(50);
    auto end = one.watch();
    std::unique_ptr<ledger> back;
    auto how = rt.spawn(take(one, &back));
    rt.run();
    EXPECT_EQ(how.get(), outcome::object);
    ASSERT_EQ(back.get(), address);
    EXPECT_EQ(back->me, address);
    EXPECT_EQ(back->sum, 150) << "what it sends itself is handled, too";
    EXPECT_EQ(end.get().reason, ended::why::consumed);
    one.tell<&ledger::add>(1);
    auto late = one.ask<&ledger::read>();
    auto again = rt.spawn(take(one, &back));
    rt.run();
    EXPECT_EQ(rt.metrics().dead_letters, 2u);
    EXPECT_THROW(late.get(), actor_stopped);
    EXPECT_EQ(again.get(), outcome::stopped);
    EXPECT_EQ(back->sum, 150);
    auto second = rt.activate(std::move(back));
    second.tell<&ledger::add>(1);
    auto sum = second.ask<&ledger::read>();
    rt.run();
    EXPECT_EQ(sum.get(), 151);
    second = {};
    rt.run();
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(activation, a_spawned_one_is_moved_out_or_says_that_it_cannot_be) {
  runtime rt(options());
  auto one = rt.spawn<movable>("a long text that is not kept in the string itself: ");
  one.tell<&movable::add>("more");
  std::unique_ptr<movable> back;
  std::unique_ptr<ledger> never;
  auto rigid = rt.spawn<ledger>();
  auto how = rt.spawn(take(one, &back));
  auto refused = rt.spawn(take(rigid, &never));
  rt.run();
  EXPECT_EQ(how.get(), outcome::object);
  EXPECT_EQ(back->text, "a long text that is not kept in the string itself: more");
  EXPECT_EQ(refused.get(), outcome::usage);
  rigid.tell<&ledger::add>(1);
  auto sum = rigid.ask<&ledger::read>();
  rt.run();
  EXPECT_EQ(sum.get(), 1) << "it is an actor still";
  EXPECT_EQ(live.load(), 2);
}

TEST_P(activation, of_many_consumers_one_gets_it) {
  for (int round = 0; round < fewer(20); ++round) {
    runtime rt(options());
    auto one = rt.activate(std::make_unique<ledger>());
    event open;
    static_cast<void>(one.ask<&ledger::wait>(open));
    std::unique_ptr<ledger> back[5];
    std::vector<future<outcome>> all;
    for (auto& to : back) all.push_back(rt.spawn(take(one, &to)));
    rt.after(1ms, [open] { open.set(); });
    rt.run();
    int got = 0, refused = 0;
    for (auto& how : all) {
      const outcome seen = how.get();
      got += seen == outcome::object ? 1 : 0;
      refused += seen == outcome::usage || seen == outcome::stopped ? 1 : 0;
    }
    EXPECT_EQ(got, 1);
    EXPECT_EQ(refused, 4);
    EXPECT_EQ(live.load(), 1);
    for (auto& to : back) to.reset();
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(activation, who_gives_up_leaves_the_actor_as_it_is) {
  runtime rt(options());
  auto one = rt.activate(std::make_unique<ledger>());
  event open;
  static_cast<void>(one.ask<&ledger::wait>(open));
  std::stop_source stop;
  std::atomic<int> gave_up{0};
  const auto gives_up = [&](std::chrono::nanoseconds span, std::stop_token token) -> task<outcome> {
    const outcome how = co_await take_within(one, span, std::move(token));
    if (++gave_up == 2) open.set();
    co_return how;
  };
  auto late = rt.spawn(gives_up(1ms, {}));
  auto stopped = rt.spawn(gives_up(1h, stop.get_token()));
  rt.after(2ms, [stop]() mutable { stop.request_stop(); });
  rt.run();
  EXPECT_EQ(late.get(), outcome::late);
  EXPECT_EQ(stopped.get(), outcome::cancelled);
  one.tell<&ledger::add>(1);
  std::unique_ptr<ledger> back;
  auto how = rt.spawn(take(one, &back));
  rt.run();
  EXPECT_EQ(how.get(), outcome::object);
  EXPECT_EQ(back->sum, 2);
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

TEST_P(activation, a_reentrant_one_is_quiet_when_its_calls_are_done) {
  runtime rt(options());
  auto one = rt.activate(std::make_unique<door>());
  event open, never;
  for (int i = 0; i < 10; ++i) one.tell<&door::enter>(open);
  std::unique_ptr<door> back, none;
  auto how = rt.spawn(take(one, &back));
  auto second = rt.spawn(take(one, &none));
  rt.after(1ms, [open] { open.set(); });
  rt.run();
  const outcome first = how.get(), other = second.get();
  EXPECT_TRUE((first == outcome::object) != (other == outcome::object));
  EXPECT_EQ((back != nullptr ? back : none)->inside, 10);
  // The actor may end while a task waits to consume it.
  auto ends = rt.activate(std::make_unique<door>());
  ends.tell<&door::enter>(never);
  std::unique_ptr<door> nothing;
  auto told = rt.spawn(take(ends, &nothing));
  rt.after(1ms, [ends] { ends.stop(); });
  rt.run();
  EXPECT_EQ(told.get(), outcome::stopped) << "a stop that comes before it is quiet";
  auto ends_now = rt.activate(std::make_unique<door>());
  ends_now.tell<&door::enter>(never);
  auto told_now = rt.spawn(take(ends_now, &nothing));
  rt.after(1ms, [ends_now] { ends_now.stop_now(); });
  rt.run();
  EXPECT_EQ(told_now.get(), outcome::stopped);
}

TEST_P(activation, an_actor_does_not_consume_itself) {
  runtime rt(options());
  struct selfish {
    counted here;
    task<outcome> go() { return take(self(this), &mine); }
    std::unique_ptr<selfish> mine;
  };
  auto one = rt.activate(std::make_unique<selfish>());
  auto how = one.ask<&selfish::go>();
  auto other = rt.activate(std::make_unique<door>());
  auto thrown = other.ask<&door::enter_myself>();
  rt.run();
  EXPECT_EQ(how.get(), outcome::deadlocked);
  EXPECT_THROW(thrown.get(), deadlock);
}

TEST_P(activation, what_ends_otherwise_tells_its_consumer) {
  runtime rt(options());
  for (int kind = 0; kind < 4; ++kind) {
    spawn_options chosen{.on_error = error_policy::stop};
    if (kind == 3) chosen.mailbox = {.messages = 4, .when_full = when_full::drop_old};
    auto one = rt.activate(chosen, std::make_unique<ledger>());
    event never;
    static_cast<void>(one.ask<&ledger::wait>(never));
    if (kind == 1) one.tell<&ledger::fail>();
    std::unique_ptr<ledger> back;
    auto how = rt.spawn(take(one, &back));
    rt.after(1ms, [one, never, kind] {
      if (kind == 0) one.stop_now();
      if (kind == 2) one.stop();
      never.set();
      if (kind == 3) one.tell<&ledger::add>(1);
    });
    try {
      rt.run();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "ledger");
    }
    const outcome seen = how.get();
    EXPECT_EQ(seen, kind == 3 ? outcome::object : outcome::stopped)
        << kind << " (a wish takes no room, and is not dropped)";
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(activation, the_runtimes_end_leaks_nothing) {
  for (int kind = 0; kind < 3; ++kind) {
    std::unique_ptr<ledger> back;
    std::unique_ptr<door> in;
    event never;
    {
      runtime rt(options());
      auto one = rt.activate(std::make_unique<ledger>());
      auto two = rt.activate(std::make_unique<door>());
      auto idle = rt.activate(pinned("p"), std::make_unique<ledger>());
      static_cast<void>(one.ask<&ledger::wait>(never));
      two.tell<&door::enter>(never);
      static_cast<void>(rt.spawn(take(one, &back)));
      static_cast<void>(rt.spawn(take(two, &in)));
      if (kind == 0) {
        EXPECT_THROW(rt.run(), stalled);
      }
      if (kind == 1) rt.stop(stop_mode::discard);
      if (kind == 1) rt.run();
    }
    back.reset();
    in.reset();
    EXPECT_EQ(live.load(), 0) << kind;
  }
}

TEST_P(activation, a_stall_names_who_waits_for_an_object) {
  runtime rt(options());
  auto one = rt.activate(std::make_unique<ledger>());
  event never;
  static_cast<void>(one.ask<&ledger::wait>(never));
  std::unique_ptr<ledger> back;
  static_cast<void>(rt.spawn(take(one, &back)));
  try {
    rt.run();
    FAIL();
  } catch (const stalled& why) {
    const std::string text = why.what();
    EXPECT_NE(text.find("for the object of "), std::string::npos) << text;
    EXPECT_NE(text.find("ledger (#" + std::to_string(one.id()) + ")"), std::string::npos) << text;
  }
}

TEST_P(activation, what_makes_no_actor_is_refused) {
  runtime rt(options());
  EXPECT_THROW(rt.activate(std::unique_ptr<ledger>()), usage_error);
  EXPECT_THROW(rt.activate({.on_error = error_policy::restart}, std::make_unique<ledger>()),
               option_error);
  EXPECT_THROW(static_cast<void>(ref<ledger>().consume()), usage_error);
  EXPECT_EQ(live.load(), 0);
}

struct shape {
  virtual ~shape() = default;
  virtual int area() = 0;
};
struct square final : shape {
  explicit square(int of) : side(of) {}
  int area() override { return side * side; }
  counted here;
  int side;
};

TEST_P(activation, an_interface_will_do) {
  runtime rt(options());
  ref<shape> one = rt.activate<shape>(std::make_unique<square>(5));
  auto area = one.ask<&shape::area>();
  std::unique_ptr<shape> back;
  auto how = rt.spawn(take(one, &back));
  rt.run();
  EXPECT_EQ(area.get(), 25);
  EXPECT_EQ(how.get(), outcome::object);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->area(), 25);
}

TEST_P(activation, storms_of_consumers_messages_and_stops_lose_nothing) {
  const int actors = fewer(200, 10);
  {
    runtime rt(options());
    std::vector<ref<ledger>> all;
    std::vector<std::unique_ptr<ledger>> back(static_cast<std::size_t>(actors) * 2);
    std::vector<future<outcome>> hows;
    std::vector<future<ended>> ends;
    event open;
    for (int i = 0; i < actors; ++i) {
      all.push_back(rt.activate(std::make_unique<ledger>()));
      ends.push_back(all.back().watch());
      for (int k = 0; k < i % 7; ++k) all.back().tell<&ledger::add>(1);
      if (i % 3 == 0) static_cast<void>(all.back().ask<&ledger::wait>(open));
      if (i % 11 == 0) all.back().stop_now();
      hows.push_back(rt.spawn(take(all.back(), &back[static_cast<std::size_t>(i) * 2])));
      if (i % 2 == 0)
        hows.push_back(rt.spawn(take(all.back(), &back[static_cast<std::size_t>(i) * 2 + 1])));
      all.back().tell<&ledger::add_later>(i % 5);
      if (i % 4 == 0) all.back() = {};
    }
    rt.after(1ms, [open] { open.set(); });
    rt.run();
    int got = 0;
    for (auto& how : hows) {
      const outcome seen = how.get();
      EXPECT_NE(seen, outcome::none);
      got += seen == outcome::object ? 1 : 0;
    }
    int there = 0;
    for (auto& one : back) there += one != nullptr ? 1 : 0;
    EXPECT_EQ(got, there);
    EXPECT_GE(got, actors - actors / 11 - 1);
    for (auto& end : ends) EXPECT_TRUE(end.ready());
    EXPECT_EQ(live.load(), there);
  }
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(activation, all_settings);

}  // namespace
}  // namespace troupe::test
