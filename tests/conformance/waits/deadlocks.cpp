// Cycles of waits through lazies, forks and loops: one of the waits gets an error that names the
// chain, whichever threads run the cycle, and no other wait does.
#include <cstdlib>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class deadlocks : public conformance {};

using number = lazy<std::uint64_t>;

template <class Wants>
std::string chain_of(const Wants& wants) {
  try {
    static_cast<void>(wants());
  } catch (const deadlock& error) {
    return error.what();
  }
  return "no deadlock";
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

work<std::uint64_t> gets(const number& of) { co_return of.get(); }
work<std::uint64_t> nothing() { co_return 0; }
work<std::uint64_t> both(work<std::uint64_t> one, work<std::uint64_t> two) {
  auto [a, b] = co_await fork(std::move(one), std::move(two));
  co_return a + b;
}
task<std::uint64_t> awaits(number of) { co_return co_await of; }

struct knot {
  std::optional<number> one, two;
};

TEST_P(deadlocks, of_a_lazy_whose_fork_wants_it_are_found) {
  runtime rt(options());
  knot of;
  of.one.emplace([&of] { return both(nothing(), both(nothing(), gets(*of.one))).get(); });
  const std::string chain = chain_of([&] { return of.one->get(); });
  EXPECT_TRUE(has(chain, "wants a fork wants")) << chain;
  of.two.emplace([&of] {
    std::vector<int> all(20);
    parallel_for(all, [&of](int& each) { each = static_cast<int>(of.two->get()); }, {.grain = 1})
        .get();
    return std::uint64_t{1};
  });
  auto answer = rt.spawn(awaits(*of.two));
  rt.run();
  EXPECT_THROW(answer.get(), deadlock);
}

TEST_P(deadlocks, through_lazies_and_forks_are_found_where_a_task_awaits_them) {
  runtime rt(options());
  for (int round = 0; round < fewer(40, 8); ++round) {
    knot of;
    of.one.emplace([&of] { return both(both(nothing(), gets(*of.two)), nothing()).get(); });
    of.two.emplace([&of] {
      std::vector<std::uint64_t> all(4);
      parallel_for(all, [&of](std::uint64_t& each) { each = of.one->get(); }, {.grain = 1}).get();
      return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
    });
    auto one = rt.spawn(awaits(*of.one)), two = rt.spawn(awaits(*of.two));
    std::future<void> outside;
    if (threaded())
      outside = std::async(std::launch::async, [&] { EXPECT_THROW(of.two->get(), deadlock); });
    EXPECT_THROW(of.one->get(), deadlock);
    rt.run();
    EXPECT_THROW(one.get(), deadlock);
    EXPECT_THROW(two.get(), deadlock);
    if (outside.valid()) outside.get();
  }
}

// The thread that began the fork may be the last one to sleep. It cannot leave the fork, so the
// other thread is told.
TEST_P(deadlocks, of_a_part_that_another_thread_has_taken_are_found) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  const auto stays = [](std::atomic<bool>& until) -> work<std::uint64_t> {
    while (!until.load()) co_await nothing();
    co_return 0;
  };
  const auto taken = [](std::atomic<bool>& begun, const number& of) -> work<std::uint64_t> {
    begun = true;
    co_return of.get();
  };
  for (int round = 0; round < fewer(40, 8); ++round) {
    knot of;
    std::atomic<bool> begun{false};
    of.one.emplace(
        [&] { return fork(stays(begun), taken(begun, *of.one)).get(), std::uint64_t{1}; });
    const std::string chain = chain_of([&] { return of.one->get(); });
    EXPECT_TRUE(has(chain, "wants a fork wants")) << chain;
  }
}

TEST_P(deadlocks, of_two_threads_and_their_forks_are_found) {
  runtime rt(options());
  for (int round = 0; round < fewer(40, 8); ++round) {
    knot of;
    std::atomic<int> begun{0};
    const auto meets = [&begun](std::optional<number>& other) {
      ++begun;
      while (begun.load() < 2) std::this_thread::yield();
      return both(gets(*other), nothing()).get();
    };
    of.one.emplace([&] { return meets(of.two); });
    of.two.emplace([&] { return meets(of.one); });
    auto other = std::async(std::launch::async, [&] { EXPECT_THROW(of.two->get(), deadlock); });
    EXPECT_THROW(of.one->get(), deadlock);
    other.get();
  }
}

// Several parts wait for the same lazy: each of them is told.
TEST_P(deadlocks, of_many_parts_are_found) {
  runtime rt(options());
  for (int round = 0; round < fewer(20, 4); ++round) {
    knot of;
    of.one.emplace([&of] {
      std::vector<work<std::uint64_t>> parts;
      for (int i = 0; i < 20; ++i) {
        auto caught = [](const number& wanted) -> work<std::uint64_t> {
          try {
            co_return wanted.get();
          } catch (const deadlock&) {
            co_return 1;
          }
        };
        parts.push_back(caught(*of.one));
      }
      const std::vector<std::uint64_t> all = fork(std::move(parts)).get();
      return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
    });
    EXPECT_EQ(of.one->get(), 20u);
  }
}

// Random graphs with and without cycles: a node that leads to a cycle gets `deadlock`, and no
// other node does.
struct graph {
  std::vector<std::vector<unsigned>> wants;
  std::vector<std::uint64_t> value;  // of the nodes that do not lead to a cycle
  std::vector<std::uint8_t> state;   // 2: good, 3: leads to a cycle
  std::vector<std::optional<number>> nodes;

  // Finds the good nodes: those that want only good nodes. All others lead to a cycle.
  void solve() {
    const std::size_t size = wants.size();
    value.assign(size, 0);
    state.assign(size, 3);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < size; ++i) {
        if (state[i] == 2) continue;
        std::uint64_t sum = i + 1;
        bool good = true;
        for (const unsigned one : wants[i]) {
          good = good && state[one] == 2;
          sum += value[one];
        }
        if (!good) continue;
        state[i] = 2;
        value[i] = sum;
        more = true;
      }
    }
  }
  std::uint64_t compute(std::size_t i, unsigned how) {
    std::uint64_t sum = i + 1;
    if (how == 0 || wants[i].empty()) {
      for (const unsigned one : wants[i]) sum += nodes[one]->get();
    } else if (how == 1) {
      std::vector<work<std::uint64_t>> parts;
      for (const unsigned one : wants[i]) parts.push_back(both(nothing(), gets(*nodes[one])));
      for (const std::uint64_t each : fork(std::move(parts)).get()) sum += each;
    } else {
      std::atomic<std::uint64_t> all{0};
      parallel_for(wants[i], [&](unsigned one) { all += nodes[one]->get(); }, {.grain = 1}).get();
      sum += all;
    }
    return sum;
  }
  void check(std::size_t i) {
    if (state[i] == 2) {
      EXPECT_EQ(nodes[i]->get(), value[i]);
    } else {
      EXPECT_THROW(nodes[i]->get(), deadlock);
    }
  }
};

TEST_P(deadlocks, of_any_graph_are_found_and_no_others) {
  // Under `./test --deep` 10,000 graphs are simulated, each with a seed of its own, and as many run
  // on threads.
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr && !slow;
  const int rounds = deep ? threaded() ? 1'250 : 3'400 : fewer(120, 8);
  std::mt19937_64 random(GetParam().seed * 6007 + workers());
  for (int round = 0; round < rounds; ++round) {
    auto chosen = options();
    chosen.seed += 100 * static_cast<std::uint64_t>(round);
    runtime rt(chosen);
    graph of;
    const std::size_t size = 2 + random() % 12, edges = random() % 20;
    of.wants.resize(size);
    for (std::size_t e = 0; e < edges; ++e) {
      std::size_t from = random() % size, to = random() % size;
      if (from < to && random() % 4 != 0) std::swap(from, to);
      of.wants[from].push_back(static_cast<unsigned>(to));
    }
    of.solve();
    of.nodes.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      of.nodes[i].emplace(
          [&of, i, how = static_cast<unsigned>(random() % 3)] { return of.compute(i, how); });
    }
    std::vector<std::pair<std::size_t, future<std::uint64_t>>> tasks;
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random() % size;
      tasks.emplace_back(at, rt.spawn(awaits(*of.nodes[at])));
    }
    std::vector<std::future<void>> threads;
    for (int t = 0; t < 2; ++t) {
      threads.push_back(std::async(std::launch::async, [&of, from = random() % size, size] {
        for (std::size_t i = 0; i < size; ++i) of.check((from + i) % size);
      }));
    }
    for (std::size_t i = size; i-- > 0;) of.check(i);
    for (auto& one : threads) one.get();
    rt.run();
    for (auto& [at, answer] : tasks) {
      if (of.state[at] == 2) {
        EXPECT_EQ(answer.get(), of.value[at]);
      } else {
        EXPECT_THROW(answer.get(), deadlock);
      }
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

}  // namespace

TROUPE_TEST_EACH(deadlocks, all_settings);

}  // namespace troupe::test
