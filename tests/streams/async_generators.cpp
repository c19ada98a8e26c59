// async_generator<T>: it gives each value once, in order, however its user stops to wait.
#include <atomic>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class async_generators : public conformance {};

async_generator<int> ready(int end) {
  counted here;
  for (int i = 0; i < end; ++i) co_yield i;
}
async_generator<int> slow(int end, std::chrono::nanoseconds span = 100us) {
  counted here;
  for (int i = 0; i < end; ++i) {
    co_await sleep_for(span);
    co_yield i;
  }
}
async_generator<std::string> texts() {
  std::string kept(40, 'a');
  co_yield kept;
  co_yield kept;
  co_yield std::move(kept);
  co_yield std::string(40, 'b');
}
async_generator<int> failing(int at, bool later) {
  counted here;
  for (int i = 0;; ++i) {
    if (later) co_await sleep_for(10us);
    if (i == at) throw std::runtime_error("at " + std::to_string(i));
    co_yield i;
  }
}

task<long> sum_of(async_generator<int> all) {
  counted here;
  long sum = 0;
  while (auto one = co_await all.next()) sum += *one;
  for (int i = 0; i < 2; ++i) {
    auto more = co_await all.next();
    if (more) sum = -1;
  }
  co_return sum;
}

TEST_P(async_generators, give_all_values_in_order) {
  runtime rt(options());
  auto many = rt.spawn(sum_of(ready(fewer(1'000'000, 10))));
  auto few = rt.spawn(sum_of(slow(20)));
  auto none = rt.spawn(sum_of(ready(0)));
  auto empty = rt.spawn(sum_of({}));
  auto all = rt.spawn([]() -> task<std::string> {
    std::string found;
    auto from = texts();
    while (auto one = co_await from.next()) found += *one + ",";
    co_return found;
  });
  rt.run();
  const long n = fewer(1'000'000, 10);
  EXPECT_EQ(many.get(), n * (n - 1) / 2);
  EXPECT_EQ(few.get(), 190);
  EXPECT_EQ(none.get(), 0);
  EXPECT_EQ(empty.get(), 0);
  const std::string a(40, 'a'), b(40, 'b');
  EXPECT_EQ(all.get(), a + "," + a + "," + a + "," + b + ",");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(async_generators, run_only_while_they_are_asked) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<int> {
    int ran_to = 0;
    auto body = [](int& at) -> async_generator<int> {
      for (;; ++at) co_yield at;
    };
    auto all = body(ran_to);
    if (ran_to != 0) co_return -1;
    for (int i = 0; i < 5; ++i) {
      auto one = co_await all.next();
      if (*one != i || ran_to != i) co_return -1;
      co_await yield();
    }
    co_return ran_to;
  });
  rt.run();
  EXPECT_EQ(done.get(), 4);
}

task<std::string> until_it_fails(async_generator<int> all) {
  std::string found;
  try {
    while (auto one = co_await all.next()) found += std::to_string(*one);
  } catch (const std::runtime_error& e) {
    found += e.what();
  }
  auto after = co_await all.next();
  co_return found + (after ? "again" : "");
}

TEST_P(async_generators, throw_what_their_bodies_throw) {
  runtime rt(options());
  auto now = rt.spawn(until_it_fails(failing(3, false)));
  auto later = rt.spawn(until_it_fails(failing(3, true)));
  auto first = rt.spawn(until_it_fails(failing(0, false)));
  rt.run();
  EXPECT_EQ(now.get(), "012at 3");
  EXPECT_EQ(later.get(), "012at 3");
  EXPECT_EQ(first.get(), "at 0");
  EXPECT_EQ(live.load(), 0);
}

// Each level takes its values from the level below.
async_generator<int> through(async_generator<int> from) {
  counted here;
  while (auto one = co_await from.next()) co_yield std::move(*one);
}
async_generator<int> deep(int levels, bool later) {
  auto all = later ? slow(3) : ready(3);
  for (int i = 0; i < levels; ++i) all = through(std::move(all));
  return all;
}
task<int> chained(int n) {
  if (n == 0) co_return 0;
  const int below = co_await chained(n - 1);
  co_return below + 1;
}
async_generator<int> over_tasks(int levels) {
  for (int i = 0; i < 3; ++i) {
    const int found = co_await chained(levels);
    co_yield i + found - levels;
  }
}

TEST_P(async_generators, are_stacked_deep) {
  runtime rt(options());
  std::vector<future<long>> sums;
  for (const bool later : {false, true}) {
    for (const int levels : {1, 31, 32, 33, 100, fewer(1000, 4)})
      sums.push_back(rt.spawn(sum_of(deep(levels, later))));
  }
  sums.push_back(rt.spawn(sum_of(over_tasks(fewer(10'000, 10)))));
  rt.run();
  for (auto& one : sums) EXPECT_EQ(one.get(), 3);
  EXPECT_EQ(live.load(), 0);
}

// A wait that is given up leaves the generator as it is.
task<std::string> impatient(async_generator<int> all) {
  counted here;
  std::string found;
  for (;;) {
    try {
      const auto one = co_await all.next().timeout(150us);
      if (!one) break;
      found += std::to_string(*one);
    } catch (const timed_out&) {
      if (found.size() < 100) found += '.';
    }
  }
  std::erase(found, '.');
  co_return found;
}
task<std::string> beside_a_sleep(async_generator<int> all) {
  std::string found;
  for (;;) {
    auto next = all.next();
    auto first = co_await when_any(std::move(next), sleep_for(130us));
    if (first.index() == 1) continue;
    if (!std::get<0>(first)) break;
    found += std::to_string(*std::get<0>(first));
  }
  co_return found;
}
task<std::string> stopped_each_time(async_generator<int> all) {
  std::string found;
  for (;;) {
    std::stop_source stop;
    auto later = [](std::stop_source of) -> task<> {
      co_await sleep_for(120us);
      of.request_stop();
    };
    auto stopper = later(stop);
    auto taken = [](async_generator<int>& of, std::stop_token until) -> task<std::optional<int>> {
      try {
        auto one = co_await of.next().stop(until);
        co_return one ? one : std::optional(-1);
      } catch (const cancelled&) {
        co_return std::nullopt;
      }
    };
    auto one = taken(all, stop.get_token());
    const auto [value, nothing] = co_await when_all(std::move(one), std::move(stopper));
    if (value == -1) break;
    if (value) found += std::to_string(*value);
  }
  co_return found;
}

TEST_P(async_generators, lose_no_value_when_the_wait_ends) {
  runtime rt(options());
  std::vector<future<std::string>> all;
  for (const auto span : {0us, 100us, 140us, 150us, 160us, 500us}) {
    all.push_back(rt.spawn(impatient(slow(10, span))));
    all.push_back(rt.spawn(beside_a_sleep(slow(10, span))));
    all.push_back(rt.spawn(stopped_each_time(slow(10, span))));
    all.push_back(rt.spawn(impatient(through(through(slow(10, span))))));
  }
  rt.run();
  for (auto& one : all) EXPECT_EQ(one.get(), "0123456789");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(async_generators, give_no_time_to_a_wait_of_none) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<int> {
    auto all = slow(1, 1ms);
    for (int i = 0; i < 3; ++i) {
      bool late = false;
      try {
        static_cast<void>(co_await all.next().timeout(0ns));
      } catch (const timed_out&) {
        late = true;
      }
      if (!late) co_return -1;
    }
    co_await sleep_for(2ms);
    auto one = co_await all.next().timeout(0ns);  // it is there
    co_return one ? *one : -2;
  });
  rt.run();
  EXPECT_EQ(done.get(), 0);
}

async_generator<std::int64_t> times_left() {
  for (;;) {
    const std::int64_t before = this_call::remaining().count();
    co_await sleep_for(10us);
    const std::int64_t after = this_call::remaining().count();
    co_yield before == INT64_MAX&& after == INT64_MAX ? -1 : std::max(before, after);
  }
}
task<bool> within_deadlines() {
  auto all = times_left();
  const auto free = co_await all.next();
  const auto within = co_await with_deadline(1h, all.next());
  const auto free_again = co_await all.next();
  bool late = false;
  auto slow_one = slow(2, 1ms);
  try {
    static_cast<void>(co_await with_deadline(100us, slow_one.next()));
  } catch (const timed_out&) {
    late = true;
  }
  const auto first = co_await slow_one.next();
  const auto second = co_await slow_one.next();
  co_return late&&* free == -1 && *within > 0 && *within <= std::chrono::nanoseconds(1h).count() &&
      *free_again == -1 && *first == 0 && *second == 1;
}

TEST_P(async_generators, run_within_the_deadline_of_their_user) {
  runtime rt(options());
  auto done = rt.spawn(within_deadlines());
  rt.run();
  EXPECT_TRUE(done.get());
  EXPECT_EQ(live.load(), 0);
}

// What is dropped while it waits ends.
task<> give_up(async_generator<int> all) {
  counted here;
  try {
    static_cast<void>(co_await all.next().timeout(50us));
  } catch (const timed_out&) {
  }
}
async_generator<int> waits_for(future<> never) {
  counted here;
  co_await std::move(never);
  co_yield 1;
}
async_generator<int> ends_slowly() {
  counted here;
  bool was_cancelled = false;
  try {
    co_await sleep_for(1h);
  } catch (const cancelled&) {
    was_cancelled = true;
  }
  if (was_cancelled) co_yield 7;  // nobody takes it
}
async_generator<int> side_by_side() {
  counted here;
  auto one = chained(3);
  auto two = [](int n) -> task<int> {
    counted inside;
    co_await sleep_for(1h);
    co_return n;
  }(1);
  static_cast<void>(co_await when_all(std::move(one), std::move(two)));
  co_yield 1;
}

TEST_P(async_generators, end_when_they_are_dropped) {
  runtime rt(options());
  event never;
  rt.spawn(give_up(slow(1, 1h)));
  rt.spawn(give_up(through(through(slow(1, 1h)))));
  rt.spawn(give_up(waits_for(never.wait())));
  rt.spawn(give_up(ends_slowly()));
  rt.spawn(give_up(side_by_side()));
  rt.spawn(give_up(deep(100, true)));
  rt.spawn(give_up(slow(100, 20us)));
  rt.run();
  EXPECT_EQ(live.load(), 0);
}

struct reader {
  async_generator<int> all = slow(1000, 1h);
  std::optional<async_generator<int>> other;
  task<int> wait(std::chrono::nanoseconds at_most) {
    counted here;
    try {
      auto one = co_await all.next().timeout(at_most);
      co_return one ? *one : -1;
    } catch (const timed_out&) {
      co_return -2;
    }
  }
  task<> wait_long() {
    counted here;
    static_cast<void>(co_await all.next());
  }
  void replace() { all = slow(3, 10us); }
};

TEST_P(async_generators, outlive_the_calls_that_use_them) {
  runtime rt(options());
  auto actor = rt.spawn<reader>();
  auto late = actor.ask<&reader::wait>(50us);
  auto late_again = actor.ask<&reader::wait>(50us);
  actor.tell<&reader::replace>();
  auto first = actor.ask<&reader::wait>(1h);
  auto second = actor.ask<&reader::wait>(1h);
  rt.run();
  EXPECT_EQ(late.get(), -2);
  EXPECT_EQ(late_again.get(), -2);
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(second.get(), 1);
}

TEST_P(async_generators, end_with_a_stopped_actor) {
  {
    runtime rt(options());
    auto actor = rt.spawn<reader>();
    auto other = rt.spawn<reader>();
    auto first = other.ask<&reader::wait>(50us);
    actor.tell<&reader::wait_long>();
    rt.after(1ms, [actor, other] { actor.stop(), other.stop(); });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(async_generators, end_with_the_runtime) {
  {
    runtime rt(options());
    auto actor = rt.spawn<reader>();
    auto pinned = rt.spawn<reader>(troupe::pinned("reader"));
    event never;
    for (auto& one : {actor, pinned}) {
      one.tell<&reader::wait>(50us);
      one.tell<&reader::wait_long>();
    }
    rt.spawn(give_up(waits_for(never.wait())));
    rt.after(2ms, [&rt] { rt.stop(); });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

// From one task to another.
TEST_P(async_generators, move_while_they_wait_for_nothing) {
  runtime rt(options());
  auto part = rt.spawn([]() -> task<async_generator<int>> {
    auto all = slow(5, 20us);
    static_cast<void>(co_await all.next());
    static_cast<void>(co_await all.next());
    co_return std::move(all);
  });
  auto rest = rt.spawn([](future<async_generator<int>> from) -> task<long> {
    auto all = co_await std::move(from);
    co_return co_await sum_of(std::move(all));
  }(std::move(part)));
  rt.run();
  EXPECT_EQ(rest.get(), 9);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(async_generators, refuse_a_second_actor_while_they_wait) {
  runtime rt(options());
  auto part = rt.spawn([]() -> task<async_generator<int>> {
    auto all = slow(5, 1h);
    bool late = false;
    try {
      static_cast<void>(co_await all.next().timeout(10us));
    } catch (const timed_out&) {
      late = true;
    }
    if (!late) throw std::runtime_error("it was not late");
    co_return std::move(all);
  });
  auto refused = rt.spawn([](future<async_generator<int>> from) -> task<bool> {
    auto all = co_await std::move(from);
    bool refuses = false;
    try {
      static_cast<void>(co_await all.next());
    } catch (const usage_error&) {
      refuses = true;
    }
    co_return refuses;
  }(std::move(part)));
  rt.after(20ms, [&rt] { rt.stop(); });
  rt.run();
  EXPECT_TRUE(refused.get());
}

// An ask of a generator that would wait for its own actor.
struct asker {
  ref<asker> peer;
  int plain() { return 1; }
  async_generator<int> answers(bool last) {
    for (;;) {
      auto later = last ? peer.ask<&asker::plain>() : peer.ask<&asker::second>();
      const int one = co_await std::move(later);
      co_yield one;
    }
  }
  task<int> first() {
    auto all = answers(false);
    const auto one = co_await all.next();
    co_return one.value();
  }
  task<int> second() {
    auto all = answers(true);
    const auto one = co_await all.next();
    co_return one.value();
  }
  void meet(ref<asker> other) { peer = other; }
};

TEST_P(async_generators, take_part_in_deadlocks) {
  runtime rt(options());
  auto one = rt.spawn<asker>(), two = rt.spawn<asker>();
  one.tell<&asker::meet>(two);
  two.tell<&asker::meet>(one);
  auto asked = one.ask<&asker::first>();
  rt.run();
  EXPECT_THROW(asked.get(), deadlock);
}

TEST_P(async_generators, are_named_in_stalls) {
  runtime rt(options());
  event never;
  rt.spawn([](future<> of) -> task<> {
    auto all = waits_for(std::move(of));
    static_cast<void>(co_await all.next());
  }(never.wait()));
  try {
    rt.run();
    ADD_FAILURE();
  } catch (const stalled& e) {
    EXPECT_NE(std::string(e.what()).find("the next value of a stream"), std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("async_generators.cpp"), std::string::npos) << e.what();
  }
}

struct pair_of_texts {
  std::string a, b;
};
async_generator<pair_of_texts> pairs() {
  for (int i = 0; i < 3; ++i) {
    pair_of_texts one{std::string(40, 'a'), std::string(40, 'b')};
    co_yield std::move(one);
  }
}

TEST_P(async_generators, give_aggregates) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<std::size_t> {
    std::size_t bytes = 0;
    auto all = pairs();
    while (auto one = co_await all.next()) bytes += one->a.size() + one->b.size();
    co_return bytes;
  });
  rt.run();
  EXPECT_EQ(done.get(), 240u);
}

TROUPE_TEST_EACH(async_generators, all_settings);

}  // namespace
}  // namespace troupe::test
