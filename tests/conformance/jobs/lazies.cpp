// Lazies: each runs once, whichever code wants it, from any thread and at any depth.
#include <array>
#include <cstdlib>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class lazies : public conformance {};

// A task on the pool wants the value.
template <class Function>
auto on_pool(runtime& rt, Function function) {
  using value = std::invoke_result_t<Function&>;
  auto wants = [](Function given) -> task<value> {
    const lazy all([given = std::move(given)]() mutable { return given(); });
    co_return co_await all;
  };
  auto result = rt.spawn(wants(std::move(function)));
  rt.run();
  return result.get();
}

std::uint64_t fib(unsigned n) {
  if (n < 2) return n;
  const lazy one([n] { return fib(n - 1); });
  const lazy two([n] { return fib(n - 2); });
  return one.get() + two.get();
}

TEST_P(lazies, nothing_runs_before_it_is_wanted_and_then_all_that_is_pending) {
  runtime rt(options());
  std::atomic<int> ran{0};
  const lazy first([&] { return ++ran; });
  const lazy second([&] { ++ran; });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // sleeps: nothing should happen
  EXPECT_EQ(ran.load(), 0);
  EXPECT_FALSE(first.ready());
  EXPECT_GE(first.get(), 1);
  rt.run();
  EXPECT_EQ(ran.load(), 2);
  EXPECT_TRUE(second.ready());
}

TEST_P(lazies, a_value_is_shared_by_all_copies_and_threads) {
  runtime rt(options());
  std::atomic<int> ran{0};
  const lazy text([&] {
    ++ran;
    return std::string(100, 'x');
  });
  std::vector<std::future<const std::string*>> seen;
  for (int i = 0; i < 4; ++i) {
    seen.push_back(std::async(std::launch::async, [copy = text] { return &copy.get(); }));
  }
  for (auto& one : seen) EXPECT_EQ(one.get(), &text.get());
  auto reads = [](lazy<std::string> wanted) -> task<std::size_t> {
    co_return (co_await wanted).size();
  };
  auto size = rt.spawn(reads(text));
  rt.run();
  EXPECT_EQ(size.get(), 100u);
  EXPECT_EQ(ran.load(), 1);
}

TEST_P(lazies, an_exception_reaches_all_who_want_the_value) {
  runtime rt(options());
  const lazy<int> bad([]() -> int { throw std::runtime_error("no value"); });
  const lazy derived([bad] { return bad.get() + 1; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(bad.get(), std::runtime_error);
    EXPECT_THROW(derived.get(), std::runtime_error);
  }
  auto reads = [](lazy<int> wanted) -> task<int> { co_return co_await wanted; };
  auto result = rt.spawn(reads(derived));
  rt.run();
  EXPECT_THROW(result.get(), std::runtime_error);
}

TEST_P(lazies, nest_on_the_pool_and_outside) {
  runtime rt(options());
  constexpr unsigned n = slow ? 12 : 18;
  const std::uint64_t expected = slow ? 144 : 2584;
  EXPECT_EQ(fib(n), expected);
  EXPECT_EQ(on_pool(rt, [] { return fib(n); }), expected);
  std::promise<std::uint64_t> posted;
  rt.post([&] { posted.set_value(fib(n)); });
  rt.run();
  EXPECT_EQ(posted.get_future().get(), expected);
}

long chain(long depth) {
  if (depth == 0) return 0;
  const lazy rest([depth] { return chain(depth - 1); });
  return rest.get() + 1;
}

TEST_P(lazies, nest_as_deep_as_it_takes) {
  runtime rt(options());
  constexpr long depth = fewer(200'000, 20);
  EXPECT_EQ(chain(depth), depth);
  EXPECT_EQ(on_pool(rt, [] { return chain(depth); }), depth);
}

TEST_P(lazies, that_want_themselves_are_deadlocks) {
  runtime rt(options());
  struct both {
    std::optional<lazy<int>> one, two;
  };
  auto shared = std::make_shared<both>();
  shared->one.emplace([shared] { return shared->two->get() + 1; });
  shared->two.emplace([shared] { return shared->one->get() + 1; });
  EXPECT_THROW(shared->one->get(), deadlock);
  EXPECT_THROW(shared->two->get(), deadlock);
  shared->one.reset();
  shared->two.reset();
}

// Each of two threads has begun a lazy and wants the one that the other thread has begun.
TEST_P(lazies, of_two_threads_that_want_each_other_are_deadlocks) {
  runtime rt(options());
  for (int round = 0; round < fewer(50, 5); ++round) {
    std::optional<lazy<int>> one, two;
    std::atomic<int> begun{0};
    const auto meet = [&] {
      ++begun;
      while (begun.load() < 2) std::this_thread::yield();
    };
    one.emplace([&] { return meet(), two->get() + 1; });
    two.emplace([&] { return meet(), one->get() + 1; });
    auto other = std::async(std::launch::async, [&] { EXPECT_THROW(two->get(), deadlock); });
    EXPECT_THROW(one->get(), deadlock);
    other.get();
  }
}

TEST_P(lazies, a_handler_awaits_them_and_does_not_get_them) {
  struct reader {
    int get(lazy<int> wanted) { return wanted.get(); }
    task<int> await(lazy<int> wanted) { co_return co_await wanted + 1; }
  };
  runtime rt(options());
  auto one = rt.spawn<reader>();
  auto refused = one.ask<&reader::get>(lazy<int>([] { return 1; }));
  auto given = one.ask<&reader::await>(lazy<int>([] { return 41; }));
  rt.run();
  EXPECT_THROW(refused.get(), usage_error);
  EXPECT_EQ(given.get(), 42);
}

TEST_P(lazies, a_scope_says_what_becomes_of_those_nobody_wants) {
  runtime rt(options());
  std::atomic<int> ran{0};
  auto held = std::make_shared<int>(0);
  {
    lazy_scope drops;
    lazy unwanted_one([&, held] { ++ran; });
    lazy_scope runs(unwanted::run);
    lazy wanted_one([&, held] { ran += 10; });
  }
  rt.run();
  EXPECT_EQ(ran.load(), 10);
  EXPECT_EQ(held.use_count(), 1);
}

// The scope also runs lazies whose last handle had gone before the thread wanted another lazy.
TEST_P(lazies, a_scope_that_runs_what_nobody_wants_runs_what_nobody_can_want) {
  runtime rt(options());
  std::atomic<int> ran{0};
  const auto make = [&ran](int n) { lazy gone([&ran, n] { ran += n; }); };
  const auto want = [](bool newest) {
    lazy older([] { return 1; });
    lazy newer([] { return 1; });
    EXPECT_EQ(newest ? newer.get() : older.get(), 1);
  };
  make(1000);
  {
    lazy_scope runs(unwanted::run);
    make(1);
    want(true);
    make(10);
    want(false);
    {
      lazy_scope drops;
      make(1000);
      want(true);
    }
    make(100);
    want(true);
  }
  make(1000);
  want(true);
  rt.run();
  EXPECT_EQ(ran, 111);
}

// A scope leaves out the lazies that other lazies and works make: they may refer to objects that
// those destroy, and it is chance which thread runs those.
TEST_P(lazies, that_others_made_meanwhile_are_none_of_a_scopes) {
  for (const bool serial : {false, true}) {
    auto chosen = options();
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    std::atomic<int> ran{0};
    {
      lazy_scope runs(unwanted::run);
      lazy sum([&ran] {
        lazy gone([&ran] { ++ran; });
        return 1;
      });
      EXPECT_EQ(sum.get(), 1);
      auto works = [](std::atomic<int>& count) -> work<int> {
        lazy gone([&count] { ++count; });
        co_return 1;
      };
      EXPECT_EQ(works(ran).get(), 1);
      lazy unwanted_one([&ran] {
        ran += 100;
        lazy gone([&ran] { ++ran; });
      });
      lazy own([&ran] {
        lazy_scope inner(unwanted::run);
        lazy gone([&ran] { ran += 10; });
      });
    }
    rt.run();
    EXPECT_EQ(ran, 110);
  }
}

TEST_P(lazies, that_nobody_can_get_report_what_they_throw) {
  for (const bool serial : {false, true}) {
    auto chosen = options();
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    const auto fails = []() -> int { throw std::runtime_error("unheard"); };
    {
      lazy_scope runs(unwanted::run);
      lazy unwanted_one(fails);
    }
    EXPECT_THROW(rt.run(), std::runtime_error);
    EXPECT_EQ(rt.thrown().method, "lazy");
    std::optional<lazy<int>> kept;
    {
      lazy_scope runs(unwanted::run);
      kept.emplace(fails);
    }
    rt.run();  // a thread that has the handle may get the exception
    EXPECT_THROW(kept->get(), std::runtime_error);
  }
}

TEST_P(lazies, that_lose_their_last_handle_while_they_run_report_what_they_throw) {
  if (!threaded()) return;
  runtime rt(options());
  std::latch begun(1), go(1);
  std::optional<lazy<int>> one;
  one.emplace([&]() -> int {
    begun.count_down();
    go.wait();
    throw std::runtime_error("unheard");
  });
  lazy other([] { return 1; });
  EXPECT_EQ(other.get(), 1);
  begun.wait();
  one.reset();
  go.count_down();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(rt.thrown().method, "lazy");
}

TEST_P(lazies, of_serial_mode_are_counted) {
  auto chosen = options();
  chosen.serial_lazies = true;
  runtime rt(chosen);
  auto wants = []() -> task<> {
    for (int i = 0; i < 10; ++i) {
      lazy one([] { return 1; });
      co_await one;
    }
  };
  rt.spawn(wants());
  rt.run();
  {
    lazy_scope runs(unwanted::run);
    lazy unwanted_one([] { return 1; });
  }
  EXPECT_EQ(rt.metrics().total.lazies, 11u);
}

struct wants_at_its_end {
  explicit wants_at_its_end(lazy<int> wanted) : last(std::move(wanted)) {}
  wants_at_its_end(const wants_at_its_end&) = delete;
  ~wants_at_its_end() { last.get(); }
  lazy<int> last;
};

// The list of pending lazies changes while it is submitted.
TEST_P(lazies, that_are_dropped_may_hold_what_wants_others) {
  runtime rt(options());
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> runs{0};
    const auto counts = [&runs] { return ++runs; };
    auto ends = std::make_shared<wants_at_its_end>(lazy(counts));
    std::vector<lazy<int>> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(counts);
    {
      lazy unwanted_one([ends] { return 1; });
    }
    ends.reset();
    for (int i = 0; i < 5; ++i) all.emplace_back(counts);
    all[round % 2 == 0 ? 9 : 5].get();
    for (auto& one : all) one.get();
    ASSERT_EQ(runs.load(), 11);
  }
  EXPECT_EQ(rt.metrics().lazies_dropped, 200u);
}

// A lazy to which only unwanted lazies refer is dropped, too. Otherwise it would run, and no code
// would see its exception.
TEST_P(lazies, that_only_unwanted_ones_hold_are_dropped_with_them) {
  runtime rt(options());
  std::atomic<int> ran{0};
  {
    lazy inner([&ran]() -> int {
      ++ran;
      throw std::runtime_error("nobody wanted it");
    });
    lazy middle([inner] { return inner.get(); });
    lazy outer([middle] { return middle.get(); });
  }
  lazy wanted([] { return 1; });
  EXPECT_EQ(wanted.get(), 1);
  rt.run();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(rt.metrics().lazies_dropped, 3u);
}

// A lazy whose last handle goes is dropped at once, whether or not its thread ever wants another
// one.
TEST_P(lazies, that_nobody_can_want_go_at_once) {
  for (const bool serial : {false, true}) {
    auto chosen = options();
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    auto held = std::make_shared<int>(0);
    {
      lazy inner([held] { return *held; });
      lazy outer([inner] { return inner.get(); });
      lazy copy = outer;
    }
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(rt.metrics().lazies_dropped, 2u);
    std::optional<lazy<long>> last;
    for (long i = 0; i < fewer(200'000); ++i) {
      const auto next = [before = std::exchange(last, {}), i] {
        return before ? before->get() + i : i;
      };
      last.emplace(next);
    }
    last.reset();
    EXPECT_EQ(rt.metrics().lazies_dropped, 2u + static_cast<unsigned>(fewer(200'000)));
  }
}

// The thread only makes lazies, for others.
TEST_P(lazies, that_others_let_go_of_do_not_stay_with_their_maker) {
  runtime rt(options());
  std::async(std::launch::async, [] {
    auto held = std::make_shared<int>(1);
    for (int round = 0; round < 100; ++round) {
      std::vector<lazy<int>> given;
      for (int i = 0; i < 100; ++i) given.emplace_back([held] { return *held; });
      std::async(std::launch::async, [theirs = std::move(given)]() mutable {
        theirs.clear();
      }).get();
      ASSERT_LE(held.use_count(), 2'000);
    }
  }).get();
}

TEST_P(lazies, scopes_are_refused_in_coroutines) {
  runtime rt(options());
  auto opens = []() -> task<> {
    lazy_scope here(unwanted::run);
    co_await yield();
  };
  auto works = []() -> work<> {
    lazy_scope here;
    co_return;
  };
  auto in_task = rt.spawn(opens());
  EXPECT_THROW(works().get(), usage_error);
  rt.run();
  EXPECT_THROW(in_task.get(), usage_error);
  const lazy fine([] {
    lazy_scope here;
    return 1;
  });
  auto through = [](lazy<int> inner) -> work<int> { co_return inner.get(); };
  EXPECT_EQ(through(fine).get(), 1);
}

TEST_P(lazies, what_a_function_captured_goes_when_it_has_run) {
  runtime rt(options());
  auto held = std::make_shared<int>(7);
  lazy value([held] { return *held; });
  EXPECT_EQ(value.get(), 7);
  EXPECT_EQ(held.use_count(), 1);
  value.release();
  EXPECT_THROW(value.get(), usage_error);
}

// The thread that made the lazy has it in a list or in a queue until it looks there again.
TEST_P(lazies, a_value_goes_with_the_last_handle_though_its_maker_still_keeps_the_job) {
  for (const bool submitted : {false, true}) {
    auto chosen = options();
    chosen.steal_lazies = submitted;
    runtime rt(chosen);
    std::vector<lazy<std::shared_ptr<int>>> all;
    for (int i = 0; i < 20; ++i) all.emplace_back([i] { return std::make_shared<int>(i); });
    if (submitted) {
      const lazy first([] { return 1; });
      EXPECT_EQ(first.get(), 1);
    }
    std::vector<std::weak_ptr<int>> values(all.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&values, t, mine = all]() mutable {
        for (std::size_t i = t; i < mine.size(); i += 2) values[i] = mine[i].get();
        for (auto& one : mine) one.release();
      });
    }
    for (auto& one : threads) one.join();
    if (submitted) rt.run();
    for (auto& one : all) one.release();
    for (const auto& one : values) EXPECT_TRUE(one.expired());
    rt.run();
    EXPECT_EQ(rt.metrics().lazies_dropped, 0u);
  }
}

static_assert(std::is_nothrow_default_constructible_v<lazy<int>> &&
              std::is_nothrow_default_constructible_v<lazy<void>>);
static_assert(!std::is_convertible_v<lazy<int>, bool> &&
              std::is_constructible_v<bool, const lazy<int>&>);

TEST_P(lazies, are_empty_until_they_are_assigned) {
  runtime rt(options());
  std::vector<lazy<std::string>> texts(3);
  for (const auto& one : texts) {
    EXPECT_FALSE(one.valid());
    EXPECT_FALSE(one);
    EXPECT_FALSE(one.ready());
    EXPECT_THROW(one.get(), usage_error);
    EXPECT_THROW(one.begin(), usage_error);
    EXPECT_FALSE(lazy<std::string>(one).valid());
  }
  texts[0] = lazy([] { return std::string("zero"); });
  texts[1] = texts[0];
  EXPECT_TRUE(texts[1] && texts[1].valid() && !texts[1].ready());
  EXPECT_EQ(&texts[1].get(), &texts[0].get());
  texts[2] = std::move(texts[0]);
  EXPECT_FALSE(texts[0].valid());
  EXPECT_EQ(texts[2].get(), "zero");
  texts[2].release();
  texts[1] = {};
  EXPECT_TRUE(!texts[2].valid() && !texts[1].valid());
  texts[1].release();

  auto reads = [](lazy<> wanted) -> task<> { co_await wanted; };
  EXPECT_THROW(on_pool(rt, [] { return lazy<bool>().get(); }), usage_error);
  auto refused = rt.spawn(reads(lazy<>()));
  rt.run();
  EXPECT_THROW(refused.get(), usage_error);
  try {
    lazy<int>().get();
    FAIL() << "an empty lazy gave a value";
  } catch (const usage_error& said) {
    EXPECT_NE(std::string(said.what()).find("troupe: lazy: it is empty"), std::string::npos)
        << said.what();
  }
}

TEST_P(lazies, that_are_empty_may_be_members_of_an_actor) {
  runtime rt(options());
  struct keeper {
    void keep(lazy<int> given) { last = std::move(given); }
    task<int> value() {
      if (!last) co_return -1;
      co_return co_await last;
    }
    lazy<int> last;
  };
  auto one = rt.spawn<keeper>();
  auto before = one.ask<&keeper::value>();
  one.tell<&keeper::keep>(lazy<int>([] { return 7; }));
  auto after = one.ask<&keeper::value>();
  rt.run();
  EXPECT_EQ(before.get(), -1);
  EXPECT_EQ(after.get(), 7);
}

static_assert(std::ranges::range<lazy<std::vector<int>>> &&
              std::ranges::random_access_range<const lazy<std::string>>);
static_assert(!std::ranges::range<lazy<int>> && !std::ranges::range<lazy<void>> &&
              !std::ranges::range<lazy<lazy<int>>>);

TEST_P(lazies, are_ranges_when_their_values_are_and_functions_become_parallel) {
  runtime rt(options());
  const auto squares = parallel([](int n) {
    std::vector<int> all;
    for (int i = 0; i < n; ++i) all.push_back(i * i);
    return all;
  });
  int sum = 0;
  for (const int one : squares(5)) sum += one;
  EXPECT_EQ(sum, 30);
}

// Random graphs: each node adds the values of some older ones. Several threads and tasks want them
// at once.
TEST_P(lazies, of_any_graph_run_once_each) {
  // Under `./test --deep` 10,000 graphs are simulated, each with a seed of its own, and as many run
  // on threads.
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr && !slow;
  const int rounds = deep ? threaded() ? 1'250 : 3'400 : fewer(60, 6);
  std::mt19937_64 random(GetParam().seed * 7919 + workers());
  for (int round = 0; round < rounds; ++round) {
    auto chosen = options();
    chosen.seed += 100 * static_cast<std::uint64_t>(round);
    runtime rt(chosen);
    const std::size_t size = 1 + random() % 60;
    std::vector<std::atomic<int>> ran(size);
    std::vector<std::uint64_t> expected;
    std::vector<lazy<std::uint64_t>> nodes;
    for (std::size_t i = 0; i < size; ++i) {
      std::vector<lazy<std::uint64_t>> wants;
      std::uint64_t sum = i + 1;
      for (std::size_t k = random() % 4; i != 0 && k-- > 0;) {
        const std::size_t older = random() % i;
        wants.push_back(nodes[older]);
        sum += expected[older];
      }
      expected.push_back(sum);
      nodes.emplace_back([&ran, i, wants = std::move(wants)] {
        ++ran[i];
        std::uint64_t value = i + 1;
        for (const auto& one : wants) value += one.get();
        return value;
      });
    }
    auto reads = [](lazy<std::uint64_t> wanted) -> task<std::uint64_t> {
      co_return co_await wanted;
    };
    std::vector<future<std::uint64_t>> tasks;
    for (std::size_t i = 0; i < 5; ++i) tasks.push_back(rt.spawn(reads(nodes[random() % size])));
    std::vector<std::future<void>> threads;
    for (int t = 0; t < 2; ++t) {
      threads.push_back(std::async(std::launch::async, [&nodes, &expected, at = random() % size] {
        EXPECT_EQ(nodes[at].get(), expected[at]);
      }));
    }
    for (std::size_t i = size; i-- > 0;) ASSERT_EQ(nodes[i].get(), expected[i]);
    for (auto& one : threads) one.get();
    rt.run();
    for (auto& one : ran) ASSERT_EQ(one.load(), 1);
  }
}

TEST(lazies_alone, run_in_the_thread_that_wants_them_without_a_runtime) {
  EXPECT_EQ(fib(10), 55u);
  EXPECT_EQ(chain(fewer(50'000, 20)), fewer(50'000, 20));
}

TEST_P(lazies, wanted_by_outside_threads_while_the_pool_is_busy) {
  runtime rt(options());
  std::vector<std::future<std::uint64_t>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::async(std::launch::async, [&rt, this] {
      std::promise<std::uint64_t> from_pool;
      const std::uint64_t here = fib(12);
      rt.post([&] { from_pool.set_value(fib(12)); });
      if (!threaded()) return here;
      EXPECT_EQ(from_pool.get_future().get(), here);
      return here;
    }));
  }
  if (!threaded()) {
    for (auto& one : all) one.wait();
  }
  for (auto& one : all) EXPECT_EQ(one.get(), 144u);
}

TROUPE_TEST_EACH(lazies, all_settings);

}  // namespace
}  // namespace troupe::test
