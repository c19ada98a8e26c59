// Bounded mailboxes at their limit and one past it, and reentrant actors.
#include <algorithm>
#include <latch>
#include <numeric>
#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class bounded : public conformance {};

struct sink {
  std::vector<int> seen;
  int put(int n) {
    seen.push_back(n);
    return n;
  }
  std::vector<int> all() { return seen; }
  task<> hold(event until) { co_await until.wait(); }
};

spawn_options limited_to(std::size_t messages, when_full policy) {
  return {.mailbox = {messages, policy}};
}

// Returns a sink that handles nothing before `go` is set, so that what is sent to it waits.
ref<sink> stuck(runtime& rt, const spawn_options& chosen, const event& go) {
  auto made = rt.spawn<sink>(chosen);
  made.tell<&sink::hold>(go);
  // Waits until the turn of hold() has begun: then that message no longer counts as waiting.
  for (bool began = false; !began;) {
    rt.spawn([]() -> task<> { co_await yield(); }());
    try {
      rt.run();
    } catch (const stalled&) {
      began = true;
    }
  }
  return made;
}

std::vector<int> numbers(int from, int to) {
  std::vector<int> all(static_cast<std::size_t>(to - from));
  std::iota(all.begin(), all.end(), from);
  return all;
}

std::vector<int> seen_by(runtime& rt, const ref<sink>& of) {
  auto all = of.ask<&sink::all>();
  rt.run();
  return all.get();
}

TEST_P(bounded, fail_refuses_the_one_past_the_limit) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(5, when_full::fail), go);
  for (int i = 0; i < 5; ++i) to.tell<&sink::put>(i);
  EXPECT_THROW(to.tell<&sink::put>(5), mailbox_full);
  auto asked = to.ask<&sink::put>(6);
  EXPECT_THROW(asked.get(), mailbox_full);
  go.set();
  rt.run();
  to.tell<&sink::put>(7);
  rt.run();
  auto expected = numbers(0, 5);
  expected.push_back(7);
  EXPECT_EQ(seen_by(rt, to), expected);
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

TEST_P(bounded, drop_new_makes_a_dead_letter_of_it) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(3, when_full::drop_new), go);
  for (int i = 0; i < 10; ++i) to.tell<&sink::put>(i);
  EXPECT_EQ(rt.metrics().dead_letters, 7u);
  go.set();
  rt.run();
  EXPECT_EQ(seen_by(rt, to), numbers(0, 3));
}

TEST_P(bounded, drop_old_keeps_the_newest) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(3, when_full::drop_old), go);
  for (int i = 0; i < 10; ++i) to.tell<&sink::put>(i);
  go.set();
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 7u);
  EXPECT_EQ(seen_by(rt, to), numbers(7, 10));
}

struct waits_long {
  std::vector<int> seen;
  task<> hold(event until, event held) {
    held.set();
    co_await until.wait();
  }
  void put(const std::shared_ptr<int>& one) { seen.push_back(*one); }
  std::vector<int> all() { return seen; }
};

// The limit holds while a turn of the actor is suspended, too; otherwise messages would pile up.
TEST_P(bounded, drop_old_keeps_no_more_while_a_turn_waits) {
  constexpr int count = 2'000, limit = 8, most = 64;
  runtime rt(options());
  event go, held;
  auto to = rt.spawn<waits_long>(limited_to(limit, when_full::drop_old));
  auto floods = [&]() -> task<> {
    to.tell<&waits_long::hold>(go, held);
    co_await held.wait();
    const auto counted = std::make_shared<int>(0);
    const std::weak_ptr<int> sent = counted;
    for (int i = 0; i < count; ++i) {
      to.tell<&waits_long::put>(std::shared_ptr<int>(counted, counted.get()));
      if (i % 16 == 0) co_await yield();
    }
    for (int i = 0; i < 5'000 && sent.use_count() > most; ++i) co_await sleep_for(1ms);
    EXPECT_LE(sent.use_count(), most);
    for (int i = 0; i < limit; ++i) to.tell<&waits_long::put>(std::make_shared<int>(i));
    go.set();
  };
  rt.spawn(floods());
  rt.run();
  auto all = to.ask<&waits_long::all>();
  rt.run();
  EXPECT_EQ(all.get(), numbers(0, limit));
}

task<int> feed(ref<sink> to, int from, int count) {
  for (int i = 0; i < count; ++i) co_await to.send<&sink::put>(from + i);
  co_return count;
}

struct curious {
  int called = 0, handled = 0;
  void begin(ref<sink> of) {
    of.ask<&sink::put>(7).then([this](int n) { called += n; },
                               [](const std::exception_ptr&) { FAIL(); });
  }
  task<> hold(event until) { co_await until.wait(); }
  void handle() { ++handled; }
  std::pair<int, int> all() { return {called, handled}; }
};

// The construction of an actor and the callbacks of its futures do not count against the limit, and
// are never dropped.
TEST_P(bounded, callbacks_and_constructors_do_not_count) {
  for (const bool pinned_one : {false, true}) {
    for (const when_full policy : {when_full::fail, when_full::drop_old}) {
      runtime rt(options());
      event go;
      auto of = rt.spawn<sink>();
      auto to = pinned_one ? rt.spawn<curious>(pinned("curious", limited_to(3, policy)))
                           : rt.spawn<curious>(limited_to(3, policy));
      to.tell<&curious::begin>(of);
      to.tell<&curious::hold>(go);
      // The answer has come, and its callback waits behind the turn.
      EXPECT_THROW(rt.run(), stalled);
      for (int i = 0; i < 3; ++i) to.tell<&curious::handle>();
      if (policy == when_full::fail) {
        EXPECT_THROW(to.tell<&curious::handle>(), mailbox_full);
      } else {
        // So many that the turn is asked to drop some.
        for (int i = 0; i < 40; ++i) to.tell<&curious::handle>();
      }
      go.set();
      rt.run();
      auto all = to.ask<&curious::all>();
      rt.run();
      EXPECT_EQ(all.get(), std::pair(7, 3));
    }
  }
}

TEST_P(bounded, suspend_lets_senders_wait_and_loses_nothing) {
  runtime rt(options());
  const int each = fewer(2'000, 10);
  auto to = rt.spawn<sink>(limited_to(1, when_full::suspend));
  std::vector<future<int>> done;
  for (int s = 0; s < 7; ++s) done.push_back(rt.spawn(feed(to, s * each, each)));
  rt.run();
  for (auto& one : done) EXPECT_EQ(one.get(), each);
  auto seen = seen_by(rt, to);
  for (int s = 0; s < 7; ++s) {
    std::vector<int> of_one;
    std::copy_if(seen.begin(), seen.end(), std::back_inserter(of_one),
                 [&](int n) { return n / each == s; });
    EXPECT_EQ(of_one, numbers(s * each, (s + 1) * each)) << "in the order sent";
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(7 * each));
}

TEST_P(bounded, who_waits_for_room_and_is_cancelled_sends_nothing_and_keeps_no_room) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(2, when_full::suspend), go);
  to.tell<&sink::put>(0);
  to.tell<&sink::put>(1);
  struct sender {
    task<> one(ref<sink> to, int n) { co_await to.send<&sink::put>(n); }
  };
  std::vector<ref<sender>> all;
  for (int i = 2; i < 8; ++i) {
    all.push_back(rt.spawn<sender>());
    all.back().tell<&sender::one>(to, i);
  }
  EXPECT_THROW(rt.run(), stalled);
  for (int i = 0; i < 6; i += 2) all[static_cast<std::size_t>(i)].stop();
  EXPECT_THROW(rt.run(), stalled);
  go.set();
  rt.run();
  auto seen = seen_by(rt, to);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 3, 5, 7}));
  for (int i = 0; i < 20; ++i) static_cast<void>(rt.spawn(feed(to, 100 + i, 1)));
  rt.run();
  EXPECT_EQ(seen_by(rt, to).size(), 25u) << "no room was lost";
}

TEST_P(bounded, who_waits_for_room_of_one_that_stops_goes_on) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(1, when_full::suspend), go);
  to.tell<&sink::put>(0);
  auto waiting = rt.spawn(feed(to, 1, 3));
  EXPECT_THROW(rt.run(), stalled);
  to.stop_now();
  rt.run();
  EXPECT_EQ(waiting.get(), 3) << "what it sent are dead letters";
  EXPECT_GE(rt.metrics().dead_letters, 4u);
}

task<int> ask_many(ref<sink> to, int from, int count) {
  std::vector<future<int>> all;
  for (int i = 0; i < count; ++i) all.push_back(to.ask<&sink::put>(from + i));
  int sum = 0;
  for (auto& one : all) sum += co_await std::move(one);
  co_return sum;
}

TEST_P(bounded, suspend_lets_asks_wait_and_answers_each) {
  constexpr int each = fewer(1'000, 10);
  runtime rt(options());
  for (const auto& where : thread_kinds("bounded", limited_to(4, when_full::suspend))) {
    auto to = spawn_on<sink>(rt, where);
    std::vector<future<int>> sums;
    for (int s = 0; s < 3; ++s) sums.push_back(rt.spawn(ask_many(to, s * each, each)));
    rt.run();
    for (int s = 0; s < 3; ++s) {
      const auto those = numbers(s * each, (s + 1) * each);
      EXPECT_EQ(sums[static_cast<std::size_t>(s)].get(),
                std::accumulate(those.begin(), those.end(), 0));
    }
    const auto seen = seen_by(rt, to);
    EXPECT_EQ(seen.size(), 3u * each);
    for (int s = 0; s < 3; ++s) {
      std::vector<int> of_one;
      std::copy_if(seen.begin(), seen.end(), std::back_inserter(of_one),
                   [&](int n) { return n / each == s; });
      EXPECT_EQ(of_one, numbers(s * each, (s + 1) * each)) << "in the order asked";
    }
  }
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

struct slow_sink {
  static inline std::atomic<int> begun{0};
  task<int> put(int n) {
    ++begun;
    co_await yield();
    co_return n;
  }
  task<> hold(event until) { co_await until.wait(); }
};

TEST_P(bounded, asks_of_coroutines_and_callables_wait_for_room_too) {
  runtime rt(options());
  auto to = rt.spawn<slow_sink>(limited_to(1, when_full::suspend));
  std::vector<future<int>> all;
  for (int i = 0; i < 100; ++i) all.push_back(to.ask<&slow_sink::put>(i));
  for (int i = 100; i < 200; ++i)
    all.push_back(to.ask([held = std::make_unique<int>(i)](slow_sink&) { return *held; }));
  rt.run();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), i);
}

TEST_P(bounded, asks_and_sends_come_in_in_the_order_in_which_they_began_to_wait) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(1, when_full::suspend), go);
  to.tell<&sink::put>(0);
  std::vector<future<int>> asked;
  std::vector<future<>> sent;
  for (int i = 1; i < 40; ++i) {
    if (i % 2 == 0) {
      asked.push_back(to.ask<&sink::put>(i));
    } else {
      sent.push_back(rt.spawn(
          [](ref<sink> whom, int n) -> task<> { co_await whom.send<&sink::put>(n); }(to, i)));
      EXPECT_THROW(rt.run(), stalled) << "it waits";
    }
    EXPECT_THROW(to.tell<&sink::put>(i), mailbox_full);
  }
  go.set();
  rt.run();
  EXPECT_EQ(seen_by(rt, to), numbers(0, 40));
}

TEST_P(bounded, an_ask_that_is_given_up_while_it_waits_for_room_asks_nothing) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(1, when_full::suspend), go);
  to.tell<&sink::put>(0);
  std::stop_source source;
  struct asker {
    task<> one(ref<sink> whom, int n) { static_cast<void>(co_await whom.ask<&sink::put>(n)); }
  };
  auto stopped = rt.spawn<asker>();
  stopped.tell<&asker::one>(to, 1);
  auto late =
      rt.spawn([](ref<sink> whom) -> task<> { co_await whom.ask<&sink::put>(2).timeout(1ms); }(to));
  auto told = rt.spawn([](ref<sink> whom, std::stop_token stop) -> task<> {
    co_await whom.ask<&sink::put>(3).stop(stop);
  }(to, source.get_token()));
  EXPECT_THROW(rt.run(), stalled);
  stopped.stop();
  source.request_stop();
  auto stays = rt.spawn(ask_many(to, 4, 3));
  // The future of this ask is dropped at once; the message is delivered all the same.
  { const auto dropped = to.ask<&sink::put>(7); }
  EXPECT_THROW(rt.run(), stalled);
  EXPECT_THROW(late.get(), timed_out);
  EXPECT_THROW(told.get(), cancelled);
  go.set();
  rt.run();
  EXPECT_EQ(stays.get(), 15);
  auto seen = seen_by(rt, to);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int>{0, 4, 5, 6, 7}));
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

TEST_P(bounded, asks_that_are_given_up_again_and_again_are_forgotten) {
  runtime rt(options());
  event go;
  auto to = stuck(rt, limited_to(1, when_full::suspend), go);
  to.tell<&sink::put>(0);
  const auto counted = std::make_shared<int>(0);
  rt.spawn([](ref<sink> whom, std::shared_ptr<int> held) -> task<> {
    for (int i = 0; i < 500; ++i) {
      try {
        auto later = whom.ask([held](sink&) { return *held; });
        co_await std::move(later).timeout(1us);
      } catch (const timed_out&) {
      }
    }
  }(to, counted));
  EXPECT_THROW(rt.run(), stalled);
  EXPECT_LT(counted.use_count(), 100);
  go.set();
  rt.run();
  EXPECT_EQ(counted.use_count(), 1);
}

// Many asks wait when their actor, or its runtime, ends: each is answered, and the stack does not
// grow with their number.
TEST_P(bounded, asks_that_wait_for_room_of_one_that_ends_hear_of_it) {
  constexpr int count = fewer(20'000, 20);
  for (const int how : {0, 1, 2, 3}) {
    std::vector<future<int>> all;
    {
      runtime rt(options());
      event go;
      auto to = stuck(rt, limited_to(2, when_full::suspend), go);
      for (int i = 0; i < count; ++i) all.push_back(to.ask<&sink::put>(i));
      if (how == 0) to.stop_now();
      if (how == 1) to.stop();
      if (how == 2) rt.stop(stop_mode::discard, 10s);
      if (how < 3) rt.run();
    }
    // The messages that are in the mailbox when the stop comes.
    const std::size_t handled = how == 1 ? 2 : 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i < handled) {
        EXPECT_EQ(all[i].get(), static_cast<int>(i));
      } else {
        EXPECT_THROW(all[i].get(), actor_stopped);
      }
    }
  }
}

struct pumper {
  ref<pumper> peer;
  task<> pump(event both, int n) {
    co_await both.wait();
    for (int i = 0; i < n; ++i) co_await peer.send<&pumper::drop>();
  }
  void drop() {}
  void know(ref<pumper> other) { peer = std::move(other); }
};

TEST_P(bounded, of_a_circle_of_full_mailboxes_one_sender_is_told) {
  runtime rt(options());
  auto a = rt.spawn<pumper>(limited_to(2, when_full::suspend));
  auto b = rt.spawn<pumper>(limited_to(2, when_full::suspend));
  a.tell<&pumper::know>(b);
  b.tell<&pumper::know>(a);
  rt.run();
  event both;
  a.tell<&pumper::pump>(both, 100);
  b.tell<&pumper::pump>(both, 100);
  EXPECT_THROW(rt.run(), stalled);
  both.set();
  try {
    rt.run();
    FAIL() << "it ended";
  } catch (const deadlock& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("room in the mailbox of"), std::string::npos) << text;
    EXPECT_NE(text.find("pumper::pump"), std::string::npos) << text;
    EXPECT_NE(text.find("bounded.cpp:"), std::string::npos) << text;
  }
  rt.run();  // the other actor has sent all its messages, since the deadlock ended this one's turn
}

struct library {
  static constexpr bool reentrant = true;
  event opened;
  std::vector<std::string> log;
  task<int> borrow(std::string name) {
    log.push_back(name + " asks");
    co_await opened.wait();
    log.push_back(name + " has");
    co_return static_cast<int>(name.size());
  }
  void open() { opened.set(); }
  int count() { return static_cast<int>(log.size()); }
  task<int> through(ref<library> other, ref<library> back) {
    const int n = co_await other.ask<&library::relay>(back);
    co_return n + 1;
  }
  task<int> relay(ref<library> back) {
    const int n = co_await back.ask<&library::count>();
    co_return n;
  }
};

TEST_P(bounded, a_reentrant_actor_goes_on_while_its_handlers_wait) {
  runtime rt(options());
  auto one = rt.spawn<library>();
  auto a = one.ask<&library::borrow>("a");
  auto bb = one.ask<&library::borrow>("bb");
  auto seen = one.ask<&library::count>();
  one.tell<&library::open>();
  rt.run();
  EXPECT_EQ(a.get(), 1);
  EXPECT_EQ(bb.get(), 2);
  EXPECT_EQ(seen.get(), 2) << "both had asked, none had";
  auto round = one.ask<&library::through>(rt.spawn<library>(), one);
  rt.run();
  EXPECT_EQ(round.get(), 5) << "asked back while it waits: no deadlock";
}

TEST_P(bounded, stopping_a_reentrant_actor_cancels_all_its_calls) {
  runtime rt(options());
  auto one = rt.spawn<library>();
  std::vector<future<int>> all;
  for (int i = 0; i < 10; ++i) all.push_back(one.ask<&library::borrow>("x"));
  try {
    rt.run();
    FAIL() << "it ended";
  } catch (const stalled& e) {
    EXPECT_NE(std::string(e.what()).find("library::borrow"), std::string::npos) << e.what();
  }
  one.stop_now();
  rt.run();
  for (auto& each : all) EXPECT_THROW(each.get(), actor_stopped);
}

TEST_P(bounded, a_runtime_that_ends_ends_the_calls_of_reentrant_actors) {
  std::vector<future<int>> all;
  {
    runtime rt(options());
    auto one = rt.spawn<library>();
    for (int i = 0; i < 10; ++i) all.push_back(one.ask<&library::borrow>("x"));
    EXPECT_THROW(rt.run(), stalled);
  }
  for (auto& each : all) EXPECT_THROW(each.get(), actor_stopped);
}

struct unwilling {
  unwilling() = default;
  unwilling(const unwilling&) { throw std::runtime_error("copy"); }
  unwilling(unwilling&&) = default;
};
struct taker {
  int take(unwilling) { return 1; }
  int fine() { return 2; }
};

TEST_P(bounded, a_message_that_cannot_be_made_takes_no_room) {
  runtime rt(options());
  auto to = rt.spawn<taker>(limited_to(1, when_full::fail));
  const unwilling one;
  EXPECT_THROW(static_cast<void>(to.ask<&taker::take>(one)), std::runtime_error);
  EXPECT_THROW(to.tell<&taker::take>(one), std::runtime_error);
  auto answer = to.ask<&taker::fine>();
  rt.run();
  EXPECT_EQ(answer.get(), 2);
}

struct patient {
  static constexpr bool reentrant = true;
  std::shared_ptr<std::vector<std::string>> log;
  explicit patient(std::shared_ptr<std::vector<std::string>> to) : log(std::move(to)) {}
  ~patient() { log->push_back("destroyed"); }
  task<> spin() {
    try {
      for (;;) co_await yield();
    } catch (const cancelled&) {
      log->push_back("unwound");
    }
  }
  task<int> sit(event until) {
    co_await until.wait();
    co_return 1;
  }
  void fail() { throw std::runtime_error("bad"); }
  void note() { log->push_back("noted"); }
};

TEST_P(bounded, a_reentrant_actor_ends_after_its_calls_have) {
  runtime rt(options());
  auto log = std::make_shared<std::vector<std::string>>();
  auto one = rt.spawn<patient>(log);
  one.tell<&patient::spin>();
  one.stop();
  one.tell<&patient::note>();
  rt.run();
  EXPECT_EQ(*log, (std::vector<std::string>{"unwound", "destroyed"}));
  event never;
  auto strict = rt.spawn<patient>({.on_error = error_policy::stop}, log);
  auto asked = strict.ask<&patient::sit>(never);
  strict.tell<&patient::fail>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_THROW(asked.get(), actor_stopped);
}

struct selfish {
  int value = 4;
  int n() { return value; }
  task<> call_back(std::shared_ptr<int> into) {
    auto later = self(this).ask<&selfish::n>();
    later.then([into](int got) { *into = got; });
    co_return;
  }
  task<int> part(bool first) {
    if (first) co_await yield();
    auto later = self(this).ask<&selfish::n>();
    co_return co_await std::move(later);
  }
  task<bool> both(bool first) {
    auto one = part(first);
    auto two = part(first);
    bool found = false;
    try {
      co_await when_all(std::move(one), std::move(two));
    } catch (const deadlock&) {
      found = true;
    }
    co_return found;
  }
};

TEST_P(bounded, an_ask_that_waits_for_itself_is_found_where_it_waits) {
  runtime rt(options());
  auto one = rt.spawn<selfish>();
  auto got = std::make_shared<int>(0);
  one.tell<&selfish::call_back>(got);
  rt.run();
  EXPECT_EQ(*got, 4) << "callbacks wait for nobody";
  for (const bool first : {false, true}) {
    auto found = one.ask<&selfish::both>(first);
    rt.run();
    EXPECT_TRUE(found.get()) << "in a branch, before and after its first suspension";
  }
}

TROUPE_TEST_EACH(bounded, all_settings);

}  // namespace
}  // namespace troupe::test
