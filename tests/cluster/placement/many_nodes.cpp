// What each of many nodes asks of the store: the same, however many there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/placement/memory_leases.hpp"
#include "cluster/placement/placement.hpp"
#include "support/conformance.hpp"

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
  std::size_t renewals = 0, changes = 0, rows = 0, member_rows = 0;
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
    co_await sleep_for(15s);
    expect_balance();
    const auto now = static_cast<double>(nodes_.size());
    std::cout << count_ << " nodes, one more: " << all_.changes << " changes, "
              << static_cast<double>(all_.rows) / now << " rows of shards and "
              << static_cast<double>(all_.member_rows) / now << " of members for each node\n";
    // Joins, takes; and each that has one too many hands it over, and the new one takes it.
    EXPECT_LE(all_.changes, 2 + 2 * (shard_count / count_ + 1));
    for (auto& one : nodes_) one->kill();
  }

 private:
  task<> add() {
    placement::hooks told;
    const std::string id = "node " + std::to_string(nodes_.size());
    nodes_.push_back(
        std::make_unique<placement>(rt_, std::make_unique<counting>(leases_.store(), all_), "shop",
                                    troupe::cluster::member_row{id, "some"},
                                    troupe::cluster::placement_options(), std::move(told)));
    return nodes_.back()->start();
  }
  void expect_balance() const {
    std::size_t least = shard_count, most = 0;
    for (const auto& one : nodes_) {
      std::size_t has = 0;
      for (std::uint32_t i = 0; i < shard_count; ++i) has += one->is_mine(i) ? 1u : 0u;
      least = std::min(least, has);
      most = std::max(most, has);
    }
    EXPECT_LE(most - least, 1u);
  }

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

}  // namespace
}  // namespace troupe::test
