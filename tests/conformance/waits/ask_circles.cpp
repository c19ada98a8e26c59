// Turns that wait for each other in a cycle, whichever actor asked first: one of them gets an
// error that names the chain, and no other turn does.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/resident.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class ask_circles : public conformance {};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct ledger {
  std::atomic<int> values{0}, deadlocks{0}, others{0};
  std::atomic<int> left{0};
  event done;
  void count(std::atomic<int>& how) {
    ++how;
    if (--left == 0) done.set();
  }
};

// Keeps the program open until all waits have ended: so a cycle is found by the search, and not by
// the report of a stall.
task<> hold_open(event done, std::shared_ptr<troupe::hold> held) {
  co_await done.wait();
  held->release();
}
void run_held(runtime& rt, ledger& of) {
  auto held = std::make_shared<troupe::hold>(rt.hold());
  rt.spawn(hold_open(of.done, held));
  rt.run();
}

template <class Ask>
task<> count_outcome(Ask ask, unchecked<ledger*> to) {
  try {
    co_await ask();
    to.value->count(to.value->values);
  } catch (const deadlock&) {
    to.value->count(to.value->deadlocks);
  } catch (...) {
    to.value->count(to.value->others);
  }
}

struct account {
  int balance = 100;
  int deposit(int n) { return balance += n; }
  task<int> transfer(ref<account> other, int n) {
    balance -= n;
    co_return co_await other.ask<&account::deposit>(n);
  }
  task<int> transfer_soon(ref<account> other, event go) {
    co_await go.wait();
    co_return co_await other.ask<&account::deposit>(1);
  }
};

TEST_P(ask_circles, a_bank_that_is_held_open_answers_each_transfer_once) {
  constexpr int count = 10, each = fewer(20, 2);
  runtime rt(options());
  std::vector<ref<account>> all;
  for (int i = 0; i < count; ++i) all.push_back(rt.spawn<account>());
  ledger outcomes;
  outcomes.left = count * each;
  std::minstd_rand random(static_cast<unsigned>(GetParam().seed));
  for (int i = 0; i < count * each; ++i) {
    const auto from = static_cast<std::size_t>(i % count);
    const auto to = (from + 1 + random() % (count - 1)) % count;
    const auto ask = [a = all[from], b = all[to]] { return a.ask<&account::transfer>(b, 1); };
    rt.spawn(count_outcome(ask, unchecked{&outcomes}));
  }
  run_held(rt, outcomes);
  EXPECT_EQ(outcomes.values + outcomes.deadlocks, count * each);
  EXPECT_EQ(outcomes.others.load(), 0);
  EXPECT_GT(outcomes.values.load(), 0);
}

struct told {
  ref<told> other{};
  std::shared_ptr<std::vector<std::string>> texts = std::make_shared<std::vector<std::string>>();
  int answered = 0;
  int ping() { return 1; }
  task<> go(event both) {
    co_await both.wait();
    try {
      answered += co_await other.ask<&told::ping>();  // the line at which both actors wait
    } catch (const deadlock& error) {
      texts->push_back(error.what());
    }
  }
  task<> go_limited(event both, std::stop_token stop, bool by_time) {
    co_await both.wait();
    try {
      auto asked = other.ask<&told::ping>();
      if (by_time) co_await std::move(asked).timeout(1ms);
      if (!by_time) co_await std::move(asked).stop(stop);
    } catch (const deadlock& error) {
      texts->push_back(error.what());
    } catch (const timed_out&) {
      texts->push_back("timed out");
    } catch (const cancelled&) {
      texts->push_back("cancelled");
    }
  }
};

struct pair_of {
  explicit pair_of(runtime& rt, const thread_kind& where = spawn_options{})
      : one(spawn_on<told>(rt, where)), two(rt.spawn<told>()) {
    one.tell([this_texts = texts, other = two](told& self) {
      self.other = other, self.texts = this_texts;
    });
    two.tell([this_texts = texts, other = one](told& self) {
      self.other = other, self.texts = this_texts;
    });
  }
  ~pair_of() {
    one.tell([](told& self) { self.other = {}; });
    two.tell([](told& self) { self.other = {}; });
  }
  std::shared_ptr<std::vector<std::string>> texts = std::make_shared<std::vector<std::string>>();
  ref<told> one, two;
};

TEST_P(ask_circles, of_two_that_were_told_one_hears_the_chain_with_the_lines_of_the_user) {
  runtime rt(options());
  for (const auto& where : thread_kinds("circles")) {
    pair_of both(rt, where);
    event go;
    both.one.tell<&told::go>(go);
    both.two.tell<&told::go>(go);
    EXPECT_THROW(rt.run(), stalled);
    go.set();
    rt.run();
    ASSERT_EQ(both.texts->size(), 1u) << "one is told, and the other has its answer";
    const std::string& text = both.texts->front();
    EXPECT_TRUE(has(text, "told::go asks ")) << text;
    EXPECT_TRUE(has(text, "told::ping")) << text;
    EXPECT_TRUE(has(text, "#" + std::to_string(both.one.id()) + " in")) << text;
    EXPECT_TRUE(has(text, "#" + std::to_string(both.two.id()) + " in")) << text;
    const auto place = text.find("ask_circles.cpp:");
    ASSERT_NE(place, std::string::npos) << text;
    EXPECT_NE(text.find("ask_circles.cpp:", place + 1), std::string::npos) << text;
    EXPECT_FALSE(has(text, ".hpp:")) << text;
  }
}

TEST_P(ask_circles, a_wait_with_a_time_or_a_stop_token_is_none_of_a_circle) {
  runtime rt(options());
  for (const bool by_time : {true, false}) {
    pair_of both(rt);
    event go;
    std::stop_source source;
    both.one.tell<&told::go>(go);
    both.two.tell<&told::go_limited>(go, source.get_token(), by_time);
    EXPECT_THROW(rt.run(), stalled);
    go.set();
    if (by_time) {
      rt.run();
    } else {
      EXPECT_THROW(rt.run(), stalled) << "the token may end it still";
      source.request_stop();
      rt.run();
    }
    EXPECT_EQ(*both.texts, std::vector<std::string>{by_time ? "timed out" : "cancelled"});
  }
}

struct grouper {
  ref<grouper> other{};
  ref<grouper> third{};
  int ping() { return 1; }
  task<int> asks(ref<grouper> whom) { co_return co_await whom.ask<&grouper::ping>(); }
  task<int> waits(event for_it) {
    co_await for_it.wait();
    co_return 2;
  }
  task<int> simply(event go) {
    co_await go.wait();
    co_return co_await other.ask<&grouper::ping>();
  }
  task<int> any(event go, event way_out) {
    co_await go.wait();
    auto one = asks(other);
    auto two = waits(way_out);
    auto won = co_await when_any(std::move(one), std::move(two));
    co_return won.index() == 0 ? std::get<0>(won) : std::get<1>(won);
  }
  task<int> any_of_both(event go) {
    co_await go.wait();
    auto one = asks(other);
    auto two = asks(third);
    auto won = co_await when_any(std::move(one), std::move(two));
    co_return static_cast<int>(won.index()) + 10;
  }
  task<int> all(event go, event way_out) {
    co_await go.wait();
    auto one = asks(other);
    auto two = waits(way_out);
    auto [a, b] = co_await when_all(std::move(one), std::move(two));
    co_return a + b;
  }
  void know(ref<grouper> second, ref<grouper> last) {
    other = std::move(second), third = std::move(last);
  }
};

struct trio {
  explicit trio(runtime& rt)
      : one(rt.spawn<grouper>()), two(rt.spawn<grouper>()), three(rt.spawn<grouper>()) {
    one.tell<&grouper::know>(two, three);
    two.tell<&grouper::know>(one, ref<grouper>());
    three.tell<&grouper::know>(one, ref<grouper>());
  }
  ~trio() {
    for (const auto& each : {one, two, three})
      each.tell<&grouper::know>(ref<grouper>(), ref<grouper>());
  }
  ref<grouper> one, two, three;
};

int outcome_of(future<int>& of) {
  try {
    return of.get();
  } catch (const deadlock&) {
    return -1;
  }
}

TEST_P(ask_circles, the_first_of_some_counts_when_all_of_them_do) {
  runtime rt(options());
  {
    trio of(rt);
    event go, way_out;
    auto one = of.one.ask<&grouper::any>(go, way_out);
    auto two = of.two.ask<&grouper::simply>(go);
    EXPECT_THROW(rt.run(), stalled);
    go.set();
    EXPECT_THROW(rt.run(), stalled) << "the event may come";
    EXPECT_FALSE(one.ready());
    way_out.set();
    rt.run();
    EXPECT_EQ(one.get(), 2);
    EXPECT_EQ(two.get(), 1);
  }
  {
    trio of(rt);
    event go;
    auto one = of.one.ask<&grouper::any_of_both>(go);
    auto two = of.two.ask<&grouper::simply>(go);
    auto three = of.three.ask<&grouper::simply>(go);
    EXPECT_THROW(rt.run(), stalled);
    go.set();
    rt.run();
    const int told = (outcome_of(one) < 0) + (outcome_of(two) < 0) + (outcome_of(three) < 0);
    EXPECT_GE(told, 1);
    EXPECT_LE(told, 2);
  }
}

TEST_P(ask_circles, all_of_some_count_when_one_does) {
  runtime rt(options());
  trio of(rt);
  event go, way_out;
  auto one = of.one.ask<&grouper::all>(go, way_out);
  auto two = of.two.ask<&grouper::simply>(go);
  EXPECT_THROW(rt.run(), stalled);
  go.set();
  EXPECT_THROW(rt.run(), stalled) << "one of the two is told, and the event is waited for still";
  way_out.set();
  rt.run();
  EXPECT_EQ((outcome_of(one) < 0) + (outcome_of(two) < 0), 1);
}

struct open_one {
  static constexpr bool reentrant = true;
  ref<account> behind{};
  int ping() { return 1; }
  task<int> through(ref<open_one> other, event go) {
    co_await go.wait();
    co_return co_await other.ask<&open_one::ping>();
  }
  task<int> back(ref<account> whom) { co_return co_await whom.ask<&account::deposit>(1); }
};
struct closed_one {
  task<int> asks(ref<open_one> whom, ref<account> self_ref) {
    co_return co_await whom.ask<&open_one::back>(self_ref);
  }
};

TEST_P(ask_circles, a_reentrant_actor_closes_none) {
  runtime rt(options());
  auto one = rt.spawn<open_one>(), two = rt.spawn<open_one>();
  event go;
  auto first = one.ask<&open_one::through>(two, go), second = two.ask<&open_one::through>(one, go);
  EXPECT_THROW(rt.run(), stalled);
  go.set();
  rt.run();
  EXPECT_EQ(first.get() + second.get(), 2);
}

struct self_waiter {
  int n = 0;
  int ping() { return ++n; }
  task<int> await_lazy(lazy<int> of) { co_return co_await of; }
  static task<int> asks(ref<self_waiter> whom) {
    co_return co_await whom.ask<&self_waiter::ping>();
  }
  task<int> await_task() {
    auto helper = asks(self(this));
    auto later = spawn(std::move(helper));
    co_return co_await std::move(later);
  }
};

// The thread that runs a lazy may block for an answer.
TEST_P(ask_circles, through_a_lazy_that_asks_who_awaits_it) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a lazy's get() would hold the only thread";
  runtime rt(options());
  auto one = rt.spawn<self_waiter>();
  for (int round = 0; round < 3; ++round) {
    std::optional<lazy<int>> first, second;
    first.emplace([&] { return one.ask<&self_waiter::await_lazy>(*first).get(); });
    EXPECT_THROW(first->get(), deadlock);
    // The cycle may also lead through a second lazy, which another thread runs. That thread may be
    // a worker; then the turn that is told needs another worker.
    if (workers() < 2) continue;
    std::atomic<bool> begun{false};
    first.emplace([&] {
      set_and_wake(begun, true);
      return one.ask<&self_waiter::await_lazy>(*second).get();
    });
    second.emplace([&] { return first->get(); });
    std::thread runs([&] { EXPECT_THROW(first->get(), deadlock); });
    wait_for(begun, true);
    EXPECT_THROW(second->get(), deadlock);
    runs.join();
    first.reset();
    second.reset();
  }
  auto fine = one.ask<&self_waiter::ping>();
  rt.run();
  EXPECT_EQ(fine.get(), 1);
}

TEST_P(ask_circles, through_a_spawned_task_that_asks_who_awaits_it) {
  runtime rt(options());
  auto one = rt.spawn<self_waiter>();
  auto asked = one.ask<&self_waiter::await_task>();
  rt.run();
  EXPECT_EQ(outcome_of(asked), -1);
}

// Each way to wait for another actor, in a cycle of two: the text names lines of this file only.
struct meeter;
struct way_to_wait {
  const char* name;
  task<> (*wait)(ref<meeter> other);
  task<> (*there)(ref<meeter> other) = nullptr;  // the line where the other actor asks back
};
struct meeter {
  ref<meeter> other{};
  std::shared_ptr<std::vector<std::string>> texts{};
  int ping() { return 1; }
  void note(int) {}
  task<int> back() { co_return co_await other.ask<&meeter::ping>(); }
  task<> go_there(unchecked<const way_to_wait*> how) {
    try {
      co_await how.value->there(other);
    } catch (const deadlock& error) {
      texts->push_back(error.what());
    }
  }
  task<> meet(unchecked<const way_to_wait*> how, event both) {
    co_await both.wait();
    try {
      co_await how.value->wait(other);
    } catch (const deadlock& error) {
      texts->push_back(error.what());
    }
  }
};
task<int> ask_in_task(ref<meeter> whom) { co_return co_await whom.ask<&meeter::ping>(); }
task<int> back_in_task(ref<meeter> whom) { co_return co_await whom.ask<&meeter::back>(); }
// Fills the mailbox: one message waits in it behind the suspended turn.
task<> fill(ref<meeter> whom) {
  for (int i = 0; i < 3; ++i) co_await whom.send<&meeter::note>(i);
}
const way_to_wait ways_to_wait[] = {
    {"an ask",
     [](ref<meeter> other) -> task<> { static_cast<void>(co_await other.ask<&meeter::ping>()); },
     [](ref<meeter> other) -> task<> { static_cast<void>(co_await other.ask<&meeter::back>()); }},
    {"a named ask",
     [](ref<meeter> other) -> task<> {
       auto asked = other.ask<&meeter::ping>();
       static_cast<void>(co_await std::move(asked));
     }},
    {"as_task",
     [](ref<meeter> other) -> task<> {
       auto asked = as_task(other.ask<&meeter::ping>());
       static_cast<void>(co_await std::move(asked));
     },
     [](ref<meeter> other) -> task<> {
       auto asked = as_task(other.ask<&meeter::back>());
       static_cast<void>(co_await std::move(asked));
     }},
    {"a task",
     [](ref<meeter> other) -> task<> {
       auto asks = ask_in_task(other);
       static_cast<void>(co_await std::move(asks));
     },
     [](ref<meeter> other) -> task<> {
       auto asks = back_in_task(other);
       static_cast<void>(co_await std::move(asks));
     }},
    {"when_all",
     [](ref<meeter> other) -> task<> {
       static_cast<void>(co_await when_all(other.ask<&meeter::ping>(), other.ask<&meeter::ping>()));
     },
     [](ref<meeter> other) -> task<> {
       static_cast<void>(co_await when_all(other.ask<&meeter::back>(), other.ask<&meeter::ping>()));
     }},
    {"when_all of a vector",
     [](ref<meeter> other) -> task<> {
       std::vector<future<int>> all;
       for (int i = 0; i < 3; ++i) all.push_back(other.ask<&meeter::ping>());
       static_cast<void>(co_await when_all(std::move(all)));
     }},
    {"when_any",
     [](ref<meeter> other) -> task<> {
       auto one = ask_in_task(other);
       static_cast<void>(co_await when_any(std::move(one), other.ask<&meeter::ping>()));
     }},
    {"groups in groups",
     [](ref<meeter> other) -> task<> {
       static_cast<void>(co_await when_all(when_any(other.ask<&meeter::ping>(), ask_in_task(other)),
                                           as_task(other.ask<&meeter::ping>())));
     }},
    {"a spawned task",
     [](ref<meeter> other) -> task<> {
       auto asks = ask_in_task(other);
       static_cast<void>(co_await spawn(std::move(asks)));
     }},
    {"a spawned task of the library",
     [](ref<meeter> other) -> task<> {
       auto asks = when_all(other.ask<&meeter::ping>(), other.ask<&meeter::ping>());
       static_cast<void>(co_await spawn(std::move(asks)));
     }},
    {"room for send", [](ref<meeter> other) -> task<> { co_await fill(other); }},
    {"room for an ask",
     [](ref<meeter> other) -> task<> {
       static_cast<void>(co_await when_all(other.ask<&meeter::ping>(), other.ask<&meeter::ping>(),
                                           other.ask<&meeter::ping>()));
     }},
};

// Returns the lines that a text names: behind " waits at ", or at the beginning of " waits for the
// answer of ".
std::vector<std::string> places_in(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto at = line.find(" waits at ");
    const std::size_t from = at == std::string::npos ? 2 : at + 10;
    const std::string place = line.substr(
        from, line.find(at == std::string::npos ? " waits for " : " for ", from) - from);
    if (place.find(' ') == std::string::npos) found.push_back(place);
  }
  return found;
}

// Two actors that wait for each other, each in one of these ways.
struct meeting {
  explicit meeting(const runtime_options& chosen) : rt(chosen) {
    know(one, two);
    know(two, one);
  }
  ~meeting() {
    know(one, {});
    know(two, {});
  }
  void know(const ref<meeter>& self, const ref<meeter>& other) {
    self.tell([texts = texts, other](meeter& of) { of.other = other, of.texts = texts; });
    rt.run();
  }
  void expect_lines_of_the_user(const std::string& ways) const {
    EXPECT_GE(texts->size(), 1u) << ways;
    for (const std::string& text : *texts) {
      const auto places = places_in(text);
      EXPECT_GE(places.size(), 1u) << text;
      for (const std::string& place : places)
        EXPECT_TRUE(place.starts_with("ask_circles.cpp:")) << ways << ": " << place << "\n" << text;
      for (const char* own : {"when.hpp", "ref.hpp", "future.hpp", "lazy.hpp", "spawn_task.hpp",
                              "/troupe/", "src/"}) {
        EXPECT_FALSE(has(text, own)) << ways << ": " << text;
      }
    }
  }
  runtime rt;
  std::shared_ptr<std::vector<std::string>> texts = std::make_shared<std::vector<std::string>>();
  const spawn_options bounded{.mailbox = {.messages = 1, .when_full = when_full::suspend}};
  ref<meeter> one = rt.spawn<meeter>(bounded), two = rt.spawn<meeter>(bounded);
};

TEST_P(ask_circles, the_text_names_lines_of_the_user_alone) {
  for (const way_to_wait& first : ways_to_wait) {
    for (const way_to_wait& second : {first, ways_to_wait[0]}) {
      meeting of(options());
      event go;
      of.one.tell<&meeter::meet>(unchecked{&first}, go);
      of.two.tell<&meeter::meet>(unchecked{&second}, go);
      EXPECT_THROW(of.rt.run(), stalled);
      go.set();
      of.rt.run();
      of.expect_lines_of_the_user(first.name + std::string(" and ") + second.name);
    }
  }
}

// The actor that asks back is told at once, or by a search.
TEST_P(ask_circles, the_text_of_an_ask_that_comes_back_names_lines_of_the_user_alone) {
  for (const way_to_wait& way : ways_to_wait) {
    if (way.there == nullptr) continue;
    meeting of(options());
    of.one.tell<&meeter::go_there>(unchecked{&way});
    of.rt.run();
    of.expect_lines_of_the_user(way.name);
  }
}

// Every actor asks another one at the same instant. As many actors are told as there are cycles.
struct pointer {
  ref<pointer> next{};
  int ping() { return 1; }
  task<int> go(event all) {
    co_await all.wait();
    co_return co_await next.ask<&pointer::ping>();
  }
};

int circles_in(const std::vector<std::size_t>& next) {
  std::vector<std::size_t> seen(next.size(), SIZE_MAX);
  int circles = 0;
  for (std::size_t start = 0; start < next.size(); ++start) {
    std::size_t at = start;
    while (seen[at] == SIZE_MAX) {
      seen[at] = start;
      at = next[at];
    }
    circles += seen[at] == start ? 1 : 0;
  }
  return circles;
}

TEST_P(ask_circles, of_any_graph_one_in_each_is_told) {
  std::mt19937_64 random(GetParam().seed * 911 + workers());
  for (int round = 0; round < fewer(60, 8); ++round) {
    auto chosen = options();
    chosen.seed += 100 * static_cast<std::uint64_t>(round);
    runtime rt(chosen);
    const std::size_t size = 2 + random() % (round % 10 == 0 ? 500 : 20);
    std::vector<ref<pointer>> all;
    for (std::size_t i = 0; i < size; ++i) all.push_back(rt.spawn<pointer>());
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < size; ++i) {
      next.push_back(random() % size);
      all[i].tell([to = all[next[i]]](pointer& self) { self.next = to; });
    }
    event go;
    std::vector<future<int>> answers;
    for (const auto& one : all) answers.push_back(one.ask<&pointer::go>(go));
    EXPECT_THROW(rt.run(), stalled);
    go.set();
    rt.run();
    int told = 0;
    for (auto& one : answers) told += outcome_of(one) < 0 ? 1 : 0;
    EXPECT_EQ(told, circles_in(next)) << "round " << round;
    for (const auto& one : all) one.tell([](pointer& self) { self.next = {}; });
    rt.run();
  }
}

// Asks begin and end all the time, some by timeouts and stops: each ends once.
TEST_P(ask_circles, searches_beside_waits_that_end_tell_nobody_wrongly) {
  constexpr int count = 6, each = fewer(300, 10);
  runtime rt(options());
  std::vector<ref<account>> all;
  for (int i = 0; i < count; ++i) all.push_back(rt.spawn<account>());
  ledger outcomes;
  outcomes.left = count * each;
  // Asks go only from lower to higher actors: so no actor waits for itself, however many wait for
  // others.
  struct chain {
    static task<> step(std::vector<ref<account>> whom, int first, int times,
                       unchecked<ledger*> to) {
      for (int i = 0; i < times; ++i) {
        const auto from = static_cast<std::size_t>(first);
        const auto target = from + 1 + static_cast<std::size_t>(i) % (whom.size() - from);
        const auto ask = [a = whom[from], b = target < whom.size() ? whom[target] : whom[from],
                          self_only = target >= whom.size()] {
          return self_only ? a.ask<&account::deposit>(1) : a.ask<&account::transfer>(b, 1);
        };
        co_await count_outcome(ask, to);
      }
    }
  };
  for (int i = 0; i < count; ++i) rt.spawn(chain::step(all, i, each, unchecked{&outcomes}));
  run_held(rt, outcomes);
  EXPECT_EQ(outcomes.values.load(), count * each);
}

struct link {
  ref<link> next{};
  task<int> go(int left) {
    if (left == 0) co_return 0;
    if (!next) next = spawn<link>();
    const int behind = co_await next.ask<&link::go>(left - 1);
    next = {};
    co_return behind + 1;
  }
};

TEST_P(ask_circles, a_long_chain_of_asks_is_none) {
  const int length = slow ? 5'000 : 100'000;
  runtime rt(options());
  auto first = rt.spawn<link>();
  auto asked = first.ask<&link::go>(length);
  rt.run();
  EXPECT_EQ(asked.get(), length);
}

// Each link suspends a turn: the memory of a chain grows only with its length.
struct measured_link {
  task<int> go(int left, unchecked<std::size_t*> resident) {
    if (left == 0) {
      *resident.value = resident_bytes();
      co_return 0;
    }
    co_return 1 + co_await spawn<measured_link>().ask<&measured_link::go>(left - 1, resident);
  }
};

TEST_P(ask_circles, a_million_links_take_memory_in_proportion) {
  if (!threaded() || workers() != 2)
    GTEST_SKIP() << "needs two workers: once for each policy with threads";
  const int length = fewer(1'000'000, 200);
  constexpr std::size_t link_bytes_max = 2'048;
  std::size_t at_the_end = 0;
  runtime rt(options());
  const std::size_t before = resident_bytes();
  auto asked = rt.spawn<measured_link>().ask<&measured_link::go>(length, unchecked{&at_the_end});
  rt.run();
  EXPECT_EQ(asked.get(), length);
  if (slow) return;  // sanitizers use memory of their own
  ASSERT_GT(at_the_end, before);
  EXPECT_LE((at_the_end - before) / static_cast<std::size_t>(length), link_bytes_max);
}

}  // namespace

TROUPE_TEST_EACH(ask_circles, all_settings);

}  // namespace troupe::test
