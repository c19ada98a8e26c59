// P11: a coroutine that awaits what is ready, again and again, lets others run
// (docs/protocols/ready_awaits.md).
#include <atomic>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

// Awaits ready things until `end` is set, which only another turn of the only worker can do.
struct ready_loop {
  const char* what;
  task<> (*run)(const std::atomic<bool>& end);
};

// A loop that starves the others ends here, and fails.
constexpr int most_rounds = 20'000'000;

task<int> ready_task() { co_return 1; }
async_generator<int> numbers() {
  for (;;) co_yield 1;
}
async_generator<int> no_numbers() { co_return; }

task<> await_deep(int depth, const std::atomic<bool>& end) {
  if (depth > 0) {
    co_await await_deep(depth - 1, end);
    co_return;
  }
  for (int i = 0; i < most_rounds && !end; ++i) co_await ready_task();
}

// One for each kind of await that may be over without a suspension.
constexpr ready_loop loops[] = {
    {"a task",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) co_await ready_task();
     }},
    {"a task, deeper than tasks nest",
     [](const std::atomic<bool>& end) -> task<> { return await_deep(64, end); }},
    {"a future",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) {
         promise<int> made;
         future<int> later = made.get_future();
         made.set_value(1);
         co_await std::move(later);
       }
     }},
    {"a future with a limit",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) {
         promise<int> made;
         future<int> later = made.get_future();
         made.set_value(1);
         co_await std::move(later).timeout(std::chrono::seconds(0));
       }
     }},
    {"an event",
     [](const std::atomic<bool>& end) -> task<> {
       event set;
       set.set();
       for (int i = 0; i < most_rounds && !end; ++i) co_await set.wait();
     }},
    {"a mutex",
     [](const std::atomic<bool>& end) -> task<> {
       mutex lock;
       for (int i = 0; i < most_rounds && !end; ++i) auto held = co_await lock.lock();
     }},
    {"a channel",
     [](const std::atomic<bool>& end) -> task<> {
       auto values = channel<int>::bounded(1);
       for (int i = 0; i < most_rounds && !end; ++i) {
         co_await values.send(1);
         co_await values.receive();
       }
     }},
    {"a generator",
     [](const std::atomic<bool>& end) -> task<> {
       auto all = numbers();
       for (int i = 0; i < most_rounds && !end; ++i) co_await all.next();
     }},
    {"a generator with a limit",
     [](const std::atomic<bool>& end) -> task<> {
       auto all = numbers();
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await all.next().timeout(std::chrono::hours(1));
     }},
    {"a generator with a limit that is over at once",
     [](const std::atomic<bool>& end) -> task<> {
       auto all = numbers();
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await all.next().timeout(std::chrono::seconds(0));
     }},
    {"a generator at its end, with a limit",
     [](const std::atomic<bool>& end) -> task<> {
       auto none = no_numbers();
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await none.next().timeout(std::chrono::hours(1));
     }},
    {"pipes that run in pieces",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await (std::views::iota(0, 3) | streams::map([](int) { return ready_task(); }) |
                   streams::buffered(2) | streams::count());
     }},
    {"a generator at its end",
     [](const std::atomic<bool>& end) -> task<> {
       auto none = no_numbers();
       for (int i = 0; i < most_rounds && !end; ++i) co_await none.next();
     }},
    {"an empty generator",
     [](const std::atomic<bool>& end) -> task<> {
       async_generator<int> none;
       for (int i = 0; i < most_rounds && !end; ++i) co_await none.next();
     }},
    {"a pipe",
     [](const std::atomic<bool>& end) -> task<> {
       return std::views::iota(0, most_rounds) | streams::take_while([&end](int) { return !end; }) |
              streams::for_each([](int) {});
     }},
    {"when_all",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) co_await when_all(ready_task(), ready_task());
     }},
    {"when_all of nothing",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) co_await when_all(std::vector<task<int>>());
     }},
    {"when_any",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i) co_await when_any(ready_task(), ready_task());
     }},
    {"a scope",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await scope([](task_scope& within) { within.spawn(ready_task()); });
     }},
    {"the next child of a scope",
     [](const std::atomic<bool>& end) -> task<> {
       auto body = [&end](task_scope& within) -> task<> {
         for (int i = 0; i < most_rounds && !end; ++i) {
           within.spawn(ready_task());
           co_await within.next();
         }
       };
       co_await scope(body);
     }},
    {"a task with a limit",
     [](const std::atomic<bool>& end) -> task<> {
       for (int i = 0; i < most_rounds && !end; ++i)
         co_await ready_task().timeout(std::chrono::hours(1));
     }},
    {"a cache",
     [](const std::atomic<bool>& end) -> task<> {
       cache<int, int> kept({}, [](const int& key) -> task<int> { co_return key; });
       for (int i = 0; i < most_rounds && !end; ++i) co_await kept.get(1);
     }},
    {"once",
     [](const std::atomic<bool>& end) -> task<> {
       once done;
       auto work = []() -> task<> { co_return; };
       for (int i = 0; i < most_rounds && !end; ++i) co_await done.call(work);
     }},
    {"a lazy",
     [](const std::atomic<bool>& end) -> task<> {
       const lazy<int> value([] { return 1; });
       for (int i = 0; i < most_rounds && !end; ++i) co_await value;
     }},
};

// Where a loop may run: what is awaited is then not lost, if others run and end it.
struct loop_place {
  const char* what;
  task<> (*run)(const ready_loop& loop, const std::atomic<bool>& end);
};
task<> never() {
  event not_set;
  co_await not_set.wait();
}
async_generator<int> loop_in_body(const ready_loop& loop, const std::atomic<bool>& end) {
  co_await loop.run(end);
  co_yield 1;
}
constexpr loop_place places[] = {
    {"a task",
     [](const ready_loop& loop, const std::atomic<bool>& end) -> task<> { return loop.run(end); }},
    {"a branch of when_any",
     [](const ready_loop& loop, const std::atomic<bool>& end) -> task<> {
       co_await when_any(loop.run(end), never());
     }},
    {"a branch of when_all",
     [](const ready_loop& loop, const std::atomic<bool>& end) -> task<> {
       co_await when_all(loop.run(end), loop.run(end));
     }},
    {"the body of a generator",
     [](const ready_loop& loop, const std::atomic<bool>& end) -> task<> {
       auto body = loop_in_body(loop, end);
       co_await body.next();
     }},
    {"the body of a generator that is awaited in a branch of when_any",
     [](const ready_loop& loop, const std::atomic<bool>& end) -> task<> {
       auto body = loop_in_body(loop, end);
       co_await when_any(body.next(), never());
     }},
};

class p11_ready_awaits : public conformance {
 protected:
  // What lets a loop end, besides its own actor.
  enum class by { procedure, timer, mail };
  void check_all(by how) {
    for (const loop_place& place : places) {
      for (const ready_loop& loop : loops) check(loop, place, how);
    }
  }

 private:
  void check(const ready_loop& loop, const loop_place& place, by how) {
    runtime_options chosen = options();
    chosen.workers = 1;
    runtime rt(std::move(chosen));
    struct switch_actor {
      std::atomic<bool>& to;
      explicit switch_actor(std::atomic<bool>& set) : to(set) {}
      void set() { to = true; }
    };
    std::atomic<bool> end{false}, ended{false}, starved{false};
    auto other = rt.spawn<switch_actor>(unchecked<std::atomic<bool>&>{end});
    auto body = [&]() -> task<> {
      if (how == by::procedure) rt.post([&] { end = true; });
      if (how == by::timer) after(std::chrono::microseconds(1), [&] { end = true; });
      if (how == by::mail) other.tell<&switch_actor::set>();
      co_await place.run(loop, end);
      starved = !end;
      ended = true;
    };
    rt.spawn(body());
    rt.run();
    EXPECT_TRUE(ended) << loop.what << ' ' << place.what;
    EXPECT_FALSE(starved) << loop.what << ' ' << place.what;
  }
};

TEST_P(p11_ready_awaits, a_posted_procedure_runs_beside_them) { check_all(by::procedure); }
TEST_P(p11_ready_awaits, mail_of_others_is_handled_beside_them) { check_all(by::mail); }
// The time of a simulation passes with its turns, so the loop's turns end there, too.
TEST_P(p11_ready_awaits, timers_fire_beside_them) {
  if (threaded()) check_all(by::timer);
}

// A branch that lets others run before it has ended may lose; then it has taken nothing.
TEST_P(p11_ready_awaits, a_value_is_not_lost_while_others_run) {
  runtime rt(options());
  constexpr int values = 1000;
  std::vector<int> got;
  auto body = [&]() -> task<> {
    auto counted = []() -> async_generator<int> {
      for (int i = 0; i < values; ++i) co_yield i;
    };
    auto all = counted();
    while (got.size() < values) {
      auto take = [&]() -> task<int> {
        auto one = co_await all.next();
        co_return one.value();
      };
      auto give_up = []() -> task<int> {
        co_await yield();
        co_return -1;
      };
      auto winner = take();
      auto other = give_up();
      auto first = co_await when_any(std::move(winner), std::move(other));
      const int value = std::visit([](const auto& one) { return static_cast<int>(one); }, first);
      if (value >= 0) got.push_back(value);
    }
  };
  rt.spawn(body());
  rt.run();
  ASSERT_EQ(got.size(), values);
  for (int i = 0; i < values; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

// Two locks in opposite orders, which no other await separates: some seeds show the deadlock.
TEST(p11_ready_awaits_simulated, seeds_show_locks_in_opposite_orders) {
  const scoped_environment no_policy("TROUPE_POLICY", nullptr), no_seed("TROUPE_SEED", nullptr);
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    runtime rt({.policy = policy::simulated, .seed = seed, .failure_lines = 0});
    mutex first, second;
    auto take = [](mutex& one, mutex& other) -> task<> {
      auto outer = co_await one.lock();
      auto inner = co_await other.lock();
    };
    rt.spawn(take(first, second));
    rt.spawn(take(second, first));
    try {
      rt.run();
    } catch (const deadlock&) {
      ++found;
    } catch (const stalled&) {
      ++found;
    }
  }
  EXPECT_GE(found, 5);
}

TROUPE_TEST_EACH(p11_ready_awaits, each_policy);

}  // namespace
}  // namespace troupe::test
