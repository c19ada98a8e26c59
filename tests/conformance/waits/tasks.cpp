// Tasks, futures and asks: a turn that waits holds no thread, and everything resolves exactly once.
#include <future>
#include <latch>
#include <numeric>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tasks : public conformance {};

struct account {
  int balance = 100;
  std::vector<std::string> seen;
  void deposit(int n) { balance += n; }
  int read() const { return balance; }
  int refuse() { throw std::runtime_error("refused"); }
  task<int> transfer(ref<account> to, int n) {
    counted here;
    balance -= n;
    co_await to.ask<&account::deposit>(n);
    co_return balance;
  }
  task<> fail_later() {
    counted here;
    co_await sleep_for(100us);
    throw std::runtime_error("later");
  }
  task<> slow(std::string name) {
    counted here;
    seen.push_back(name + " begins");
    co_await sleep_for(1ms);
    seen.push_back(name + " ends");
  }
  void note(std::string name) { seen.push_back(std::move(name)); }
  std::vector<std::string> all() { return seen; }
  future<int> from_elsewhere(ref<account> other) { return other.ask<&account::read>(); }
};

task<int> leaf(int n) {
  counted here;
  co_return n;
}
task<long> sum(int n) {
  long total = 0;
  for (int i = 0; i < n; ++i) total += co_await leaf(1);
  co_return total;
}
task<int> deep(int n) {
  counted here;
  if (n == 0) co_return 0;
  const int below = co_await deep(n - 1);
  co_return below + 1;
}

TEST_P(tasks, awaiting_uses_no_stack) {
  runtime rt(options());
  auto many = rt.spawn(sum(fewer(2'000'000, 10)));
  auto nested = rt.spawn(deep(fewer(100'000, 10)));
  rt.run();
  EXPECT_EQ(many.get(), fewer(2'000'000, 10));
  EXPECT_EQ(nested.get(), fewer(100'000, 10));
  EXPECT_EQ(live.load(), 0);
}

// Awaits the first task of a list beside a task that awaits the rest.
task<int> beside(int n, bool sleeps) {
  counted here;
  if (n == 0 && sleeps) co_await sleep_for(1ms);
  if (n == 0) co_return 0;
  auto first = leaf(1);
  auto rest = beside(n - 1, sleeps);
  const auto [one, more] = co_await when_all(std::move(first), std::move(rest));
  co_return one + more;
}
task<int> first_of(int n) {
  counted here;
  if (n == 0) co_await sleep_for(1ms);
  if (n == 0) co_return 0;
  auto never = []() -> task<int> {
    counted inside;
    bool was_cancelled = false;
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    // That task never suspends, so it may still return.
    const int others = co_await beside(2, false);
    co_return was_cancelled ? others : 0;
  };
  auto loser = never();
  auto rest = first_of(n - 1);
  const auto winner = co_await when_any(std::move(loser), std::move(rest));
  co_return static_cast<int>(winner.index()) + n - 1;
}

TEST_P(tasks, groups_within_groups_use_no_stack) {
  runtime rt(options());
  const int count = fewer(100'000, 10);
  auto at_once = rt.spawn(beside(count, false));
  auto later = rt.spawn(beside(count, true));
  auto first = rt.spawn(first_of(count / 10));
  rt.run();
  EXPECT_EQ(at_once.get(), count);
  EXPECT_EQ(later.get(), count);
  EXPECT_EQ(first.get(), count / 10);
  auto cancelled_in_depth = [](int n) -> task<std::size_t> {
    auto all = beside(n, true);
    auto timeout = []() -> task<> { co_await sleep_for(100us); };
    auto over = timeout();
    const auto winner = co_await when_any(std::move(all), std::move(over));
    co_return winner.index();
  };
  rt.spawn(cancelled_in_depth(count));
  rt.run();
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, an_ask_gives_a_value_or_an_exception) {
  runtime rt(options());
  auto a = rt.spawn<account>();
  auto use = [](ref<account> from, ref<account> to) -> task<int> {
    int sum = co_await from.ask<&account::read>();
    std::string said;
    try {
      co_await from.ask<&account::refuse>();
    } catch (const std::runtime_error& e) {
      said = e.what();
    }
    if (said != "refused") co_return -1;
    sum += co_await from.ask<&account::transfer>(to, 30);
    sum += co_await to.ask<&account::read>();
    sum += co_await from.ask<&account::from_elsewhere>(to);
    auto last = from.ask([](account& self) { return self.balance; });
    co_return sum + co_await last;
  };
  auto got = rt.spawn(use(a, rt.spawn<account>(pinned("account"))));
  rt.run();
  EXPECT_EQ(got.get(), 100 + 70 + 130 + 130 + 70);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, a_suspended_turn_is_exclusive_and_messages_queue_behind_it) {
  runtime rt(options());
  for (auto where : {0, 1, 2}) {
    auto a = where == 0   ? rt.spawn<account>()
             : where == 1 ? rt.spawn<account>(pinned("one"))
                          : rt.spawn<account>(on_main());
    a.tell<&account::slow>("first");
    a.tell<&account::note>("second");
    a.tell<&account::slow>("third");
    a.tell<&account::note>("fourth");
    auto seen = a.ask<&account::all>();
    rt.run();
    EXPECT_EQ(seen.get(), (std::vector<std::string>{"first begins", "first ends", "second",
                                                    "third begins", "third ends", "fourth"}));
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, what_a_told_coroutine_throws_is_a_failure_of_its_actor) {
  runtime rt(options());
  auto a = rt.spawn<account>();
  a.tell<&account::fail_later>();
  a.tell<&account::deposit>(1);
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_NE(rt.thrown().actor.find("account"), std::string::npos);
  EXPECT_NE(rt.thrown().method.find("fail_later"), std::string::npos);
  auto after = a.ask<&account::read>();
  rt.run();
  EXPECT_EQ(after.get(), 101);
}

TEST_P(tasks, what_a_spawned_task_throws_goes_to_its_future_or_to_run) {
  auto thrower = []() -> task<int> {
    co_await leaf(1);
    throw std::logic_error("spawned");
  };
  runtime rt(options());
  auto kept = rt.spawn(thrower());
  rt.run();
  EXPECT_THROW(kept.get(), std::logic_error);
  rt.spawn(thrower());
  EXPECT_THROW(rt.run(), std::logic_error);
}

TEST_P(tasks, an_ask_to_a_stopped_actor_says_so) {
  runtime rt(options());
  auto a = rt.spawn<account>();
  a.stop();
  auto late = a.ask<&account::read>();
  rt.run();
  EXPECT_THROW(late.get(), actor_stopped);
  auto later = a.ask<&account::transfer>(a, 1);
  rt.run();
  EXPECT_THROW(later.get(), actor_stopped);
}

TEST_P(tasks, a_timeout_or_a_stop_ends_a_wait_once) {
  runtime rt(options());
  auto use = [](ref<account> a) -> task<std::string> {
    std::string said;
    a.tell<&account::slow>("long");
    try {
      co_await a.ask<&account::read>().timeout(100us);
      said += "value ";
    } catch (const timed_out&) {
      said += "timeout ";
    }
    std::stop_source source;
    auto answer = a.ask<&account::slow>("longer");
    source.request_stop();
    try {
      co_await std::move(answer).stop(source.get_token());
      said += "value";
    } catch (const cancelled&) {
      said += "cancelled";
    }
    co_await a.ask<&account::read>().timeout(1h).stop(source.get_token());
    co_return said;
  };
  auto got = rt.spawn(use(rt.spawn<account>()));
  EXPECT_THROW(rt.run(); got.get(), cancelled);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, a_dropped_promise_is_a_broken_one) {
  runtime rt(options());
  auto wait = [](future<int> of) -> task<int> { co_return co_await std::move(of); };
  promise<int> dropped;
  auto got = rt.spawn(wait(dropped.get_future()));
  { promise<int> gone = std::move(dropped); }
  rt.run();
  EXPECT_THROW(got.get(), broken_promise);
  promise<int> twice;
  EXPECT_TRUE(twice.get_future().valid());
  EXPECT_THROW(static_cast<void>(twice.get_future()), usage_error);
  twice.set_value(1);
  EXPECT_THROW(twice.set_value(2), usage_error);
  EXPECT_THROW(future<int>().get(), usage_error);
}

TEST_P(tasks, threads_of_your_own_resolve_and_wait) {
  runtime rt(options());
  for (int i = 0; i < fewer(50); ++i) {
    promise<int> answer;
    auto wait = [](future<int> of) -> task<int> {
      const int value = co_await std::move(of);
      co_return value + 1;
    };
    auto got = rt.spawn(wait(answer.get_future()));
    std::thread outside(
        [answer = std::move(answer), open = rt.hold(), i]() mutable { answer.set_value(i); });
    rt.run();
    EXPECT_EQ(got.get(), i + 1);
    outside.join();
  }
  if (!threaded()) return;
  auto a = rt.spawn<account>();
  EXPECT_EQ(a.ask<&account::read>().get(), 100);
  promise<> never;
  EXPECT_FALSE(never.get_future().wait_for(1us));
  rt.run();
}

TEST_P(tasks, a_handler_may_not_block_in_a_future) {
  runtime rt(options());
  auto a = rt.spawn<account>();
  a.tell([](account& self) { troupe::self(&self).ask<&account::read>().get(); });
  EXPECT_THROW(rt.run(), usage_error);
}

TEST_P(tasks, callbacks_run_in_the_turns_of_who_asked) {
  struct asker {
    ref<account> of;
    std::vector<std::string> seen{};
    void go() {
      of.ask<&account::read>().then([this](int n) { seen.push_back(std::to_string(n)); },
                                    [](std::exception_ptr) {});
      of.ask<&account::refuse>().then([](int) {},
                                      [this](std::exception_ptr) { seen.push_back("refused"); });
      of.ask<&account::read>().then([](int) { throw std::logic_error("in on_value"); },
                                    [this](std::exception_ptr) { seen.push_back("own error"); });
      of.ask<&account::read>().then([](int) { throw std::logic_error("unheard"); });
    }
    std::vector<std::string> all() { return seen; }
  };
  runtime rt(options());
  auto a = rt.spawn<asker>(asker{rt.spawn<account>()});
  a.tell<&asker::go>();
  EXPECT_THROW(rt.run(), std::logic_error);
  auto seen = a.ask<&asker::all>();
  rt.run();
  EXPECT_EQ(seen.get(), (std::vector<std::string>{"100", "refused", "own error"}));
}

// Rings of asks: from one actor that asks itself up to a ring of many.
struct link {
  ref<link> next{};
  task<int> go(int hops) {
    counted here;
    if (hops == 0) co_return 0;
    const int rest = co_await next.ask<&link::go>(hops - 1);
    co_return rest + 1;
  }
};

TEST_P(tasks, an_ask_that_would_wait_for_itself_throws_at_once) {
  runtime rt(options());
  for (const int length : {1, 2, 3, 50}) {
    std::vector<ref<link>> ring;
    for (int i = 0; i < length; ++i) ring.push_back(rt.spawn<link>());
    for (int i = 0; i < length; ++i) {
      ring[static_cast<std::size_t>(i)].tell(
          [next = ring[static_cast<std::size_t>((i + 1) % length)]](link& self) {
            self.next = next;
          });
    }
    auto fine = ring[0].ask<&link::go>(length - 1);
    rt.run();
    EXPECT_EQ(fine.get(), length - 1);
    auto stuck = ring[0].ask<&link::go>(length);
    rt.run();
    try {
      stuck.get();
      FAIL();
    } catch (const deadlock& e) {
      EXPECT_NE(std::string(e.what()).find("link::go asks "), std::string::npos) << e.what();
    }
    for (auto& one : ring) one.tell([](link& self) { self.next = {}; });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

// One actor of the cycle is reentrant. It asks in a task beside others, after a wait.
struct asked_back;
struct asks_first {
  ref<asked_back> other{};
  task<int> begin();
  int read() { return 1; }
};
struct asked_back {
  static constexpr bool reentrant = true;
  ref<asks_first> other{};
  task<int> ask_later() {
    co_await sleep_for(1us);
    co_return co_await other.ask<&asks_first::read>();
  }
  task<int> inner() {
    const auto [one, two] = co_await when_all(ask_later(), ask_later());
    co_return one + two;
  }
  task<int> both() {
    const auto [one, two] = co_await when_all(inner(), inner());
    co_return one + two;
  }
};
task<int> asks_first::begin() { co_return co_await other.ask<&asked_back::both>(); }

TEST_P(tasks, an_ask_in_a_task_beside_others_that_would_wait_for_itself_throws_too) {
  runtime rt(options());
  auto first = rt.spawn<asks_first>();
  auto second = rt.spawn<asked_back>();
  first.tell([second](asks_first& self) { self.other = second; });
  second.tell([first](asked_back& self) { self.other = first; });
  auto stuck = first.ask<&asks_first::begin>();
  rt.run();
  EXPECT_THROW(stuck.get(), deadlock);
  auto fine = second.ask<&asked_back::both>();
  rt.run();
  EXPECT_EQ(fine.get(), 4);
  first.tell([](asks_first& self) { self.other = {}; });
  rt.run();
}

// One actor passes answers on. It waits for nothing itself, but the actor that asked it waits.
struct passes_on {
  ref<passes_on> next{};
  task<int> begin(int through) {
    const counted here;
    co_return co_await next.ask<&passes_on::pass>(through);
  }
  future<int> pass(int further) {
    if (further > 1) return next.ask<&passes_on::pass>(further - 1);
    return next.ask<&passes_on::end>();
  }
  int end() { return 7; }
};

TEST_P(tasks, an_ask_that_would_wait_for_itself_through_returned_futures_throws_too) {
  runtime rt(options());
  for (const int length : {2, 3, 10, 200}) {
    std::vector<ref<passes_on>> ring;
    for (int i = 0; i < length; ++i) ring.push_back(rt.spawn<passes_on>());
    for (std::size_t i = 0; i < ring.size(); ++i) {
      ring[i].tell([next = ring[(i + 1) % ring.size()]](passes_on& self) { self.next = next; });
    }
    auto stuck = ring[0].ask<&passes_on::begin>(length - 1);
    EXPECT_NO_THROW(rt.run());
    try {
      stuck.get();
      FAIL();
    } catch (const deadlock& e) {
      EXPECT_NE(std::string(e.what()).find("passes_on::begin asks "), std::string::npos)
          << e.what();
    }
    auto further = ring[0].ask<&passes_on::begin>(length);
    // The ask passes by the actor that was asked first, but no turn waits.
    auto none = ring[0].ask<&passes_on::pass>(3 * length);
    EXPECT_NO_THROW(rt.run());
    EXPECT_THROW(further.get(), deadlock);
    EXPECT_EQ(none.get(), 7);
    if (length > 2) {
      auto before = ring[0].ask<&passes_on::begin>(length - 2);
      rt.run();
      EXPECT_EQ(before.get(), 7);
    }
    for (auto& one : ring) one.tell([](passes_on& self) { self.next = {}; });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

// The asked actor begins another ask and answers before that has ended. So none of the askers above
// waits for that one.
struct begins_jobs {
  struct job {
    task<int> work(ref<begins_jobs> of, event go) {
      const counted here;
      co_await go.wait();
      co_return co_await of.ask<&begins_jobs::read>();
    }
  };
  ref<job> runs{};
  std::vector<future<int>> kept{};
  int read() { return 3; }
  task<int> begin(ref<begins_jobs> asks, event go, bool keeps) {
    auto later = runs.ask<&job::work>(asks, go);
    if (keeps) kept.push_back(std::move(later));
    co_return 1;
  }
  task<int> ask_for_it(ref<begins_jobs> other, event go, bool keeps) {
    const auto me = self(this);
    const int n = co_await other.ask<&begins_jobs::begin>(me, go, keeps);
    go.set();
    co_return n;
  }
};

// The asker continues without the answer, which is dropped.
struct gives_up_by_time {
  struct slow {
    task<int> work(ref<gives_up_by_time> of, event go, promise<int> got) {
      const counted here;
      co_await go.wait();
      try {
        const int n = co_await of.ask<&gives_up_by_time::read>();
        got.set_value(n);
      } catch (...) {
        got.set_exception(std::current_exception());
      }
      co_return 1;
    }
  };
  static task<int> nap() {
    co_await sleep_for(1ms);
    co_return 1;
  }
  int read() { return 3; }
  task<std::size_t> ask(ref<slow> other, event go, promise<int> got) {
    auto answer = as_task(other.ask<&slow::work>(self(this), go, std::move(got)));
    auto first = when_any(std::move(answer), nap());
    const auto ended = co_await std::move(first);
    go.set();
    co_await sleep_for(1ms);  // it is asked meanwhile
    co_return ended.index();
  }
};

TEST_P(tasks, an_ask_that_was_given_up_closes_no_circle) {
  runtime rt(options());
  promise<int> got;
  auto answer = got.get_future();
  auto one = rt.spawn<gives_up_by_time>();
  auto done =
      one.ask<&gives_up_by_time::ask>(rt.spawn<gives_up_by_time::slow>(), event(), std::move(got));
  EXPECT_NO_THROW(rt.run());
  EXPECT_EQ(done.get(), 1u);
  EXPECT_EQ(answer.get(), 3);
}

TEST_P(tasks, an_ask_that_was_answered_closes_no_circle) {
  for (const bool keeps : {false, true}) {
    runtime rt(options());
    auto one = rt.spawn<begins_jobs>(), other = rt.spawn<begins_jobs>();
    other.tell([](begins_jobs& self) { self.runs = spawn<begins_jobs::job>(); });
    auto done = one.ask<&begins_jobs::ask_for_it>(other, event(), keeps);
    EXPECT_NO_THROW(rt.run());
    EXPECT_EQ(done.get(), 1);
    auto kept = other.ask([](begins_jobs& self) { return std::move(self.kept); });
    rt.run();
    for (auto& later : kept.get()) EXPECT_EQ(later.get(), 3);
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, what_never_comes_is_a_stall_that_is_explained) {
  struct waiter {
    promise<> never{};
    task<> sit() {
      counted here;
      co_await never.get_future();
    }
  };
  {
    runtime rt(options());
    auto one = rt.spawn<waiter>();
    one.tell<&waiter::sit>();
    std::string said;
    try {
      rt.run();
    } catch (const stalled& e) {
      said = e.what();
    }
    EXPECT_NE(said.find("waiter"), std::string::npos) << said;
    EXPECT_NE(said.find("sit"), std::string::npos) << said;
    EXPECT_NE(said.find("tasks.cpp:"), std::string::npos) << said;
    // Code outside of the program may still resolve the promise, so the actor stays.
    one.tell([](waiter&) {});
    EXPECT_THROW(rt.run(), stalled);
    EXPECT_EQ(live.load(), 1);
  }
  EXPECT_EQ(live.load(), 0) << "the runtime's end cancels what is suspended";
}

TEST_P(tasks, the_end_cancels_what_is_suspended_at_every_kind_of_wait) {
  std::atomic<int> ended{0};
  for (int round = 0; round < fewer(20); ++round) {
    promise<int> never;
    {
      runtime rt(options());
      auto until = [](std::atomic<int>* count, auto wait) -> task<> {
        counted here;
        bool was_cancelled = false;
        try {
          co_await std::move(wait);
        } catch (const cancelled&) {
          was_cancelled = true;
        }
        if (was_cancelled) ++*count;
        co_await sleep_for(1h);  // throws at once, since the task is cancelled
      };
      auto nap = []() -> task<> { co_await sleep_for(1h); };
      rt.spawn(until(&ended, sleep_for(1h)));
      rt.spawn(until(&ended, never.get_future()));
      rt.spawn(until(&ended, rt.spawn(nap()).timeout(2h)));
      rt.spawn(until(&ended, when_all(nap(), nap())));
      rt.spawn(until(&ended, when_any(nap(), nap())));
      rt.post([&rt] { rt.stop(); });
      rt.run();
    }
    EXPECT_EQ(live.load(), 0);
  }
  // One task may get its result before it is cancelled: the task that it awaits is cancelled, too.
  EXPECT_GE(ended.load(), 4 * fewer(20));
}

TEST_P(tasks, side_by_side_all_or_the_first) {
  auto number = [](int n, std::chrono::microseconds span) -> task<int> {
    counted here;
    co_await sleep_for(span);
    if (n < 0) throw std::out_of_range(std::to_string(n));
    co_return n;
  };
  using numbers = decltype(+number);
  auto use = [](numbers give) -> task<std::string> {
    std::string said;
    auto both = when_all(give(1, 200us), give(2, 100us), leaf(3));
    const auto [one, two, three] = co_await std::move(both);
    said += std::to_string(one + two + three) + " ";
    std::vector<task<int>> many;
    for (int i = 0; i < 100; ++i) many.push_back(give(i, std::chrono::microseconds(i % 7)));
    const auto values = co_await when_all(std::move(many));
    said += std::to_string(std::accumulate(values.begin(), values.end(), 0)) + " ";
    const auto first = co_await when_any(give(1, 1h), give(2, 1us), give(3, 1h));
    said += std::to_string(first.index()) + std::to_string(std::get<1>(first)) + " ";
    const auto at_once = co_await when_any(give(1, 1h), leaf(7), leaf(8));
    said += std::to_string(at_once.index()) + " ";
    try {
      co_await when_all(give(4, 1us), give(-5, 1us), give(-6, 1us));
    } catch (const std::out_of_range& e) {
      said += e.what();
    }
    try {
      co_await when_any(give(-7, 1us), when_all(give(1, 1h), give(2, 1h)));
    } catch (const std::out_of_range& e) {
      said += e.what();
    }
    co_return said;
  };
  runtime rt(options());
  auto got = rt.spawn(use(number));
  rt.run();
  EXPECT_EQ(got.get(), "6 4950 12 1 -5-7");
  EXPECT_EQ(live.load(), 0);
}

// Both awaited results come between the last turn and the runtime's end: they cannot be cancelled
// any more, and no turn handles them.
TEST_P(tasks, the_end_finds_a_winner_among_those_that_were_on_their_way) {
  auto wait = [](future<int> one, future<int> two, int* got, bool all) -> task<> {
    counted here;
    if (all) {
      const auto [a, b] = co_await when_all(as_task(std::move(one)), as_task(std::move(two)));
      *got = a + b;
    } else {
      const auto first = co_await when_any(as_task(std::move(one)), as_task(std::move(two)));
      *got = first.index() == 0 ? std::get<0>(first) : std::get<1>(first);
    }
  };
  for (const bool all : {false, true}) {
    int got = 0;
    {
      runtime rt(options());
      promise<int> one, two;
      rt.spawn(wait(one.get_future(), two.get_future(), &got, all));
      EXPECT_THROW(rt.run(), stalled);
      one.set_value(1);
      two.set_value(2);
    }
    EXPECT_EQ(got, all ? 3 : 1);
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(tasks, the_end_destroys_what_never_ends_beside_what_does) {
  auto wait = [](bool all) -> task<> {
    counted here;
    auto never = []() -> task<> {
      counted frame;
      co_await std::suspend_always();
    };
    auto nap = []() -> task<> {
      counted frame;
      try {
        co_await sleep_for(1h);
      } catch (const cancelled&) {
      }
    };
    if (all) {
      co_await when_all(nap(), never(), nap());
    } else {
      co_await when_any(nap(), never(), nap());
    }
    ADD_FAILURE() << "one of them has not ended";
  };
  {
    runtime rt(options());
    rt.spawn(wait(true));
    rt.spawn(wait(false));
    rt.post([&rt] { rt.stop(stop_mode::discard); });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(tasks, the_main_thread_answers_in_the_order_asked) {
  runtime rt(options());
  std::vector<int> order;
  auto use = [](main_thread main, std::vector<int>* in_order) -> task<std::thread::id> {
    for (int i = 0; i < 10; ++i) main.post([in_order, i] { in_order->push_back(i); });
    auto fails = main.call([]() -> int { throw std::runtime_error("main"); });
    bool threw = false;
    try {
      co_await std::move(fails);
    } catch (const std::runtime_error&) {
      threw = true;
    }
    if (!threw) co_return std::thread::id();
    auto where = main.call([] { return std::this_thread::get_id(); });
    co_return co_await std::move(where);
  };
  auto got = rt.spawn(use(rt.main(), &order));
  rt.run();
  EXPECT_EQ(got.get(), std::this_thread::get_id());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  std::thread outside(
      [main = rt.main(), open = rt.hold()] { EXPECT_EQ(main.call_and_wait([] { return 5; }), 5); });
  while (rt.run_once()) {
  }
  outside.join();
  EXPECT_FALSE(rt.poll());
}

TEST_P(tasks, timers_come_again_and_weak_ones_let_the_program_end) {
  runtime rt(options());
  std::stop_source enough;
  std::atomic<int> ticks{0}, faults{0}, once{0}, never{0};
  rt.every(100us,
           [&] {
             if (++ticks >= 5 && faults >= 2) enough.request_stop();
           },
           {.stop = enough.get_token()});
  rt.every(50us,
           [&] {
             if (++faults == 1) throw std::runtime_error("tick");
           },
           {.stop = enough.get_token()});
  rt.after(1h, [&] { ++never; }, {.weak = true});
  rt.after(1us, [&] { ++once; });
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_GE(ticks.load(), 5);
  EXPECT_GE(faults.load(), 2);
  EXPECT_EQ(once.load(), 1);
  EXPECT_EQ(never.load(), 0);
}

TEST_P(tasks, a_handler_and_a_task_have_timers_without_a_reference_to_the_runtime) {
  struct clock_actor {
    std::atomic<int>& ticks;
    explicit clock_actor(std::atomic<int>& counted) : ticks(counted) {}
    void begin() {
      after(1us, [&of = ticks] { ++of; });
    }
  };
  runtime rt(options());
  std::atomic<int> ticks{0};
  std::stop_source enough;
  auto one = rt.spawn<clock_actor>(unchecked<std::atomic<int>&>{ticks});
  one.tell<&clock_actor::begin>();
  rt.run();
  EXPECT_EQ(ticks.load(), 1);
  rt.spawn([&ticks, &enough]() -> task<> {
    every(10us,
          [&] {
            if (++ticks == 4) enough.request_stop();
          },
          {.stop = enough.get_token()});
    co_return;
  });
  rt.run();
  EXPECT_EQ(ticks.load(), 4);
  EXPECT_THROW(after(1us, [] {}), usage_error);
  EXPECT_THROW(every(1us, [] {}), usage_error);
}

TEST_P(tasks, a_timer_takes_its_call_back) {
  auto kept = std::make_shared<int>(0);
  std::atomic<int> ticks{0};
  timer outlives;
  {
    runtime rt(options());
    timer alarm = rt.after(1h, [kept] { ADD_FAILURE(); });
    timer moved = std::move(alarm);
    EXPECT_FALSE(alarm.cancel());
    EXPECT_TRUE(moved.cancel());
    EXPECT_FALSE(moved.cancel());
    timer late = rt.after(1us, [&, kept] { ++ticks; });
    std::promise<timer*> handle;
    timer often = rt.every(100us, [&, kept, known = handle.get_future().share()] {
      if (++ticks < 5) return;
      EXPECT_TRUE(known.get()->cancel());
    });
    handle.set_value(&often);
    rt.run();
    EXPECT_EQ(ticks.load(), 5);
    EXPECT_FALSE(late.cancel());
    EXPECT_FALSE(often.cancel());
    std::stop_source enough;
    rt.after(1h, [kept] { ADD_FAILURE(); }, {.stop = enough.get_token()});
    enough.request_stop();
    rt.after(1h, [kept] { ADD_FAILURE(); }, {.stop = enough.get_token()});
    EXPECT_EQ(kept.use_count(), 1);
    outlives = rt.after(1h, [kept] { ADD_FAILURE(); }, {.weak = true});
    rt.every(1h, [kept] { ADD_FAILURE(); }, {.weak = true});
    rt.run();
    EXPECT_EQ(kept.use_count(), 3);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(outlives.cancel());
}

// A stop that is requested while the runtime ends finds timers that are just being destroyed.
TEST_P(tasks, timers_are_stopped_beside_the_end) {
  for (int round = 0; round < fewer(40); ++round) {
    std::stop_source enough;
    std::thread stops;
    {
      runtime rt(options());
      for (int i = 0; i < 300; ++i) rt.after(1h, [] {}, {.stop = enough.get_token()});
      stops = std::thread([&] { enough.request_stop(); });
      if (round % 2 == 0) std::this_thread::yield();
    }
    stops.join();
  }
}

// A cancel races with the time, the call and the stop token: each call is either taken back or
// made.
TEST_P(tasks, timers_are_cancelled_at_any_time) {
  runtime rt(options());
  std::atomic<int> came{0};
  int taken_back = 0;
  std::vector<timer> all;
  for (int i = 0; i < 2000; ++i)
    all.push_back(rt.after(std::chrono::microseconds(i), [&] { ++came; }));
  std::atomic<int> periods{0};
  std::vector<timer> often;
  std::stop_source enough;
  for (int i = 0; i < 20; ++i)
    often.push_back(rt.every(70us, [&] { ++periods; }, {.stop = enough.get_token()}));
  for (std::size_t i = 0; i < all.size(); i += 3) taken_back += all[i].cancel() ? 1 : 0;
  for (std::size_t i = 0; i < often.size(); i += 2) often[i].cancel();
  enough.request_stop();
  rt.run();
  EXPECT_EQ(came.load() + taken_back, 2000);
}

TEST_P(tasks, sleeps_are_never_short) {
  runtime rt(options());
  auto nap = [](runtime* on, std::chrono::microseconds span) -> task<bool> {
    const auto before = on->now();
    co_await sleep_for(span);
    co_return on->now() - before >= span;
  };
  std::vector<future<bool>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(rt.spawn(nap(&rt, std::chrono::microseconds(i * 17 % 3000))));
  rt.run();
  for (auto& one : all) EXPECT_TRUE(one.get());
}

// Many asks at once while actors stop: each resolves once, and nothing is leaked.
struct tally {
  std::atomic<int> values{0}, stopped{0}, late{0}, circles{0};
};
task<> ask_around(std::vector<ref<account>> all, int seed, tally* count) {
  counted here;
  for (int i = 0; i < 100; ++i) {
    auto& to = all[static_cast<std::size_t>(seed * 7 + i) % all.size()];
    auto& other = all[static_cast<std::size_t>(seed * 7 + i + 1) % all.size()];
    if (i == 50 && seed % 8 == 0) to.stop();
    try {
      if (i % 3 == 0) {
        co_await to.ask<&account::transfer>(other, 1).timeout(50us);
      } else {
        co_await to.ask<&account::read>();
      }
      ++count->values;
    } catch (const actor_stopped&) {
      ++count->stopped;
    } catch (const timed_out&) {
      ++count->late;
    } catch (const deadlock&) {
      ++count->circles;  // all ten transfer to the next at once, on a machine slower than 50us
    }
  }
}

TEST_P(tasks, storms_of_asks_resolve_each_exactly_once) {
  for (int round = 0; round < fewer(10); ++round) {
    tally count;
    runtime rt(options());
    std::vector<ref<account>> all;
    for (int i = 0; i < 10; ++i) all.push_back(rt.spawn<account>());
    const int asking = fewer(40);
    for (int i = 0; i < asking; ++i) rt.spawn(ask_around(all, i, &count));
    bool stuck = false;
    try {
      rt.run();
    } catch (const stalled&) {
      stuck = true;  // two transfers may wait for each other's actors
    }
    const int resolved = count.values + count.stopped + count.late + count.circles;
    EXPECT_TRUE(stuck ? resolved <= asking * 100 : resolved == asking * 100) << resolved;
  }
  EXPECT_EQ(live.load(), 0);
}

// Everything that a task can await, side by side.
task<int> number_later(int n) {
  co_await yield();
  co_return n;
}
task<int> number_much_later(int n) {
  co_await sleep_for(1h);
  co_return n;
}
struct answers_side_by_side {
  int twice(int n) { return 2 * n; }
  void nothing() {}
  task<int> never() {
    co_await sleep_for(1h);
    co_return 0;
  }
  int fails() { throw std::runtime_error("it fails"); }
};

task<> await_all_kinds(ref<answers_side_by_side> one, future<std::unique_ptr<int>> promised,
                       event set, int& reached) {
  using asked = answers_side_by_side;
  auto [twice, task_value, owned, limited, nothing, woke, slept] =
      co_await when_all(one.ask<&asked::twice>(1), number_later(2), std::move(promised),
                        one.ask<&asked::twice>(4).timeout(1h), one.ask<&asked::nothing>(),
                        set.wait(), sleep_for(1us));
  EXPECT_EQ(twice, 2);
  EXPECT_EQ(task_value, 2);
  EXPECT_EQ(*owned, 3);
  EXPECT_EQ(limited, 8);
  static_assert(std::is_same_v<decltype(nothing), std::monostate> &&
                std::is_same_v<decltype(slept), std::monostate>);
  static_cast<void>(woke);
  ++reached;

  std::vector<future<int>> many;
  for (int n = 0; n < 5; ++n) many.push_back(one.ask<&asked::twice>(n));
  const std::vector<int> sums = co_await when_all(std::move(many));
  for (int n = 0; n < 5; ++n) EXPECT_EQ(sums.at(static_cast<std::size_t>(n)), 2 * n);
  std::vector<future<int>::limited> with_limits;
  for (int n = 0; n < 2; ++n) with_limits.push_back(one.ask<&asked::twice>(n).timeout(1h));
  const std::vector<int> limits = co_await when_all(std::move(with_limits));
  EXPECT_EQ(limits.at(1), 2);
  ++reached;

  auto first =
      co_await when_any(sleep_for(1h), troupe::spawn(number_later(7)), number_much_later(8));
  EXPECT_EQ(first.index(), 1u);
  std::vector<future<int>> race;
  race.push_back(promise<int>().get_future());
  try {
    co_await when_any(std::move(race));
    ADD_FAILURE() << "its promise was broken";
  } catch (const broken_promise&) {
    ++reached;
  }
  try {
    auto both = when_all(one.ask<&asked::fails>(), one.ask<&asked::twice>(1));
    co_await std::move(both);
    ADD_FAILURE() << "it fails";
  } catch (const std::runtime_error&) {
    ++reached;
  }
  try {
    auto either = when_any(one.ask<&asked::never>().timeout(1ms), sleep_for(1h));
    co_await std::move(either);
    ADD_FAILURE() << "the answer does not come in time";
  } catch (const timed_out&) {
    ++reached;
  }
  one.stop_now();
}

TEST_P(tasks, futures_asks_and_sleeps_run_side_by_side_with_tasks) {
  runtime rt(options());
  promise<std::unique_ptr<int>> promised;
  event set;
  int reached = 0;
  rt.spawn(await_all_kinds(rt.spawn<answers_side_by_side>(), promised.get_future(), set, reached));
  rt.post([&promised, set] {
    promised.set_value(std::make_unique<int>(3));
    set.set();
  });
  rt.run();
  EXPECT_EQ(reached, 5);
}

task<> limit_tasks(int& ended, int& timed) {
  auto sleeps = [](int& end) -> task<int> {
    const counted here;
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      ++end;
      throw;
    }
    co_return 1;
  };
  EXPECT_EQ(co_await number_later(5).timeout(1h), 5);
  try {
    co_await sleeps(ended).timeout(1ms);
  } catch (const timed_out&) {
    ++timed;
    EXPECT_EQ(ended, 1) << "it has ended by then";
  }
  try {
    co_await when_all(sleeps(ended), sleeps(ended)).timeout(1ms);
  } catch (const timed_out&) {
    ++timed;
    EXPECT_EQ(ended, 3);
  }
}

TEST_P(tasks, a_task_that_does_not_end_in_time_is_cancelled) {
  runtime rt(options());
  int ended = 0, timed = 0;
  rt.spawn(limit_tasks(ended, timed));
  rt.run();
  EXPECT_EQ(timed, 2);
  EXPECT_EQ(live.load(), 0);
}

// The actor that awaits them is stopped: all of them end.
struct waits_for_either {
  task<> wait(future<int> one, event begun) {
    begun.set();
    auto either = when_any(std::move(one), sleep_for(1h));
    co_await std::move(either);
  }
};

TEST_P(tasks, futures_side_by_side_are_cancelled_with_who_awaits_them) {
  runtime rt(options());
  promise<int> never;
  event begun;
  auto one = rt.spawn<waits_for_either>();
  auto done = one.ask<&waits_for_either::wait>(never.get_future(), begun);
  auto stops = [](ref<waits_for_either> which, event when) -> task<> {
    co_await when.wait();
    which.stop();
  };
  rt.spawn(stops(one, begun));
  rt.run();
  EXPECT_THROW(done.get(), actor_stopped);
}

TROUPE_TEST_EACH(tasks, all_settings);

}  // namespace
}  // namespace troupe::test
