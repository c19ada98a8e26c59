// What each of many nodes asks of the store: the same, however many there are. And how keys, shards
// and hints are spread among them. docs/decisions/placement.md has the numbers for 1,000 nodes and
// 10^8 keys, which TROUPE_DEEP=1 prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/leases/memory_leases.hpp"
#include "cluster/placement/placement.hpp"
#include "support/conformance.hpp"
#include "troupe/cluster/calls.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using troupe::cluster::lease_store;
using troupe::cluster::lease_view;
using troupe::cluster::memory_leases;
using troupe::cluster::placement;
using troupe::cluster::renewal;
using troupe::cluster::shard_count;

struct asked {
  std::size_t renewals = 0, changes = 0, rows = 0, member_rows = 0, hints = 0;
};

class counting final : public lease_store {
 public:
  counting(std::unique_ptr<lease_store> over, asked& all) : over_(std::move(over)), all_(all) {}
  task<> open(std::string name) override { return over_->open(std::move(name)); }
  task<lease_view> renew(renewal what) override {
    auto asks = over_->renew(std::move(what));
    lease_view view = co_await std::move(asks);
    ++all_.renewals;
    all_.changes += view.has_changed ? 1u : 0u;
    all_.rows += view.changed.size();
    all_.member_rows += view.members ? view.members->size() : 0u;
    co_return view;
  }

 private:
  const std::unique_ptr<lease_store> over_;
  asked& all_;
};

class many {
 public:
  many(runtime& rt, std::size_t count) : rt_(rt), count_(count) {}

  task<> run() {
    for (std::size_t i = 0; i < count_; ++i) {
      auto adds = add();
      co_await std::move(adds);
    }
    co_await sleep_for(60s);
    expect_balance();
    constexpr int seconds = 20;
    all_ = {};
    co_await sleep_for(std::chrono::seconds(seconds));
    const double each =
        static_cast<double>(all_.renewals) / static_cast<double>(seconds * nodes_.size());
    std::cout << count_ << " nodes, calm: " << each << " renewals in a second for each node\n";
    // One in a third of a lease, less up to a tenth of it.
    EXPECT_GE(each, 0.45);
    EXPECT_LE(each, 0.60);
    EXPECT_EQ(all_.changes, 0u);
    EXPECT_EQ(all_.rows + all_.member_rows, 0u);

    all_ = {};
    auto adds = add();
    co_await std::move(adds);
    auto settles = settle("one more");
    co_await std::move(settles);
    // Joins, takes; and each that has one too many hands it over, and the new one takes it.
    EXPECT_LE(all_.changes, 2 + 2 * (shard_count / count_ + 1));

    all_ = {};
    nodes_.front()->kill();
    nodes_.erase(nodes_.begin());
    auto settles_again = settle("one has ended");
    co_await std::move(settles_again);
    // Its row is deleted, and each that has room takes some.
    EXPECT_LE(all_.changes, 2 + shard_count / count_ + 1);
    for (auto& one : nodes_) one->kill();
  }

 private:
  task<> add() {
    placement::hooks told;
    // As a node tells the others, over NATS.
    told.changed = [this] {
      ++all_.hints;
      for (auto& one : nodes_) one->hurry();
    };
    const std::string id = "node " + std::to_string(nodes_.size());
    nodes_.push_back(
        std::make_unique<placement>(rt_, std::make_unique<counting>(leases_.store(), all_), "shop",
                                    troupe::cluster::member_row{id, "some"},
                                    troupe::cluster::placement_options(), std::move(told)));
    return nodes_.back()->start();
  }
  task<> settle(const char* after) {
    const auto begun = now();
    while (!is_balanced() && now() - begun < 15s) co_await sleep_for(10ms);
    const auto took = std::chrono::duration<double>(now() - begun).count();
    co_await sleep_for(15s - (now() - begun));
    expect_balance();
    const auto each = [count = static_cast<double>(nodes_.size())](std::size_t of) {
      return static_cast<double>(of) / count;
    };
    std::cout << count_ << " nodes, " << after << ": " << all_.changes << " changes and "
              << all_.hints << " hints; for each node " << each(all_.renewals)
              << " renewals in 15 s, " << each(all_.rows) << " rows of shards and "
              << each(all_.member_rows) << " of members; shared after " << took << " s\n";
    // One in a third of a lease, and what hints add: all together some hundreds a second.
    EXPECT_LE(each(all_.renewals), 15 * 0.6 + 2 * static_cast<double>(all_.hints) + 2);
  }
  bool is_balanced() const {
    std::size_t least = shard_count, most = 0, all = 0;
    for (const auto& one : nodes_) {
      std::size_t has = 0;
      for (std::uint32_t i = 0; i < shard_count; ++i) has += one->is_mine(i) ? 1u : 0u;
      least = std::min(least, has);
      most = std::max(most, has);
      all += has;
    }
    return most - least <= 1 && all == shard_count;
  }
  void expect_balance() const { EXPECT_TRUE(is_balanced()); }

  runtime& rt_;
  const std::size_t count_;
  const memory_leases leases_;
  asked all_;
  std::vector<std::unique_ptr<placement>> nodes_;
};

void run_many(std::size_t count) {
  runtime rt({.policy = policy::simulated, .seed = 1});
  many nodes(rt, count);
  future<> done = rt.spawn(nodes.run());
  rt.run();
  done.get();
}

TEST(placement_of_many_nodes, each_asks_the_same_of_the_store) {
  run_many(10);
  run_many(slow ? 20 : 60);
  if (std::getenv("TROUPE_DEEP") != nullptr) run_many(1'000);
}

// A key is in the shard that its hash says: no node knows which keys there are.
TEST(placement_of_many_nodes, keys_are_spread_evenly_over_shards) {
  const bool deep = std::getenv("TROUPE_DEEP") != nullptr;
  const std::uint64_t keys = deep ? 100'000'000 : slow ? 100'000 : 1'000'000;
  std::vector<std::uint64_t> counts(shard_count);
  std::string key = "customer ";
  const std::size_t head = key.size();
  for (std::uint64_t i = 0; i < keys; ++i) {
    key.resize(head);
    key += std::to_string(i);
    ++counts[cluster::parts::shard_of("Cart", key)];
  }
  const auto [least, most] = std::ranges::minmax(counts);
  std::cout << keys << " keys: " << least << " to " << most << " in a shard\n";
  // Six times what chance would spread.
  const double part = static_cast<double>(keys) / shard_count, spread = 6 * std::sqrt(part);
  EXPECT_NEAR(static_cast<double>(least), part, spread);
  EXPECT_NEAR(static_cast<double>(most), part, spread);
}

}  // namespace
}  // namespace troupe::test
