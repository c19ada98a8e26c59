// Shards of durable actors that go to another node while handlers or loads of their actors are
// under way, one case each. tests/durable/shards_simulation.cpp has the same under seeds.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "durable/engine/engine.hpp"
#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/task/timer.hpp"

// Not in an anonymous namespace: g++ 12 merges the tags of methods of such classes of several
// files.
namespace troupe::test::shards {

using namespace std::chrono_literals;

// How often the database is said to fail when an actor is made, and how long the next handler
// waits.
inline int makes_that_fail = 0;
inline std::chrono::milliseconds next_wait{0};

inline int first_count() {
  if (makes_that_fail == 0) return 0;
  --makes_that_fail;
  throw database::error(database::failure::busy, 0, "not now", database::rule::other,
                        database::effect::none);
}

// Counts what it was told.
struct Tally {
  int count = first_count();

  void add() { ++count; }
  int add_here() { return ++count; }
  // Asks another one, the first time after a pause.
  task<int> add_at(durable::turn& turn, std::string to) {
    co_await sleep_for(std::exchange(next_wait, 0ms));
    auto asked = turn.ask<&Tally::add_here>(to);
    co_return co_await std::move(asked);
  }
  task<int> add_over(durable::turn& turn, std::string over, std::string to) {
    co_await sleep_for(std::exchange(next_wait, 0ms));
    auto asked = turn.ask<&Tally::add_at>(over, to);
    co_return co_await std::move(asked);
  }
  int get() const { return count; }
};

inline auto tallies() {
  return durable::kind<Tally, &Tally::add, &Tally::add_here, &Tally::add_at, &Tally::add_over,
                       &Tally::get>();
}

namespace {

using durable::held_shard;
using durable::stored_message;
using durable::parts::engine;

// Two nodes. The last character of a key is the number of its shard.
class two_nodes {
 public:
  explicit two_nodes(runtime& rt) : rt_(rt) {}

  task<> open() {
    for (int node = 0; node < 2; ++node) {
      const auto is_mine = [this, node](const held_shard& one) { return owns(node, one); };
      auto made =
          std::make_shared<engine>(rt_, db_.storage_of_node(is_mine), durable::options(),
                                   std::vector{tallies()}, std::make_shared<scope>(*this, node));
      auto opens = made->open();
      co_await std::move(opens);
      engines_.push_back(std::move(made));
    }
  }
  // The node that had it is not told.
  void give(std::uint32_t shard, int node) {
    leases_[shard] = {node, leases_[shard].fence + 1};
    engine_of(node).gained({{shard, leases_[shard].fence}});
  }
  engine& engine_of(int node) { return *engines_[static_cast<std::size_t>(node)]; }

  template <auto Method, class... Args>
  task<durable::bytes> send(int node, std::string to, std::string id, durable::origin from,
                            Args... args) {
    stored_message what;
    what.from = from;
    what.id = id.empty() ? durable::message_id::random() : durable::message_id::of(id);
    what.named = !id.empty();
    what.to = {"Tally", std::move(to)};
    const auto of = durable::parts::entry_of<Method>();
    what.method = of.name;
    what.signature = of.signature;
    what.arguments =
        durable::parts::encode_arguments<durable::parts::method_of<decltype(Method)>>(args...);
    auto delivers = engine_of(node).deliver(std::move(what));
    co_return co_await std::move(delivers);
  }
  task<> post_add(int node, std::string to) {
    auto posts = send<&Tally::add>(node, std::move(to), "", durable::origin::post);
    co_await std::move(posts);
  }
  task<int> count(int node, std::string of) {
    auto asks = send<&Tally::get>(node, std::move(of), "", durable::origin::ask);
    const durable::bytes found = co_await std::move(asks);
    co_return durable::decode<int>(found);
  }

 private:
  struct lease {
    int node = -1;
    std::uint64_t fence = 0;
  };
  class scope final : public durable::parts::shard_scope {
   public:
    scope(two_nodes& of, int node) : of_(of), node_(node) {}
    std::uint32_t shard_of(std::string_view, std::string_view key) const noexcept override {
      return static_cast<std::uint32_t>(key.back() - '0');
    }
    bool acts_for(const held_shard& one) const noexcept override { return of_.owns(node_, one); }
    task<durable::bytes> forward(stored_message what) override {
      const std::uint32_t shard = shard_of("", what.to.key);
      auto delivers = of_.engine_of(of_.leases_[shard].node).deliver(std::move(what));
      co_return co_await std::move(delivers);
    }
    task<bool> waits_for(durable::parts::cycle_question what) override {
      const std::uint32_t shard = shard_of("", what.to.key);
      return engine::waits_for(of_.engines_[static_cast<std::size_t>(of_.leases_[shard].node)],
                               std::move(what));
    }

   private:
    two_nodes& of_;
    const int node_;
  };
  bool owns(int node, const held_shard& one) const {
    return leases_[one.shard].node == node && leases_[one.shard].fence == one.fence;
  }

  runtime& rt_;
  durable::simulated_database db_;
  std::array<lease, 3> leases_;
  std::vector<std::shared_ptr<engine>> engines_;
};

template <class T>
T run_simulated(const std::function<task<T>(two_nodes&)>& what) {
  runtime rt({.policy = policy::simulated, .seed = 1});
  two_nodes nodes(rt);
  future<T> result = rt.spawn(what(nodes));
  rt.run();
  return result.get();
}

// The node waits before it loads an actor once more, and loses the shard meanwhile. What it would
// load then is out of date when the shard is back.
task<int> loads_again_after_the_loss(two_nodes& nodes) {
  auto opens = nodes.open();
  co_await std::move(opens);
  nodes.give(0, 0);
  co_await sleep_for(1ms);
  makes_that_fail = 1;
  auto first = nodes.post_add(0, "a0");
  co_await std::move(first);
  co_await sleep_for(10ms);
  EXPECT_EQ(makes_that_fail, 0);
  nodes.engine_of(0).lost({0});
  nodes.give(0, 1);
  co_await sleep_for(1s);  // the other node has handled the message
  auto second = nodes.post_add(1, "a0");
  co_await std::move(second);
  co_await sleep_for(1s);
  nodes.engine_of(1).lost({0});
  nodes.give(0, 0);
  co_await sleep_for(1s);
  auto third = nodes.post_add(0, "a0");
  co_await std::move(third);
  auto counts = nodes.count(0, "a0");
  co_return co_await std::move(counts);
}
TEST(durable_moves, what_is_loaded_after_its_shard_was_lost_is_not_used_when_it_is_back) {
  EXPECT_EQ(run_simulated<int>(loads_again_after_the_loss), 3);
}

// A handler waits; its shard goes to another node, which handles its message and has asked for
// everything when the handler here goes on, and asks actors that are here.
template <auto Method, class... Args>
task<std::pair<int, int>> asks_after_the_loss(two_nodes& nodes, Args... args) {
  auto opens = nodes.open();
  co_await std::move(opens);
  for (std::uint32_t shard = 0; shard < 3; ++shard) nodes.give(shard, 0);
  co_await sleep_for(1ms);
  next_wait = 1s;
  auto posts = nodes.send<Method>(0, "a0", "once", durable::origin::post, args...);
  co_await std::move(posts);
  co_await sleep_for(10ms);
  EXPECT_EQ(next_wait, 0s);
  nodes.give(0, 1);
  co_await sleep_for(500ms);
  auto early = nodes.count(0, "c2");
  const int before = co_await std::move(early);
  co_await sleep_for(10s);
  auto late = nodes.count(0, "c2");
  const int after = co_await std::move(late);
  co_return std::pair(before, after);
}
TEST(durable_moves, what_a_handler_asks_here_after_its_shard_was_lost_has_no_effect) {
  const auto found = run_simulated<std::pair<int, int>>([](two_nodes& nodes) {
    return asks_after_the_loss<&Tally::add_at>(nodes, std::string("c2"));
  });
  EXPECT_EQ(found, std::pair(1, 1));
}
TEST(durable_moves, nor_has_what_the_asked_one_asks) {
  const auto found = run_simulated<std::pair<int, int>>([](two_nodes& nodes) {
    return asks_after_the_loss<&Tally::add_over>(nodes, std::string("b1"), std::string("c2"));
  });
  EXPECT_EQ(found, std::pair(1, 1));
}

}  // namespace
}  // namespace troupe::test::shards
