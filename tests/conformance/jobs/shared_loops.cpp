// shared_for and shared_reduce: each call runs once, on any thread. Calls that are left go to idle
// workers, also late and at depth. Also errors, stops, and the threads that may call them.
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "conformance/jobs/on_pool.hpp"
#include "support/conformance.hpp"
#include "support/counted.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

class shared_loops : public conformance {};

template <class Function>
work<> as_work(Function function) {
  function();
  co_return;
}

// Calls the function in the main thread, an outside thread, a posted procedure, a lazy and a work.
template <class Function>
void from_everywhere(runtime& rt, const Function& function) {
  function();
  std::thread(function).join();
  rt.post([&] { function(); });
  rt.run();
  lazy([&] { function(); }).get();
  on_pool(rt, as_work([&] { function(); }));
}

TEST_P(shared_loops, call_each_element_and_each_number_once) {
  runtime rt(options());
  from_everywhere(rt, [] {
    for (const std::size_t size : {0u, 1u, 2u, 15u, 16u, 17u, 1'000u}) {
      std::vector<std::atomic<int>> calls(size);
      shared_for(calls, [](std::atomic<int>& one) { ++one; });
      shared_for(std::span(calls), [](std::atomic<int>& one) { ++one; });
      shared_for(std::size_t{0}, size, [&](std::size_t i) { ++calls[i]; });
      for (const auto& one : calls) ASSERT_EQ(one.load(), 3);
    }
    shared_for(5, -5, [](int) { FAIL(); });
    std::atomic<long> sum{0};
    shared_for(-100, 101, [&](int i) { sum += i + 1; });
    EXPECT_EQ(sum.load(), 201);
    constexpr int most = std::numeric_limits<int>::max();
    EXPECT_EQ(shared_reduce(most - 3, most, 0L), 3L * most - 6);
  });
}

TEST_P(shared_loops, without_a_runtime_are_plain_loops) {
  EXPECT_EQ(shared_reduce(0, 100, 0, std::plus(), [](int i) { return shared_reduce(0, i, 0); }),
            161'700);
}

// The calls of a tree of loops whose shape the seed decides; each node is called once.
struct random_tree {
  explicit random_tree(std::uint64_t with) : seed(with) {}
  std::uint64_t next(std::uint64_t of) const {
    std::uint64_t x = (seed + of) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 27);
  }
  unsigned below(std::uint64_t node, int depth) const {
    return depth == 0 ? 0 : static_cast<unsigned>(next(node) % 7);
  }
  std::string serial(std::uint64_t node, int depth) const {
    std::string all = std::to_string(node % 10);
    for (unsigned i = 0; i < below(node, depth); ++i) all += serial(node * 8 + i, depth - 1);
    return all;
  }
  // String concatenation is associative, but not commutative.
  std::string shared(std::uint64_t node, int depth) const {
    if (next(node + 1) % 64 == 0) busy_for(std::chrono::microseconds(20));
    return shared_reduce(0u, below(node, depth), std::to_string(node % 10), std::plus(),
                         [&](unsigned i) { return shared(node * 8 + i, depth - 1); });
  }
  std::uint64_t seed;
};

TEST_P(shared_loops, of_random_trees_come_to_what_serial_ones_do) {
  runtime rt(options());
  for (int seed = 0; seed < fewer(100, 10); ++seed) {
    const random_tree tree(static_cast<std::uint64_t>(seed));
    const std::string serial = tree.serial(1, 7);
    ASSERT_EQ(tree.shared(1, 7), serial) << "seed " << seed;
    if (seed % 4 == 0) {
      auto whole = [](const random_tree& of) -> work<std::string> { co_return of.shared(1, 7); };
      auto both = [&](const random_tree& of) -> work<std::string> {
        auto [one, two] = co_await fork(whole(of), whole(of));
        co_return one + two;
      };
      ASSERT_EQ(on_pool(rt, both(tree)), serial + serial) << "seed " << seed;
    }
  }
}

// Under this policy no other thread takes a part, and a loop takes back the parts that it gave away
// in their order.
TEST_P(shared_loops, of_the_simulated_policy_run_in_their_order) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy";
  runtime rt(options());
  std::vector<int> order;
  shared_for(0, 10, [&](int i) { shared_for(0, 10, [&](int j) { order.push_back(10 * i + j); }); });
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

// Nests loops down to the bottom. All remaining calls then lie in the chain of loops above it.
template <class Bottom, class Side>
void chain(int depth, const Bottom& bottom, const Side& side) {
  if (depth == 0) return bottom();
  shared_for(0, 2, [&](int i) { i == 0 ? chain(depth - 1, bottom, side) : side(); });
}

// The loop can end only if another thread takes one of the remaining calls, though that thread has
// slept for a while.
TEST_P(shared_loops,
       are_shared_with_a_thread_that_has_nothing_to_do_late_and_deep_in_an_unbalanced_tree) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  for (const int depth : {1, 10, 300}) {
    for (int round = 0; round < 3; ++round) {
      std::atomic<int> taken{0};
      const auto here = std::this_thread::get_id();
      const auto side = [&] { taken += std::this_thread::get_id() == here ? 0 : 1; };
      chain(
          depth,
          [&] {
            busy_for(std::chrono::milliseconds(3));  // by now every idle worker sleeps
            while (taken == 0)
              shared_for(0, 4, [](int) { busy_for(std::chrono::microseconds(1)); });
          },
          side);
      EXPECT_GE(taken.load(), 1);
    }
  }
}

// As many threads as exist meet in one loop: a part that one of them has taken is divided again.
TEST_P(shared_loops, are_divided_on_by_those_who_have_taken_some) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  const int threads = static_cast<int>(workers()) + 1;
  static int tests = 0;
  const int id = ++tests;
  std::atomic<int> met{0};
  shared_for(0, 64, [&](int) {
    thread_local int counted_in = 0;
    if (std::exchange(counted_in, id) != id) ++met;
    while (met < threads) shared_for(0, 4, [](int) { busy_for(std::chrono::microseconds(1)); });
  });
  EXPECT_EQ(met.load(), threads);
}

// If calls for other workers were in vain, further calls become rare. A call that was left out must
// be made up for later.
TEST_P(shared_loops, are_shared_though_many_that_were_over_at_once_went_before) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  for (int round = 0; round < fewer(20, 4); ++round) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (std::chrono::steady_clock::now() < until) shared_for(0, 2, [](int) {});
    std::atomic<bool> other_runs{false};
    shared_for(
        0, 2, [&](int i) { i == 0 ? wait_for(other_runs, true) : set_and_wake(other_runs, true); });
  }
}

// The first of two calls sleeps until the second has begun. Its thread then takes part in the loop
// that the second call begins.
TEST_P(shared_loops, a_thread_that_waits_for_what_it_gave_helps_with_it) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime_options one = options();
  one.workers = 1;
  runtime rt(one);
  const auto here = std::this_thread::get_id();
  for (int round = 0; round < fewer(20, 4); ++round) {
    std::atomic<bool> other_runs{false}, helped{false};
    shared_for(0, 2, [&](int i) {
      if (i == 0) return wait_for(other_runs, true);
      set_and_wake(other_runs, true);
      // By now the first call has ended, and its thread sleeps.
      busy_for(std::chrono::milliseconds(1));
      shared_for(0, 100, [&](int) {
        if (std::this_thread::get_id() == here) helped = true;
        for (int n = 0; n < 1'000 && !helped; ++n)
          shared_for(0, 4, [](int) { busy_for(std::chrono::microseconds(1)); });
      });
    });
    EXPECT_TRUE(helped.load());
  }
}

// Of its leaves, 4 to the power of `depth`, the one with this number fails.
void fail_somewhere(int depth, int number, int fails, std::atomic<int>& calls) {
  const counted here;
  ++calls;
  if (depth == 0) {
    if (number == fails) throw std::runtime_error("a leaf");
    return busy_for(std::chrono::microseconds(2));
  }
  shared_for(0, 4, [&](int i) { fail_somewhere(depth - 1, number * 4 + i, fails, calls); });
}

TEST_P(shared_loops, throw_what_a_call_has_thrown) {
  runtime rt(options());
  for (int round = 0; round < fewer(30); ++round) {
    std::atomic<int> calls{0};
    const int leaves = 4 * 4 * 4 * 4 * 4;
    const int fails = round == 0 ? leaves : (round - 1) * 35;  // the first round fails nowhere
    const auto run = [&] { fail_somewhere(5, 0, fails, calls); };
    bool failed = false;
    try {
      run();
    } catch (const std::runtime_error& error) {
      failed = std::string(error.what()) == "a leaf";
    }
    EXPECT_EQ(live.load(), 0) << "nothing runs on";
    EXPECT_EQ(failed, round != 0);
    EXPECT_TRUE(failed || calls.load() >= leaves);
    bool failed_there = false;
    try {
      on_pool(rt, as_work(run));
    } catch (const std::runtime_error&) {
      failed_there = true;
    }
    EXPECT_EQ(failed_there, failed);
    EXPECT_EQ(live.load(), 0);
  }
}

// Whichever call throws, in this thread or in another one, the other calls end soon.
TEST_P(shared_loops, that_fail_are_cancelled_as_a_whole) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  for (const bool here_fails : {false, true}) {
    std::atomic<bool> both{false};
    const auto here = std::this_thread::get_id();
    const auto endless = [] {
      for (;;) shared_for(0, 4, [](int) { busy_for(std::chrono::microseconds(1)); });
    };
    const auto body = [&](int) {
      if ((std::this_thread::get_id() == here) == here_fails) {
        if (!here_fails) both = true;
        while (!both) shared_for(0, 4, [](int) {});
        throw std::runtime_error("this one");
      }
      if (here_fails) both = true;
      endless();
    };
    try {
      shared_for(0, 8, body);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "this one");
    }
  }
}

// Throws in one of its moves.
struct throws_when_moved {
  explicit throws_when_moved(long value) : number(value) {}
  throws_when_moved(throws_when_moved&& other) : number(other.number) { step(); }
  throws_when_moved& operator=(throws_when_moved&& other) {
    number = other.number;
    step();
    return *this;
  }
  static void step() {
    if (moves_left == 0) throw std::runtime_error("moved");
    --moves_left;
  }
  long number;
  static inline thread_local long moves_left = 1'000'000'000;
};

TEST_P(shared_loops, whose_sum_throws_when_it_is_moved_are_left) {
  runtime rt(options());
  constexpr int numbers = 50, moves_max = 500;
  constexpr long unlimited = 1'000'000'000;
  const auto add = [](throws_when_moved a, throws_when_moved b) {
    return throws_when_moved(a.number + b.number);
  };
  const auto number = [](int i) {
    busy_for(std::chrono::microseconds(2));
    return throws_when_moved(i);
  };
  for (int moves = 0; moves < moves_max; ++moves) {
    shared_for(0, 1, [&](int) {
      const void* const before = jobs::loops_here.innermost;
      throws_when_moved::moves_left = unlimited;
      try {
        throws_when_moved none(0);
        throws_when_moved::moves_left = moves;
        EXPECT_EQ(shared_reduce(0, numbers, std::move(none), add, number).number,
                  numbers * (numbers - 1) / 2);
      } catch (const std::runtime_error&) {
      }
      throws_when_moved::moves_left = unlimited;
      EXPECT_EQ(jobs::loops_here.innermost, before) << "after " << moves << " moves";
    });
  }
}

// A failure within one call is only that call's, if it catches the exception.
TEST_P(shared_loops, go_on_where_a_call_catches) {
  runtime rt(options());
  std::atomic<int> caught{0}, went_on{0};
  shared_for(0, 50, [&](int) {
    try {
      shared_for(0, 20, [&](int j) {
        busy_for(std::chrono::microseconds(2));
        if (j == 11) throw std::runtime_error("within");
      });
    } catch (const std::runtime_error&) {
      ++caught;
    }
    shared_for(0, 20, [&](int) { ++went_on; });
  });
  EXPECT_EQ(caught.load(), 50);
  EXPECT_EQ(went_on.load(), 1'000);
}

// Other threads share the lazy, and their loops have not failed.
TEST_P(shared_loops, a_lazy_in_a_loop_that_is_cancelled_is_not) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  for (int round = 0; round < fewer(20, 4); ++round) {
    const lazy value([] {
      return shared_reduce(0, 300, 0, std::plus(),
                           [](int i) { return busy_for(std::chrono::microseconds(2)), i; });
    });
    std::atomic<bool> wants{false};
    EXPECT_THROW(shared_for(0, 2,
                            [&](int i) {
                              if (i == 0) {
                                while (!wants) shared_for(0, 4, [](int) {});
                                throw std::runtime_error("beside");
                              }
                              wants = true;
                              value.get();
                            }),
                 std::runtime_error);
    EXPECT_EQ(value.get(), 44'850);
  }
}

TEST_P(shared_loops, are_refused_in_a_handler_and_awaited_there_in_a_work) {
  struct computes {
    void at_once() {
      shared_for(0, 3, [](int) {});
    }
    task<int> later() {
      auto sum = []() -> work<int> { co_return shared_reduce(0, 1'000, 0); };
      co_return co_await sum();
    }
  };
  runtime rt(options());
  auto one = rt.spawn<computes>();
  auto refused = one.ask<&computes::at_once>();
  auto given = one.ask<&computes::later>();
  rt.run();
  EXPECT_THROW(refused.get(), usage_error);
  EXPECT_EQ(given.get(), 499'500);
}

TEST_P(shared_loops, without_stealing_and_in_serial_mode_give_the_same) {
  for (const bool serial : {false, true}) {
    runtime_options chosen = options();
    chosen.steal_lazies = false;
    chosen.serial_lazies = serial;
    runtime rt(chosen);
    from_everywhere(rt, [] {
      const auto here = std::this_thread::get_id();
      std::vector<int> order;
      shared_for(0, 100, [&](int i) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        order.push_back(i);
        busy_for(std::chrono::microseconds(1));
      });
      EXPECT_TRUE(std::ranges::is_sorted(order));
    });
  }
}

TEST_P(shared_loops, are_cancelled_by_a_stop_that_discards) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  std::atomic<bool> running{false};
  auto endless = [](std::atomic<bool>& begun) -> work<> {
    for (;;) {
      set_and_wake(begun, true);
      shared_for(0, 10, [](int) { busy_for(std::chrono::microseconds(5)); });
    }
    co_return;
  };
  auto wants = [&](std::atomic<bool>& begun) -> task<> { co_await endless(begun); };
  auto answer = rt.spawn(wants(running));
  std::thread stopper([&] {
    wait_for(running, true);
    rt.stop(stop_mode::discard);
  });
  rt.run();
  stopper.join();
  EXPECT_THROW(answer.get(), cancelled);
}

// Loops, forks and lazies within each other, on few threads: each thread waits only for what it
// needs.
TEST_P(shared_loops, in_forks_and_lazies_and_around_them_end) {
  runtime rt(options());
  auto twice = [](int n) -> work<int> {
    co_return shared_reduce(0, n, 0, std::plus(),
                            [](int i) { return busy_for(std::chrono::microseconds(1)), i; });
  };
  auto forked = [&](int n) -> work<int> {
    auto [one, two] = co_await fork(twice(n), twice(n));
    co_return one + two;
  };
  from_everywhere(rt, [&] {
    const int sum = shared_reduce(0, 12, 0, std::plus(), [&](int i) {
      const lazy below([&] {
        return shared_reduce(0, 10, 0, std::plus(), [&](int j) { return forked(i + j).get(); });
      });
      const lazy beside([&] { return twice(i).get(); });
      return below.get() + beside.get();
    });
    int expected = 0;
    for (int i = 0; i < 12; ++i) {
      for (int j = 0; j < 10; ++j) expected += (i + j) * (i + j - 1);
      expected += i * (i - 1) / 2;
    }
    EXPECT_EQ(sum, expected);
  });
}

}  // namespace

TROUPE_TEST_EACH(shared_loops, all_settings);

}  // namespace troupe::test
