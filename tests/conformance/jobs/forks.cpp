// Works and forks: they have the same values on any number of workers, from plain code, handlers
// and lazies. Also errors, cancelling and depth.
#include <chrono>
#include <future>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/jobs/on_pool.hpp"
#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

class forks : public conformance {
 protected:
  void TearDown() override {
    EXPECT_EQ(live.load(), 0);
    conformance::TearDown();
  }
};

work<long> fib(int n) {
  const counted here;
  if (n < 2) co_return n;
  auto [one, two] = co_await fork(fib(n - 1), fib(n - 2));
  co_return one + two;
}

constexpr int fib_n = slow ? 14 : 20;
constexpr long fib_value = slow ? 377 : 6765;

TEST_P(forks, give_the_same_from_plain_code_posted_procedures_lazies_and_tasks) {
  runtime rt(options());
  EXPECT_EQ(fib(fib_n).get(), fib_value);
  EXPECT_EQ(on_pool(rt, fib(fib_n)), fib_value);
  std::promise<long> posted;
  rt.post([&] { posted.set_value(fib(fib_n).get()); });
  const lazy wanted([] { return fib(fib_n).get(); });
  EXPECT_EQ(wanted.get(), fib_value);
  rt.run();
  EXPECT_EQ(posted.get_future().get(), fib_value);
}

TEST(forks_alone, run_in_the_calling_thread_without_a_runtime) {
  EXPECT_EQ(fib(10).get(), 55);
  EXPECT_EQ(live.load(), 0);
}

work<std::string> text(std::string of) { co_return of + "!"; }
work<> nothing(int& ran) {
  ++ran;
  co_return;
}
work<int&> refers(int& to) { co_return to; }
work<std::unique_ptr<int>> owned(int value) { co_return std::make_unique<int>(value); }

TEST_P(forks, give_values_of_every_kind) {
  runtime rt(options());
  int ran = 0, here = 7;
  auto all = [](int& count, int& place) -> work<std::string> {
    auto [one, unit, same, mine] =
        co_await fork(text("one"), nothing(count), refers(place), owned(5));
    static_assert(std::is_same_v<decltype(unit), std::monostate>);
    static_assert(std::is_same_v<decltype(same), int&>);
    same += *mine;
    co_await nothing(count);
    int& again = co_await refers(place);
    ++again;
    std::string two = co_await text(std::move(one));
    co_return two + std::to_string(place);
  };
  EXPECT_EQ(all(ran, here).get(), "one!!13");
  EXPECT_EQ(on_pool(rt, all(ran, here)), "one!!19");
  EXPECT_EQ(ran, 4);
  EXPECT_EQ(&refers(here).get(), &here);
  auto [a, b] = fork(text("a"), text("b")).get();
  EXPECT_EQ(a + b, "a!b!");
}

// If calls for other workers were in vain, further calls become rare. A call that was left out must
// be made up for later.
TEST_P(forks, are_shared_though_many_that_were_over_at_once_went_before) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  auto waits = [](std::atomic<bool>& other_runs) -> work<> {
    co_return wait_for(other_runs, true);
  };
  auto tells = [](std::atomic<bool>& other_runs) -> work<> {
    co_return set_and_wake(other_runs, true);
  };
  auto nothing = []() -> work<> { co_return; };
  for (int round = 0; round < fewer(20, 4); ++round) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (std::chrono::steady_clock::now() < until) fork(nothing(), nothing()).get();
    std::atomic<bool> other_runs{false};
    fork(waits(other_runs), tells(other_runs)).get();
  }
}

work<int> square(int n) { co_return n* n; }
work<int> squares(int count) {
  std::vector<work<int>> all;
  for (int n = 0; n < count; ++n) all.push_back(square(n));
  const std::vector<int> values = co_await fork(std::move(all));
  std::vector<work<int>> again;
  for (int n = 0; n < count; ++n) again.push_back(square(n));
  co_await fork(std::span(again));
  int sum = 0;
  for (int n = 0; n < count; ++n)
    sum += values[static_cast<std::size_t>(n)] - again[static_cast<std::size_t>(n)].take() + n;
  co_return sum;
}

TEST_P(forks, of_as_many_as_the_program_finds_out) {
  runtime rt(options());
  for (const int count : {0, 1, 2, 300, 1000}) {
    EXPECT_EQ(squares(count).get(), count * (count - 1) / 2);
    EXPECT_EQ(on_pool(rt, squares(count)), count * (count - 1) / 2);
  }
}

TEST_P(forks, leave_values_that_are_taken_where_they_are_and_where_they_were_moved_to) {
  runtime rt(options());
  auto text_of = [](int n) -> work<std::string> {
    co_return std::string(100, static_cast<char>('a' + n));
  };
  auto fails = []() -> work<std::string> {
    throw std::runtime_error("none");
    co_return "";
  };
  auto same = [](int& n) -> work<int&> { co_return n; };
  auto nothing = []() -> work<> { co_return; };
  const auto refused = [](auto& one) { EXPECT_THROW(static_cast<void>(one.take()), usage_error); };
  // take() is refused before the work has begun, and of a work that threw.
  std::vector<work<std::string>> all;
  all.push_back(text_of(0));
  refused(all[0]);
  all.push_back(fails());
  EXPECT_THROW(fork(std::span(all)).get(), std::runtime_error);
  refused(all[1]);
  // When the vector moves its works, their values move with them.
  all.clear();
  all.reserve(3);
  for (int n = 0; n < 3; ++n) all.push_back(text_of(n));
  fork(std::span(all)).get();
  all.reserve(all.capacity() + 1);
  all.erase(all.begin());
  std::swap(all[0], all[1]);
  EXPECT_EQ(all[1].take(), std::string(100, 'b'));
  work<std::string> other = std::move(all[0]);
  refused(all[0]);
  EXPECT_THROW(std::move(other).get(), usage_error);
  work<std::string>& itself = other;
  other = std::move(itself);
  EXPECT_EQ(other.take(), std::string(100, 'c'));
  other = text_of(3);
  refused(other);
  EXPECT_EQ(std::move(other).get(), std::string(100, 'd'));
  int number = 1;
  std::vector<work<int&>> references;
  references.push_back(same(number));
  fork(std::span(references)).get();
  work<int&> moved = std::move(references[0]);
  EXPECT_EQ(&moved.take(), &number);
  std::vector<work<>> nothings;
  nothings.push_back(nothing());
  refused(nothings[0]);
  fork(std::span(nothings)).get();
  work<> empty = std::move(nothings[0]);
  empty.take();
  refused(nothings[0]);
}

work<int> fails_at(int n, int at, std::atomic<int>& begun) {
  const counted here;
  ++begun;
  if (n == at) throw std::runtime_error("part " + std::to_string(n));
  co_return n;
}
work<int> fails_deep(int depth, std::atomic<int>& begun) {
  const counted here;
  ++begun;
  if (depth == 0) throw std::runtime_error("deep");
  auto [one, two] = co_await fork(fails_deep(depth - 1, begun), fails_deep(depth - 1, begun));
  co_return one + two;
}

TEST_P(forks, that_fail_throw_the_error_when_all_have_ended_and_begin_no_more) {
  runtime rt(options());
  std::atomic<int> begun{0};
  EXPECT_THROW(fork(fails_at(0, 0, begun), fails_at(1, 0, begun)).get(), std::runtime_error);
  EXPECT_THROW(on_pool(rt, fails_deep(slow ? 8 : 14, begun)), std::runtime_error);
  EXPECT_THROW(fails_deep(slow ? 8 : 14, begun).get(), std::runtime_error);
  EXPECT_EQ(live.load(), 0);
  begun = 0;
  auto caught = [](std::atomic<int>& count) -> work<std::string> {
    std::string what;
    try {
      co_await fork(fails_at(0, 0, count), fails_at(1, 0, count), fails_at(2, 0, count));
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    co_return what + std::to_string(co_await fib(5));  // this works as if nothing had failed
  };
  const std::string what = caught(begun).get();
  EXPECT_EQ(what, "part 05");
  if (!threaded()) {
    EXPECT_EQ(begun.load(), 1);
  }
}

work<> endless(std::atomic<bool>& running, std::atomic<int>& cancelled_ones) {
  const counted here;
  try {
    for (;;) {
      set_and_wake(running, true);
      co_await fork(square(1), square(2));
    }
  } catch (const cancelled&) {
    ++cancelled_ones;
    throw;
  }
}
work<> fails_beside(std::atomic<bool>& running) {
  while (!running.load()) co_await square(1);
  throw std::runtime_error("beside");
}

TEST_P(forks, that_fail_cancel_what_runs_beside) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers";
  runtime rt(options());
  std::atomic<bool> running{false};
  std::atomic<int> cancelled_ones{0};
  EXPECT_THROW(fork(endless(running, cancelled_ones), fails_beside(running)).get(),
               std::runtime_error);
  EXPECT_EQ(cancelled_ones.load(), 1);
}

// A work that forks at the end of a slice leaves its parts to a later visit. In between another
// part of the outer fork fails, so the parts are dropped. The work must not continue as if its
// parts were done.
struct failing_beside {
  std::atomic<bool> stolen{false}, forks{false}, fails{false}, went_on{false};

  work<> part(bool& done) {
    done = true;
    co_return;
  }
  work<> leaves_parts() {
    const counted here;
    while (!stolen.load()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // sleeps: the slice ends
    for (int i = 0; i < 1'000 && !fails.load(); ++i) {
      bool one = false, two = false;
      forks = true;
      co_await fork(part(one), part(two));
      if (!one || !two) went_on = true;
    }
  }
  work<> throws() {
    stolen = true;
    while (!fails.load()) std::this_thread::yield();
    throw std::runtime_error("beside");
    co_return;
  }
  work<> both() { co_await fork(leaves_parts(), throws()); }
  // Runs between the two visits, and holds the other worker meanwhile.
  task<> lets_fail() {
    while (!forks.load()) co_await yield();
    fails = true;
    // sleeps: until the other worker has seen that
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
};

TEST_P(forks, that_fail_let_nobody_go_on_behind_parts_that_were_dropped) {
  if (workers() != 2) GTEST_SKIP() << "needs two workers: one for each of two";
  for (int round = 0; round < 5; ++round) {
    failing_beside all;
    runtime rt(options());
    auto wants = [](work<> both) -> task<> { co_await std::move(both); };
    auto ended = rt.spawn(wants(all.both()));
    rt.spawn(all.lets_fail());
    rt.run();
    EXPECT_THROW(ended.get(), std::runtime_error);
    EXPECT_FALSE(all.went_on.load());
  }
}

work<long> down(long depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await down(depth - 1);
}
work<long> along(long steps) {
  long sum = 0;
  for (long i = 0; i < steps; ++i) sum += co_await square(1);
  co_return sum;
}
work<long> comb(long depth) {
  if (depth == 0) co_return 0;
  auto [one, two] = co_await fork(comb(depth - 1), square(1));
  co_return one + two;
}

TEST_P(forks, nest_and_follow_each_other_as_long_as_it_takes) {
  runtime rt(options());
  constexpr long many = slow ? 20'000 : 2'000'000 / 8;
  EXPECT_EQ(down(many).get(), many);
  EXPECT_EQ(on_pool(rt, down(many)), many);
  EXPECT_EQ(along(many).get(), many);
  EXPECT_EQ(on_pool(rt, along(many)), many);
  EXPECT_EQ(comb(many).get(), many);
  EXPECT_EQ(on_pool(rt, comb(many)), many);
}

TEST_P(forks, a_handler_awaits_them_and_does_not_get_them) {
  struct reader {
    long get(int n) { return fib(n).get(); }
    task<long> await(int n) { co_return co_await fib(n) + 1; }
    task<long> both(int n) {
      auto [one, two] = co_await fork(fib(n), fib(n));
      co_return one + two;
    }
  };
  runtime rt(options());
  auto one = rt.spawn<reader>();
  auto refused = one.ask<&reader::get>(5);
  auto given = one.ask<&reader::await>(fib_n);
  auto two = one.ask<&reader::both>(fib_n);
  rt.run();
  EXPECT_THROW(refused.get(), usage_error);
  EXPECT_EQ(given.get(), fib_value + 1);
  EXPECT_EQ(two.get(), 2 * fib_value);
}

TEST_P(forks, that_are_awaited_twice_are_refused) {
  runtime rt(options());
  auto two = fork(square(1), square(2));
  EXPECT_EQ(std::get<1>(std::move(two).get()), 4);
  EXPECT_THROW(static_cast<void>(std::move(two).get()), usage_error);
  std::vector<work<int>> works;
  works.push_back(square(3));
  auto first = fork(std::span(works)), second = fork(std::span(works));
  std::move(first).get();
  EXPECT_THROW(std::move(second).get(), usage_error);
  EXPECT_EQ(works[0].take(), 9);
  auto awaits = [](int& refused) -> work<> {
    auto one = fork(square(1));
    for (int i = 0; i < 2; ++i) {
      try {
        static_cast<void>(co_await std::move(one));
      } catch (const usage_error&) {
        ++refused;
      }
    }
  };
  int refused = 0;
  awaits(refused).get();
  on_pool(rt, awaits(refused));
  EXPECT_EQ(refused, 2);
}

// A leaf may block in another tree of its own, and in a lazy.
work<long> nests(int n) {
  if (n == 0) {
    const lazy inner([] { return fib(6).get(); });
    co_return fib(5).get() + inner.get();
  }
  auto [one, two] = co_await fork(nests(n - 1), nests(n - 1));
  co_return one + two;
}

TEST_P(forks, nest_in_each_other_and_in_lazies) {
  runtime rt(options());
  constexpr int depth = slow ? 5 : 8;
  EXPECT_EQ(nests(depth).get(), (5 + 8) << depth);
  EXPECT_EQ(on_pool(rt, nests(depth)), (5 + 8) << depth);
}

// Random trees, which several threads and tasks walk at once; each node runs once.
struct shape {
  std::vector<std::vector<unsigned>> parts;
  std::vector<std::atomic<int>> ran;
};
work<std::uint64_t> walk(shape& of, unsigned node) {
  const counted here;
  ++of.ran[node];
  std::vector<work<std::uint64_t>> parts;
  for (const unsigned part : of.parts[node]) parts.push_back(walk(of, part));
  std::uint64_t sum = node;
  for (const std::uint64_t each : co_await fork(std::move(parts))) sum += each;
  co_return sum;
}

TEST_P(forks, of_any_shape_run_each_part_once) {
  std::mt19937_64 random(GetParam().seed * 104729);
  for (int round = 0; round < fewer(60, 6); ++round) {
    runtime rt(options());
    const auto make = [&random] {
      auto made = std::make_unique<shape>();
      const unsigned size = 1 + static_cast<unsigned>(random() % 400);
      made->parts.resize(size);
      made->ran = std::vector<std::atomic<int>>(size);
      for (unsigned node = 1; node < size; ++node)
        made->parts[random() % std::min(node, 1 + static_cast<unsigned>(random() % size))]
            .push_back(node);
      return made;
    };
    const auto expected = [](const shape& of) {
      return of.parts.size() * (of.parts.size() - 1) / 2;
    };
    std::vector<std::unique_ptr<shape>> all;
    for (int i = 0; i < 6; ++i) all.push_back(make());
    auto wants = [](shape& of) -> task<std::uint64_t> { co_return co_await walk(of, 0); };
    auto one = rt.spawn(wants(*all[0])), two = rt.spawn(wants(*all[1]));
    std::vector<std::future<void>> threads;
    for (std::size_t t = 2; t < 5; ++t) {
      threads.push_back(std::async(
          std::launch::async, [&, t] { EXPECT_EQ(walk(*all[t], 0).get(), expected(*all[t])); }));
    }
    EXPECT_EQ(walk(*all[5], 0).get(), expected(*all[5]));
    for (auto& each : threads) each.get();
    rt.run();
    EXPECT_EQ(one.get(), expected(*all[0]));
    EXPECT_EQ(two.get(), expected(*all[1]));
    for (const auto& each : all) {
      for (const auto& ran : each->ran) ASSERT_EQ(ran.load(), 1);
    }
  }
}

TEST_P(forks, are_cancelled_with_the_actor_that_waits_for_them) {
  runtime rt(options());
  struct waiter {
    waiter(std::atomic<bool>& begun, std::atomic<int>& count) : running(begun), ended(count) {}
    task<> wait() { co_await endless(running, ended); }
    std::atomic<bool>& running;
    std::atomic<int>& ended;
  };
  std::atomic<bool> running{false};
  std::atomic<int> ended{0};
  auto one = rt.spawn<waiter>(running, ended);
  auto answer = one.ask<&waiter::wait>();
  if (threaded()) {
    wait_for(running, true);
    one.stop_now();
  } else {
    rt.post([one, &running] {
      static_cast<void>(running);
      one.stop_now();
    });
  }
  rt.run();
  EXPECT_THROW(answer.get(), actor_stopped);
  EXPECT_EQ(ended.load(), threaded() ? 1 : ended.load());
  EXPECT_EQ(live.load(), 0);
}

// A fork that a cancelled task makes is not begun, in serial mode neither.
TEST_P(forks, do_not_begin_in_a_task_that_was_cancelled) {
  for (const bool serial : {false, true}) {
    auto chosen = options();
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    struct waiter {
      explicit waiter(std::atomic<int>& count) : refused(count) {}
      task<> wait() {
        bool over = false;
        try {
          co_await sleep_for(std::chrono::hours(1));
        } catch (const cancelled&) {
          over = true;
        }
        if (!over) co_return;
        try {
          co_await fork(square(1), square(2));
        } catch (const cancelled&) {
          ++refused;
        }
      }
      std::atomic<int>& refused;
    };
    std::atomic<int> refused{0};
    auto one = rt.spawn<waiter>(refused);
    one.tell<&waiter::wait>();
    rt.after(std::chrono::milliseconds(5), [one] { one.stop(); });
    rt.run();
    EXPECT_EQ(refused.load(), 1) << serial;
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(forks, end_with_their_runtime) {
  std::atomic<bool> running{false};
  std::atomic<int> ended{0};
  {
    runtime rt(options());
    auto wants = [](std::atomic<bool>& begun, std::atomic<int>& count) -> task<> {
      co_await endless(begun, count);
    };
    rt.spawn(wants(running, ended));
    if (threaded()) wait_for(running, true);
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(forks, are_cancelled_by_a_stop_that_discards) {
  runtime rt(options());
  std::atomic<bool> running{false};
  std::atomic<int> ended{0};
  auto wants = [](std::atomic<bool>& begun, std::atomic<int>& count) -> task<> {
    co_await endless(begun, count);
  };
  auto answer = rt.spawn(wants(running, ended));
  std::thread stopper;
  if (threaded()) {
    stopper = std::thread([&] {
      wait_for(running, true);
      rt.stop(stop_mode::discard);
    });
  } else {
    auto stops = [](runtime& of, std::atomic<bool>& begun) -> task<> {
      while (!begun.load()) co_await yield();
      of.stop(stop_mode::discard);
    };
    rt.spawn(stops(rt, running));
  }
  rt.run();
  if (stopper.joinable()) stopper.join();
  EXPECT_THROW(answer.get(), cancelled);
}

// Other tasks have their turns beside a fork that never ends (P11), also with one worker.
TEST_P(forks, let_others_run) {
  runtime rt(options());
  std::atomic<bool> running{false};
  std::atomic<int> ended{0};
  auto wants = [](std::atomic<bool>& begun, std::atomic<int>& count) -> task<> {
    co_await endless(begun, count);
  };
  struct chatty {
    explicit chatty(runtime& to_stop) : of(to_stop) {}
    void say(ref<chatty> self, int left) {
      if (left == 0) return of.stop(stop_mode::discard);
      self.tell<&chatty::say>(self, left - 1);
    }
    runtime& of;
  };
  auto answer = rt.spawn(wants(running, ended));
  if (threaded()) wait_for(running, true);
  auto other = rt.spawn<chatty>(spawn_options{.turn = {1, std::chrono::microseconds(100)}}, rt);
  std::atomic<int> read{0};
  const lazy beside([] { return 3; });
  auto reads = [](lazy<int> wanted, ref<chatty> then, std::atomic<int>& value) -> task<> {
    value = co_await wanted;
    then.tell<&chatty::say>(then, 50);
  };
  rt.spawn(reads(beside, other, read));
  rt.run();
  EXPECT_THROW(answer.get(), cancelled);
  EXPECT_EQ(read.load(), 3);
}

TEST_P(forks, and_lazies_that_outlive_a_deadline_are_named) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  std::atomic<bool> running{false}, ends{false};
  const lazy stuck([&] {
    set_and_wake(running, true);
    wait_for(ends, true);
  });
  auto wants = [](lazy<void> of) -> task<> { co_await of; };
  rt.spawn(wants(stuck));
  wait_for(running, true);
  rt.stop(stop_mode::drain, std::chrono::milliseconds(1));
  try {
    rt.run();
    ADD_FAILURE() << "no deadline_error";
  } catch (const deadline_error& error) {
    EXPECT_NE(std::string(error.what()).find("lazies and forks: "), std::string::npos)
        << error.what();
  }
  EXPECT_NE(rt.dump().find("lazies and forks: "), std::string::npos);
  set_and_wake(ends, true);
  rt.run();
}

TEST_P(forks, lazies_that_a_posted_procedure_runs_itself_are_named_as_well) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  auto chosen = options();
  chosen.workers = 1;
  runtime rt(chosen);
  std::atomic<bool> running{false}, ends{false};
  rt.post([&] {
    const lazy inner([&] {
      set_and_wake(running, true);
      wait_for(ends, true);
    });
    inner.get();
  });
  wait_for(running, true);
  const std::string said = rt.dump();
  EXPECT_NE(said.find("post: "), std::string::npos) << said;
  set_and_wake(ends, true);
  rt.run();
  EXPECT_EQ(rt.dump().find("post: "), std::string::npos);
}

TEST_P(forks, without_stealing_and_in_serial_mode_give_the_same) {
  for (const bool serial : {false, true}) {
    auto chosen = options();
    chosen.steal_lazies = false;
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    EXPECT_EQ(fib(fib_n).get(), fib_value);
    EXPECT_EQ(on_pool(rt, fib(fib_n)), fib_value);
    EXPECT_EQ(on_pool(rt, nests(4)), 13 << 4);
    std::atomic<int> begun{0};
    EXPECT_THROW(on_pool(rt, fails_deep(6, begun)), std::runtime_error);
    if (serial) {
      const auto self = std::this_thread::get_id();
      auto asks = []() -> work<std::thread::id> {
        auto [one, two] = co_await fork(square(1), square(2));
        static_cast<void>(one + two);
        co_return std::this_thread::get_id();
      };
      EXPECT_EQ(asks().get(), self);
    }
  }
}

TEST_P(forks, that_nobody_awaits_are_dropped) {
  runtime rt(options());
  {
    auto captured = std::make_shared<int>(1);
    auto holds = [](std::shared_ptr<int> what) -> work<int> { co_return *what; };
    auto one = holds(captured);
    auto several = fork(holds(captured), holds(captured));
    EXPECT_EQ(captured.use_count(), 4);
    auto moved = std::move(one);
    EXPECT_EQ(std::move(moved).get(), 1);
    EXPECT_EQ(captured.use_count(), 3);
  }
}

}  // namespace

TROUPE_TEST_EACH(forks, all_settings);

}  // namespace troupe::test
