// Spawned tasks: some wait for nothing and end in their first turn; the others become actors in it.
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <string>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class spawned : public conformance {
 protected:
  void TearDown() override { EXPECT_EQ(live.load(), 0); }
};

enum class kind : std::uint8_t {
  at_once,
  yields,
  sleeps,
  throws,
  throws_later,
  waits_for_another,
  kinds
};

task<int> number(int n) {
  const counted here;
  co_return n;
}

task<int> of_kind(kind one, int n) {
  const counted here;
  if (one == kind::yields || one == kind::throws_later) co_await yield();
  if (one == kind::sleeps) co_await sleep_for(100us);
  if (one == kind::throws || one == kind::throws_later)
    throw std::runtime_error("task " + std::to_string(n));
  int more = 0;
  if (one == kind::waits_for_another) more = co_await spawn(number(1000));
  co_return n + more;
}

// Checks the result of the n-th task.
void check(future<int>& of, int n) {
  const auto one = static_cast<kind>(n % static_cast<int>(kind::kinds));
  if (one == kind::throws || one == kind::throws_later) {
    EXPECT_THROW(of.get(), std::runtime_error);
  } else {
    EXPECT_EQ(of.get(), one == kind::waits_for_another ? n + 1000 : n);
  }
}

std::vector<future<int>> spawn_all(runtime& rt, int count) {
  std::vector<future<int>> all;
  for (int n = 0; n < count; ++n)
    all.push_back(rt.spawn(of_kind(static_cast<kind>(n % static_cast<int>(kind::kinds)), n)));
  return all;
}

TEST_P(spawned, each_comes_to_its_own_result_wherever_it_was_spawned) {
  runtime rt(options());
  const int count = fewer(3'000);
  std::vector<future<int>> by_main = spawn_all(rt, count), by_task, by_thread;
  auto spawner = [](runtime& in, int n, std::vector<future<int>>& all) -> task<> {
    all = spawn_all(in, n);
    co_return;
  };
  rt.spawn(spawner(rt, count, by_task));
  std::thread other;
  if (GetParam().policy != policy::simulated) {
    other = std::thread([&] { by_thread = spawn_all(rt, count); });
    other.join();
  }
  rt.run();
  for (auto* all : {&by_main, &by_task, &by_thread}) {
    for (std::size_t n = 0; n < all->size(); ++n) check((*all)[n], static_cast<int>(n));
  }
  rt.run();  // a failed task's failure stays with its future until that is taken
  const auto seen = rt.metrics();
  EXPECT_EQ(seen.actors, 0u) << "those that were over at once, too";
  EXPECT_EQ(seen.suspended, 0u);
}

TEST_P(spawned, results_that_nobody_takes_are_dropped_and_failures_told) {
  runtime rt(options());
  for (int n = 0; n < fewer(500); ++n) rt.spawn(number(n));
  rt.run();
  rt.spawn(of_kind(kind::throws, 1));
  EXPECT_THROW(rt.run(), std::runtime_error);
  rt.spawn(of_kind(kind::throws_later, 2));
  EXPECT_THROW(rt.run(), std::runtime_error);
}

struct passes_on {
  future<int> made() { return spawn(of_kind(kind::throws_later, 3)); }
};

TEST_P(spawned, a_failure_that_a_callback_or_an_answer_has_taken_is_told_nowhere_else) {
  runtime rt(options());
  int heard = 0;
  for (const kind one : {kind::throws, kind::throws_later}) {
    rt.spawn(of_kind(one, 1)).then([](int) {}, [&](std::exception_ptr) { ++heard; });
    rt.run();
  }
  auto hears = [&](runtime& in) -> task<> {
    in.spawn(of_kind(kind::throws_later, 2)).then([](int) {}, [&](std::exception_ptr) { ++heard; });
    co_return;
  };
  rt.spawn(hears(rt));
  rt.run();
  auto answer = rt.spawn<passes_on>().ask<&passes_on::made>();
  rt.run();
  EXPECT_THROW(answer.get(), std::runtime_error);
  EXPECT_EQ(heard, 3);
  // An exception that passes through a callback is one failure, not two.
  auto throws_on = [](runtime& in) -> task<> {
    in.spawn(of_kind(kind::throws_later, 4)).then([](int) {});
    co_return;
  };
  rt.spawn(throws_on(rt));
  EXPECT_THROW(rt.run(), std::runtime_error);
  rt.run();
}

// Spawns tasks on the pool and drops their futures before their first turn. When such a task waits,
// its result is freed.
template <class T>
task<> let_go_of(task<T> (*makes)(std::atomic<int>&), int count, std::atomic<int>& over) {
  const counted here;
  for (int n = 0; n < count; ++n) spawn(makes(over));
  co_return;
}

TEST_P(spawned, those_whose_result_nobody_can_take_run_on_to_their_ends) {
  std::atomic<int> over{0};
  const int count = fewer(300);
  static int anything = 0;
  {
    runtime rt(options());
    rt.spawn(let_go_of<void>(
        [](std::atomic<int>& sum) -> task<> {
          const counted here;
          co_await sleep_for(10us);
          co_await yield();
          ++sum;
        },
        count, over));
    rt.spawn(let_go_of<int&>(
        [](std::atomic<int>& sum) -> task<int&> {
          const counted here;
          co_await yield();
          ++sum;
          co_return anything;
        },
        count, over));
    rt.spawn(let_go_of<std::unique_ptr<counted>>(
        [](std::atomic<int>& sum) -> task<std::unique_ptr<counted>> {
          co_await yield();
          ++sum;
          co_return std::make_unique<counted>();
        },
        count, over));
    rt.run();
    EXPECT_EQ(over.load(), 3 * count);
    EXPECT_EQ(live.load(), 0);
    rt.spawn(let_go_of<std::string>(
        [](std::atomic<int>&) -> task<std::string> {
          const counted here;
          co_await yield();
          throw std::runtime_error("nobody takes this");
        },
        1, over));
    EXPECT_THROW(rt.run(), std::runtime_error);
    // The runtime's end cancels these tasks; no failure is reported.
    rt.spawn(let_go_of<void>(
        [](std::atomic<int>&) -> task<> {
          const counted here;
          co_await sleep_for(1h).weak();
        },
        count, over));
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
  runtime rt(options());
  over = 0;
  rt.spawn(let_go_of<void>(
      [](std::atomic<int>& sum) -> task<> {
        const counted here;
        ++sum;
        co_await sleep_for(1h);
      },
      count, over));
  auto stops = [](runtime& in, int when, std::atomic<int>& sum) -> task<> {
    while (sum < when) co_await yield();
    co_await sleep_for(1ms);
    in.stop(stop_mode::discard);
  };
  rt.spawn(stops(rt, count, over));
  try {
    rt.run();
  } catch (const std::exception&) {  // run() may report what the stop discarded
  }
}

TEST_P(spawned, sleepers_give_their_actors_to_others_and_get_new_ones) {
  runtime rt(options());
  std::atomic<int> over{0};
  const int count = fewer(1'000);
  auto naps = [](std::atomic<int>& sum) -> task<> {
    const counted here;
    for (int n = 0; n < 5; ++n) co_await sleep_for(20us);
    ++sum;
  };
  for (int n = 0; n < count; ++n) rt.spawn(naps(over));
  rt.run();
  EXPECT_EQ(over.load(), count);
  EXPECT_EQ(rt.metrics().actors, 0u);
}

// The actor of a task that has ended stays for as long as a callback needs it.
TEST_P(spawned, a_task_that_is_over_calls_back_in_its_own_turns) {
  runtime rt(options());
  promise<int> later;
  std::atomic<int> seen{0};
  auto leaves_a_callback = [](future<int> of, std::atomic<int>& sum) -> task<> {
    of.then([&sum, here = counted()](int n) { sum += n; });
    co_return;
  };
  rt.spawn(leaves_a_callback(later.get_future(), seen));
  rt.post([&later] { later.set_value(7); });
  rt.run();
  EXPECT_EQ(seen.load(), 7);
}

struct spawns_at_its_end {
  spawns_at_its_end(runtime& in, std::atomic<int>& counts) : rt(&in), count(&counts) {}
  spawns_at_its_end(spawns_at_its_end&& other) noexcept
      : rt(std::exchange(other.rt, nullptr)), count(other.count) {}
  ~spawns_at_its_end() {
    if (rt == nullptr) return;
    rt->spawn(number(1)).then([to = count](int n) { *to += n; });
  }
  runtime* rt;
  std::atomic<int>* count;
};

TEST_P(spawned, what_a_frame_holds_may_spawn_and_call_back_when_it_goes) {
  std::atomic<int> sum{0};
  runtime rt(options());
  auto holds = [](spawns_at_its_end) -> task<> { co_return; };
  for (int i = 0; i < fewer(200); ++i) rt.spawn(holds(spawns_at_its_end(rt, sum)));
  rt.run();
  EXPECT_EQ(sum.load(), fewer(200));
}

TEST_P(spawned, a_stop_that_discards_ends_those_that_wait_for_their_first_turn) {
  std::atomic<int> letters{0};
  runtime_options chosen = options();
  chosen.workers = 1;
  chosen.on_dead_letter = [&](const dead_letter&) { ++letters; };
  runtime rt(chosen);
  std::vector<future<int>> all;
  auto fills_and_stops = [](runtime& in, std::vector<future<int>>& to) -> task<> {
    for (int n = 0; n < 50; ++n) to.push_back(in.spawn(number(n)));
    in.stop(stop_mode::discard);
    // sleeps: the thread in run() discards; too short a time would fail the test
    std::this_thread::sleep_for(20ms);
    co_return;
  };
  rt.spawn(fills_and_stops(rt, all));
  try {
    rt.run();
  } catch (const std::exception&) {
    // run() may report what the stop discarded.
  }
  int stopped = 0;
  for (auto& one : all) {
    try {
      one.get();
    } catch (const actor_stopped&) {
      ++stopped;
    }
  }
  EXPECT_EQ(stopped, letters.load());
  EXPECT_GT(stopped, 0);
}

TEST_P(spawned, what_a_stop_has_ended_is_no_failure_when_its_future_goes_later) {
  runtime rt(options());
  std::atomic<bool> begun{false};
  auto goes_on = [](runtime& in, std::atomic<bool>& here) -> task<> {
    for (;;) {
      co_await yield();
      if (!here.exchange(true)) in.stop(stop_mode::discard);
    }
  };
  {
    const auto kept = rt.spawn(goes_on(rt, begun));
    rt.run();
    EXPECT_TRUE(kept.ready());
  }
  EXPECT_NO_THROW(rt.run());
}

TEST_P(spawned, a_stop_that_discards_comes_to_its_end_beside_threads_that_go_on_spawning) {
  if (!threaded()) GTEST_SKIP() << "needs threads: threads of one's own";
  runtime rt(options());
  std::atomic<bool> end{false};
  std::atomic<int> spawned{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!end) rt.spawn(number(1)), ++spawned;
    });
  }
  while (spawned < 100) std::this_thread::yield();
  rt.stop(stop_mode::discard);
  EXPECT_NO_THROW(rt.run()) << "else its deadline came first";
  end = true;
  for (auto& one : others) one.join();
  rt.run();
  EXPECT_EQ(rt.metrics().actors, 0u);
}

struct moves_once {
  moves_once() = default;
  moves_once(moves_once&& other) : moved(other.moved + 1) {
    if (moved > 1) throw std::runtime_error("moved again");
  }
  int moved = 0;
};

TEST_P(spawned, a_result_that_cannot_be_moved_out_is_a_failure_that_is_told) {
  runtime rt(options());
  auto makes_one = []() -> task<moves_once> { co_return moves_once(); };
  auto kept = rt.spawn(makes_one());
  rt.run();
  EXPECT_THROW(kept.get(), std::runtime_error);
  {
    const auto left = rt.spawn(makes_one());
    rt.run();
  }
  EXPECT_THROW(rt.run(), std::runtime_error);
}

// Its destructor spawns when the runtime's end has begun.
TEST_P(spawned, who_spawns_at_the_end_is_told) {
  struct spawner {
    spawner(runtime* in, std::optional<future<int>>* at) : rt(in), to(at) {}
    ~spawner() { to->emplace(rt->spawn(number(1))); }
    runtime* rt;
    std::optional<future<int>>* to;
  };
  std::optional<future<int>> told;
  ref<spawner> kept;
  {
    runtime rt(options());
    kept = rt.spawn<spawner>(unchecked{&rt}, unchecked{&told});
    rt.run();
  }
  ASSERT_TRUE(told.has_value());
  EXPECT_ANY_THROW(told->get());
}

// Another thread spawns while the runtime ends: each future has a value, or says why there is none.
TEST_P(spawned, a_thread_may_spawn_into_the_end) {
  for (int round = 0; round < fewer(50); ++round) {
    std::vector<future<int>> all;
    std::atomic<bool> go{false};
    {
      runtime rt(options());
      std::thread other([&] {
        while (!go) std::this_thread::yield();
        for (int n = 0; n < 100; ++n) all.push_back(rt.spawn(number(n)));
      });
      go = true;
      rt.stop(round % 2 == 0 ? stop_mode::drain : stop_mode::discard);
      rt.run();
      other.join();
    }
    for (std::size_t n = 0; n < all.size(); ++n) {
      try {
        EXPECT_EQ(all[n].get(), static_cast<int>(n));
      } catch (const actor_stopped&) {
        // The task got no turn.
      }
    }
  }
}

// Searchers steal the tasks from a queue: each runs once, on some worker.
TEST_P(spawned, stolen_ones_run_once) {
  runtime rt(options());
  const int count = fewer(2'000);
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
  auto works = [](std::atomic<int>& mine, int n) -> task<> {
    const counted here;
    ++mine;
    const auto until = std::chrono::steady_clock::now() + 20us;
    while (std::chrono::steady_clock::now() < until) {
    }
    if (n % 8 == 0) co_await yield();
  };
  auto spawner = [&](runtime& in) -> task<> {
    for (int n = 0; n < count; ++n) in.spawn(works(runs[static_cast<std::size_t>(n)], n));
    co_return;
  };
  rt.spawn(spawner(rt));
  rt.run();
  for (const auto& one : runs) EXPECT_EQ(one.load(), 1);
}

// The callable that makes a task lives as long as the task, whichever code spawns it and however it
// ends.
struct spawns_made {
  std::vector<future<int>> all;
  void spawn_them(int n) {
    all.push_back(troupe::spawn([here = counted(), n]() -> task<int> {
      co_await yield();
      EXPECT_GT(live.load(), 0);
      co_return n;
    }));
    all.push_back(troupe::spawn(
        [here = counted(), kept = std::make_unique<int>(n)] { return number(*kept); }));
    all.push_back(troupe::spawn(
        [](std::string text, const counted&, std::unique_ptr<int> more) -> task<int> {
          co_await sleep_for(10us);
          co_return static_cast<int>(text.size()) + *more;
        },
        "four", counted(), std::make_unique<int>(n - 4)));
    all.push_back(troupe::spawn([here = counted(), calls = n - 1]() mutable -> task<int> {
      co_await yield();
      co_return ++calls;
    }));
  }
  task<int> sum() {
    int total = 0;
    for (auto& one : all) total += co_await std::move(one);
    all.clear();
    co_return total;
  }
};

TEST_P(spawned, what_makes_a_task_is_kept_until_it_has_ended) {
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("made")) {
    auto one = spawn_on<spawns_made>(rt, where);
    for (int i = 0; i < 20; ++i) one.tell<&spawns_made::spawn_them>(10);
    auto sum = one.ask<&spawns_made::sum>();
    rt.run();
    EXPECT_EQ(sum.get(), 20 * 40);
    EXPECT_EQ(live.load(), 0);
  }
  auto from_outside = rt.spawn([here = counted()]() -> task<std::string> {
    co_await sleep_for(10us);
    co_return "made";
  });
  auto in_a_context = rt.spawn(
      {.name = "made"},
      [here = counted()](int n) -> task<int> {
        std::pmr::vector<int> ours(&this_context());
        ours.push_back(n);
        co_await yield();
        co_return ours[0];
      },
      8);
  rt.run();
  EXPECT_EQ(from_outside.get(), "made");
  EXPECT_EQ(in_a_context.get(), 8);
}

TEST_P(spawned, what_made_a_task_is_gone_when_its_result_comes) {
  runtime rt(options());
  auto looks = [](runtime& in) -> task<int> {
    auto later = in.spawn([here = counted()]() -> task<> { co_await yield(); });
    co_await std::move(later);
    co_return live.load();
  };
  auto left = rt.spawn(looks(rt));
  rt.run();
  EXPECT_EQ(left.get(), 0);
}

TEST_P(spawned, what_makes_a_task_may_throw_instead) {
  runtime rt(options());
  auto failed =
      rt.spawn([here = counted()]() -> task<int> { throw std::runtime_error("no task"); });
  auto never_made = rt.spawn(
      [here = counted()](int n) {
        if (n == 1) throw std::logic_error("not made");
        return number(n);
      },
      1);
  rt.run();
  EXPECT_THROW(failed.get(), std::runtime_error);
  EXPECT_THROW(never_made.get(), std::logic_error);
  rt.spawn([here = counted()]() -> task<> { throw std::runtime_error("told"); });
  EXPECT_THROW(rt.run(), std::runtime_error);
}

TEST_P(spawned, what_makes_a_task_goes_with_it_when_it_is_stopped_or_never_begins) {
  {
    runtime rt(options());
    std::atomic<bool> begun{false};
    rt.spawn([here = counted(), &begun]() -> task<> {
      begun = true;
      co_await sleep_for(1h);
    });
    rt.spawn([here = counted(), &rt, &begun]() -> task<> {
      while (!begun) co_await yield();
      rt.stop(stop_mode::discard);
      for (int n = 0; n < 20; ++n) troupe::spawn([here = counted()] { return number(1); });
    });
    try {
      rt.run();
    } catch (const std::exception&) {  // run() may report what the stop discarded
    }
  }
  EXPECT_EQ(live.load(), 0);
  {
    runtime rt(options());
    for (int n = 0; n < 20; ++n)
      rt.spawn([here = counted()]() -> task<> { co_await sleep_for(1h).weak(); });
  }
  EXPECT_EQ(live.load(), 0);
}

// Each method is called once, on an object and with arguments of its own.
struct scales {
  int by = 1;
  counted here{};
  task<int> scale(int n) const {
    co_await yield();
    co_return n* by;
  }
};
task<int> length_of(const std::string& text, int more) {
  co_await yield();
  co_return static_cast<int>(text.size()) + more;
}

TEST_P(spawned, functions_methods_and_objects_make_tasks) {
  runtime rt(options());
  int written = 0;
  auto by_function = rt.spawn(length_of, "a literal", 1);
  auto by_pointer = rt.spawn(&length_of, std::string("text"), 1);
  auto by_method = rt.spawn(&scales::scale, scales{3}, 4);
  auto by_object =
      rt.spawn(std::function<task<int>(int)>([](int n) -> task<int> { co_return n + 1; }), 1);
  auto writes = rt.spawn(
      [](int& to) -> task<int&> {
        co_await yield();
        to = 9;
        co_return to;
      },
      unchecked<int&>{written});
  const auto kept = [here = counted()](int n) -> task<int> {
    co_await yield();
    co_return n;
  };
  auto by_copy = rt.spawn(kept, 5);
  rt.run();
  EXPECT_EQ(by_function.get(), 10);
  EXPECT_EQ(by_pointer.get(), 5);
  EXPECT_EQ(by_method.get(), 12);
  EXPECT_EQ(by_object.get(), 2);
  EXPECT_EQ(&writes.get(), &written);
  EXPECT_EQ(written, 9);
  EXPECT_EQ(by_copy.get(), 5);
}

// If a handler spawned a coroutine method of its own actor, that would run beside the actor's
// turns.
struct padded {
  int pad = 0;
};
struct helper {
  std::string kept = "kept";
  task<> of_base() {
    const counted here;
    co_await yield();
    kept += "!";
  }
};
task<> takes_text(const std::string& text) {
  const counted here;
  co_await yield();
  static_cast<void>(text);
}
const std::string elsewhere = "elsewhere";
task<> takes_value(std::string text) {
  const counted here;
  co_await yield();
  static_cast<void>(text);
}
task<> runs(task<> given) { co_await std::move(given); }
struct own_spawner : padded, helper {
  helper part{};
  int turns = 0, refused = 0;
  bool in_turn = false;

  task<> work() {
    EXPECT_FALSE(in_turn) << "beside a turn";
    in_turn = true;
    ++turns;
    in_turn = false;
    co_await yield();
  }
  task<int> look() const { co_return turns; }
  std::vector<task<>> all_of_it() {
    std::vector<task<>> all;
    all.push_back(takes_value(kept));
    all.push_back(work());
    return all;
  }

  template <class Spawns>
  void expect_refused(Spawns spawns) {
    try {
      spawns();
      ADD_FAILURE() << "it runs beside the actor's turns";
    } catch (const usage_error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("own_spawner #"), std::string::npos) << what;
      EXPECT_NE(what.find("troupe::self(this).tell<&T::method>"), std::string::npos) << what;
      ++refused;
    }
  }
  void try_all(unchecked<runtime*> rt) {
    expect_refused([&] { troupe::spawn(work()); });
    expect_refused([&] { troupe::spawn(look()); });
    expect_refused([&] { rt.value->spawn(work()); });
    expect_refused([&] { rt.value->spawn(context_options{.name = "own"}, work()); });
    expect_refused([&] { troupe::spawn(of_base()); });
    expect_refused([&] { troupe::spawn(part.of_base()); });
    expect_refused([&] { troupe::spawn(takes_text(kept)); });
    expect_refused([&] { troupe::spawn(work().timeout(1h)); });
    expect_refused([&] { troupe::spawn(when_all(work(), look())); });
    expect_refused([&] { rt.value->spawn(when_all(work(), look()).timeout(1h)); });
    expect_refused([&] {
      troupe::spawn(when_any(takes_value(kept), takes_text(elsewhere), sleep_for(1h), work()));
    });
    expect_refused([&] { rt.value->spawn(context_options{.name = "own"}, when_all(all_of_it())); });
    expect_refused([&] { troupe::spawn(when_any(all_of_it()).timeout(1h)); });
    expect_refused([&] { troupe::spawn(runs(runs(work()))); });
    troupe::spawn(when_all(takes_value(kept), takes_text(elsewhere)).timeout(1h));
    troupe::spawn(takes_value(kept));
    troupe::spawn(takes_value, kept);
  }
  task<> try_later(unchecked<runtime*> rt) {
    co_await work();
    try_all(rt);
    auto both = when_all(work(), work());
    co_await std::move(both);
  }
  void tell_itself() {
    for (int i = 0; i < 10; ++i) self(this).tell<&own_spawner::work>();
  }
};

TEST_P(spawned, a_method_of_the_running_actor_is_refused_and_sent_it_is_a_turn) {
  runtime rt(options());
  std::vector<ref<own_spawner>> all{rt.activate(std::make_unique<own_spawner>())};
  for (const thread_kind& where : thread_kinds("own"))
    all.push_back(spawn_on<own_spawner>(rt, where));
  for (auto& one : all) {
    one.tell<&own_spawner::try_all>(unchecked{&rt});
    one.tell<&own_spawner::try_later>(unchecked{&rt});
    one.tell([](own_spawner& self) { self.expect_refused([&] { troupe::spawn(self.work()); }); });
    one.tell<&own_spawner::tell_itself>();
    rt.run();
    auto refused = one.ask([](own_spawner& self) { return self.refused; });
    auto turns = one.ask([](own_spawner& self) { return self.turns; });
    rt.run();
    EXPECT_EQ(refused.get(), 29);
    EXPECT_EQ(turns.get(), 13);
  }
}

struct reentrant_spawner {
  static constexpr bool reentrant = true;
  int refused = 0;
  reentrant_spawner() { try_it(); }
  task<> work() { co_await yield(); }
  void try_it() {
    try {
      troupe::spawn(work());
    } catch (const usage_error&) {
      ++refused;
    }
  }
};

TEST_P(spawned, nor_may_a_constructor_or_a_reentrant_actor_and_other_objects_may) {
  runtime rt(options());
  auto one = rt.spawn<reentrant_spawner>();
  one.tell<&reentrant_spawner::try_it>();
  auto refused = one.ask([](reentrant_spawner& self) { return self.refused; });
  helper outside;
  rt.spawn(outside.of_base());
  one.tell([](reentrant_spawner&) {
    auto shared = std::make_shared<helper>();
    // This task refers to an object that the task itself keeps alive.
    troupe::spawn([](std::shared_ptr<helper> kept) -> task<> { co_await kept->of_base(); }, shared);
  });
  rt.run();
  EXPECT_EQ(refused.get(), 2);
  EXPECT_EQ(outside.kept, "kept!");
}

TROUPE_TEST_EACH(spawned, all_settings);

}  // namespace
}  // namespace troupe::test
