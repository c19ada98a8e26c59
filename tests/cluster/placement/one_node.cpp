// What a node is told by its placement.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/leases/memory_leases.hpp"
#include "cluster/placement/placement.hpp"
#include "support/conformance.hpp"
#include "troupe/database/error.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using troupe::cluster::forever;
using troupe::cluster::held_shard;
using troupe::cluster::memory_leases;
using troupe::cluster::placement;
using troupe::cluster::placement_options;
using troupe::cluster::shard_count;

// A node that remembers what it was told.
struct told_node {
  told_node(runtime& rt, const memory_leases& leases, std::string id,
            const placement_options& chosen, std::chrono::nanoseconds drain_takes = 10ms)
      : at(rt, leases.store(), "shop", {std::move(id), "some"}, chosen, hooks(drain_takes)) {}

  placement::hooks hooks(std::chrono::nanoseconds drain_takes) {
    placement::hooks told;
    told.gained = [this](const auto& shards) {
      for (const auto& [shard, fence] : shards) {
        EXPECT_TRUE(at.is_mine(shard));
        EXPECT_EQ(at.fence(shard), fence);
        mine.insert(shard);
      }
    };
    told.lost = [this](const auto& shards) {
      for (const std::uint32_t shard : shards) {
        EXPECT_FALSE(at.is_mine(shard));
        mine.erase(shard);
        ++lost;
      }
    };
    told.drain = [this, drain_takes](std::vector<held_shard> shards, placement::release released) {
      return drain(std::move(shards), std::move(released), drain_takes);
    };
    told.members = [this](const auto& all) { members = all.size(); };
    told.changed = [this] { ++changes; };
    return told;
  }
  // `rests_early` of them are at rest at once.
  task<> drain(std::vector<held_shard> shards, placement::release released,
               std::chrono::nanoseconds takes) {
    std::vector<held_shard> early;
    while (early.size() < rests_early && !shards.empty()) {
      early.push_back(shards.back());
      shards.pop_back();
    }
    hand_over(early);
    released(early);
    co_await sleep_for(takes);
    for (const held_shard& one : early) EXPECT_FALSE(at.is_mine(one.shard));
    hand_over(shards);
  }
  void hand_over(const std::vector<held_shard>& shards) {
    for (const held_shard& one : shards) {
      EXPECT_TRUE(at.is_mine(one.shard));
      mine.erase(one.shard);
      ++drained;
    }
  }

  std::set<std::uint32_t> mine;
  std::size_t lost = 0, drained = 0, members = 0, rests_early = 0, changes = 0;
  placement at;
};

template <class Test>
void simulate(Test test) {
  runtime rt({.policy = policy::simulated, .seed = 1});
  future<> done = rt.spawn(test(rt));
  rt.run();
  done.get();
}
std::size_t free_shards(const memory_leases& leases) {
  std::size_t count = 0;
  for (const auto& row : leases.shards()) count += row.owner.empty() ? 1u : 0u;
  return count;
}
placement_options with_lease(std::chrono::milliseconds lease) {
  placement_options chosen;
  chosen.lease = lease;
  return chosen;
}

TEST(placement, a_node_alone_has_all_and_keeps_no_program_alive) {
  for (const bool stops : {false, true}) {
    simulate([stops](runtime& rt) -> task<> {
      const memory_leases leases;
      auto node = std::make_unique<told_node>(rt, leases, "a", with_lease(forever));
      auto starts = node->at.start();
      co_await std::move(starts);
      EXPECT_EQ(node->mine.size(), shard_count);
      co_await sleep_for(std::chrono::hours(24 * 365));
      EXPECT_TRUE(node->at.is_mine(1'023));
      EXPECT_FALSE(node->at.is_mine(1'024));
      EXPECT_EQ(node->at.owner(5)->id, "a");
      EXPECT_EQ(node->at.counts().renewals, 2u);
      if (!stops) co_return;
      auto ends = node->at.stop(1s);
      co_await std::move(ends);
      EXPECT_EQ(node->drained, shard_count);
      EXPECT_FALSE(node->at.is_mine(5));
      EXPECT_EQ(free_shards(leases), shard_count);
      EXPECT_TRUE(leases.members().empty());
    });
  }
}

TEST(placement, what_is_told_when_another_comes_and_goes) {
  simulate([](runtime& rt) -> task<> {
    const memory_leases leases;
    told_node a(rt, leases, "a", with_lease(6s)), b(rt, leases, "b", with_lease(6s));
    auto starts = a.at.start();
    co_await std::move(starts);
    EXPECT_EQ(a.mine.size(), shard_count);
    EXPECT_EQ(a.members, 1u);
    auto starts_too = b.at.start();
    co_await std::move(starts_too);
    co_await sleep_for(6s);
    EXPECT_EQ(a.mine.size(), shard_count / 2);
    EXPECT_EQ(a.drained, shard_count / 2);
    EXPECT_EQ(b.mine.size(), shard_count / 2);
    EXPECT_EQ(a.members, 2u);
    EXPECT_EQ(a.at.owner(*b.mine.begin())->id, "b");
    EXPECT_EQ(b.at.owner(*a.mine.begin())->id, "a");
    auto ends = a.at.stop(1s);
    co_await std::move(ends);
    EXPECT_TRUE(a.mine.empty());
    EXPECT_EQ(a.lost, 0u);
    EXPECT_GE(a.changes, 3u);
    co_await sleep_for(3s);
    EXPECT_EQ(b.mine.size(), shard_count);
    EXPECT_EQ(b.members, 1u);
    b.at.kill();
    EXPECT_FALSE(b.at.is_mine(5));
    EXPECT_EQ(b.lost, 0u);
    EXPECT_EQ(free_shards(leases), 0u);
  });
}

TEST(placement, what_is_at_rest_goes_before_the_rest_of_the_drain) {
  simulate([](runtime& rt) -> task<> {
    const memory_leases leases;
    told_node a(rt, leases, "a", with_lease(6s), 5s), b(rt, leases, "b", with_lease(6s));
    auto starts = a.at.start();
    co_await std::move(starts);
    a.rests_early = 300;
    auto starts_too = b.at.start();
    co_await std::move(starts_too);
    a.at.hurry();
    co_await sleep_for(4s);
    EXPECT_EQ(a.mine.size(), shard_count - 300);
    EXPECT_EQ(b.mine.size(), 300u);
    co_await sleep_for(6s);
    EXPECT_EQ(b.mine.size(), shard_count / 2);
    EXPECT_EQ(a.lost, 0u);
    a.at.kill();
    b.at.kill();
  });
}

TEST(placement, what_is_not_drained_in_time_is_given_up) {
  simulate([](runtime& rt) -> task<> {
    const memory_leases leases;
    placement_options chosen = with_lease(6s);
    chosen.drain_max = 1s;
    told_node a(rt, leases, "a", chosen, 1h), b(rt, leases, "b", chosen);
    auto starts = a.at.start();
    co_await std::move(starts);
    auto starts_too = b.at.start();
    co_await std::move(starts_too);
    a.at.hurry();
    co_await sleep_for(900ms);
    EXPECT_EQ(a.mine.size(), shard_count);
    EXPECT_TRUE(b.mine.empty());
    co_await sleep_for(3s);
    EXPECT_EQ(a.lost, shard_count / 2);
    EXPECT_EQ(b.mine.size(), shard_count / 2);
    // A stop has its own limit.
    const auto began = troupe::now();
    auto ends = a.at.stop(200ms);
    co_await std::move(ends);
    EXPECT_LE(troupe::now() - began, 300ms);
    EXPECT_EQ(a.lost, shard_count);
    EXPECT_EQ(leases.members().size(), 1u);
    b.at.kill();
  });
}

TEST(placement, a_store_that_is_away_ends_the_leases_and_no_stop) {
  simulate([](runtime& rt) -> task<> {
    const memory_leases leases;
    told_node a(rt, leases, "a", with_lease(6s));
    auto starts = a.at.start();
    co_await std::move(starts);
    leases.set_away(true);
    co_await sleep_for(5'399ms - 2'000ms);
    EXPECT_EQ(a.mine.size(), shard_count);
    co_await sleep_for(2s + 100ms);
    EXPECT_EQ(a.lost, shard_count);
    EXPECT_FALSE(a.at.is_mine(5));
    EXPECT_GE(a.at.counts().failures, 5u);
    EXPECT_EQ(a.at.counts().lost, shard_count);
    EXPECT_NE(a.at.counts().last_failure.find("in memory"), std::string::npos);
    leases.set_away(false);
    co_await sleep_for(1s);
    EXPECT_EQ(a.mine.size(), shard_count);
    EXPECT_EQ(a.at.fence(5), 3u);  // taken, taken away, taken again
    leases.set_away(true);
    const auto began = troupe::now();
    auto ends = a.at.stop(1s);
    co_await std::move(ends);
    EXPECT_LE(troupe::now() - began, 2s);
    EXPECT_EQ(a.drained, shard_count);
    EXPECT_FALSE(a.at.is_mine(5));
  });
}

TEST(placement, a_start_that_fails_says_why) {
  simulate([](runtime& rt) -> task<> {
    const memory_leases leases;
    leases.set_away(true);
    told_node a(rt, leases, "a", with_lease(6s));
    std::optional<database::failure> failed;
    auto starts = a.at.start();
    try {
      co_await std::move(starts);
    } catch (const database::error& why) {
      failed = why.kind();
    }
    EXPECT_EQ(failed, database::failure::unreachable);
    auto ends = a.at.stop(1s);
    co_await std::move(ends);
    EXPECT_FALSE(a.at.is_mine(0));
  });
}

TEST(placement, options_that_make_no_sense_are_refused) {
  runtime rt({.policy = policy::simulated});
  const memory_leases leases;
  const auto refused = [&](std::chrono::milliseconds lease, std::chrono::milliseconds margin) {
    placement_options chosen = with_lease(lease);
    chosen.margin = margin;
    EXPECT_THROW(placement(rt, leases.store(), "shop", {"a", "some"}, chosen, {}), option_error);
  };
  refused(99ms, 1ms);
  refused(1s, 500ms);
  refused(1s, -1ms);
}

}  // namespace
}  // namespace troupe::test
