// Placement on threads and on PostgreSQL: nodes that end, a connection that hangs, a server that is
// killed.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/placement/placement.hpp"
#include "cluster/placement/places.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using troupe::cluster::placement;
using troupe::cluster::placement_options;
using troupe::cluster::shard_count;

struct seen_node {
  std::atomic<int> gained{0}, lost{0};
  std::atomic<std::uint64_t> fence_of_seven{0};
  std::unique_ptr<placement> at;

  std::size_t owned() const {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < shard_count; ++i) count += at->is_mine(i) ? 1u : 0u;
    return count;
  }
};

class placement_on_threads : public testing::Test {
 protected:
  using nodes = std::vector<std::unique_ptr<seen_node>>;

  void SetUp() override { place_ = make_memory_place(); }
  // Runs test(nodes) as a task, with so many nodes, which have started.
  template <class Test>
  void with(int count, std::chrono::milliseconds lease, Test test) {
    runtime rt({.workers = 2});
    const auto all = [&]() -> task<> {
      nodes made;
      for (int i = 0; i < count; ++i) {
        made.push_back(std::make_unique<seen_node>());
        auto starts = start(rt, *made.back(), "node " + std::to_string(i), lease);
        co_await std::move(starts);
      }
      for (auto& one : made) one->at->hurry();
      auto runs = test(made);
      co_await std::move(runs);
      for (auto& one : made) {
        co_await one->at->stop(5s);
      }
    };
    future<> done = rt.spawn(all());
    rt.run();
    done.get();
  }
  task<> start(runtime& rt, seen_node& one, std::string id, std::chrono::milliseconds lease) {
    placement_options chosen;
    chosen.lease = lease;
    chosen.margin = lease / 10;
    placement::hooks told;
    told.gained = [&one](const auto& shards) {
      one.gained += static_cast<int>(shards.size());
      for (const auto& [shard, fence] : shards) {
        if (shard == 7) one.fence_of_seven = fence;
      }
    };
    told.lost = [&one](const auto& shards) { one.lost += static_cast<int>(shards.size()); };
    one.at =
        std::make_unique<placement>(rt, place_(rt), "shop", troupe::cluster::member_row{id, "some"},
                                    std::move(chosen), std::move(told));
    return one.at->start();
  }
  // For as long as it takes; the time limit of the test ends it.
  static task<> until_owned(const seen_node& one, std::size_t least, std::size_t most) {
    for (std::size_t has = one.owned(); has < least || has > most; has = one.owned())
      co_await sleep_for(5ms);
  }

  static task<> share_and_take_over(nodes& all) {
    for (auto& one : all) {
      auto waits = until_owned(*one, 341, 342);
      co_await std::move(waits);
    }
    for (std::uint32_t i = 0; i < shard_count; ++i) {
      // One after the other: the first may have lost it before the second has got it.
      const auto first =
          std::ranges::find_if(all, [i](const auto& one) { return one->at->is_mine(i); });
      const bool has_another = std::any_of(first == all.end() ? first : first + 1, all.end(),
                                           [i](const auto& one) { return one->at->is_mine(i); });
      EXPECT_FALSE(has_another && (*first)->at->is_mine(i));
      while (all[0]->at->owner(i) == nullptr) co_await sleep_for(5ms);
    }
    all[1]->at->kill();
    for (auto* one : {all[0].get(), all[2].get()}) {
      auto waits = until_owned(*one, 512, 512);
      co_await std::move(waits);
    }
    while (all[0]->at->members().size() != 2) co_await sleep_for(5ms);
  }

  lease_place place_;
};

class placement_on_postgres : public placement_on_threads {
 protected:
  void SetUp() override {
    const std::string why_not = why_no_postgres();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    place_ = make_postgres_place();
  }
};

TEST_F(placement_on_threads, nodes_share_and_take_over) { with(3, 3s, share_and_take_over); }
TEST_F(placement_on_postgres, nodes_share_and_take_over) { with(3, 3s, share_and_take_over); }

TEST_F(placement_on_postgres, a_connection_that_hangs_is_replaced_before_the_lease_ends) {
  with(1, 20s, [](nodes& all) -> task<> {
    auto waits = until_owned(*all[0], shard_count, shard_count);
    co_await std::move(waits);
    const auto backend = [] {
      return postgres_server::get().sql(
          "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' "
          "AND pid <> pg_backend_pid()");
    };
    const std::string hangs = backend();
    ::kill(std::stoi(hangs), SIGSTOP);
    const placement& at = *all[0]->at;
    const auto before = at.counts();
    all[0]->at->hurry();
    while (at.counts().failures == before.failures) co_await sleep_for(20ms);
    const auto failed = at.counts();
    while (at.counts().renewals == failed.renewals) co_await sleep_for(20ms);
    EXPECT_EQ(all[0]->owned(), shard_count);
    EXPECT_EQ(all[0]->lost, 0);
    ::kill(std::stoi(hangs), SIGCONT);
    // And the one that hung has gone.
    while (postgres_server::get().sql("SELECT count(*) FROM pg_stat_activity WHERE pid = " +
                                      hangs) != "0")
      co_await sleep_for(20ms);
    EXPECT_EQ(all[0]->owned(), shard_count);
  });
}

TEST_F(placement_on_postgres, a_server_that_is_away_for_longer_than_a_lease_costs_the_shards) {
  with(1, 3s, [](nodes& all) -> task<> {
    auto waits = until_owned(*all[0], shard_count, shard_count);
    co_await std::move(waits);
    const std::uint64_t before = all[0]->fence_of_seven;
    postgres_server::get().kill_server();
    while (all[0]->lost < static_cast<int>(shard_count)) co_await sleep_for(5ms);
    EXPECT_EQ(all[0]->owned(), 0u);
    postgres_server::get().start_server();
    auto comes_back = until_owned(*all[0], shard_count, shard_count);
    co_await std::move(comes_back);
    EXPECT_GT(all[0]->fence_of_seven, before);
  });
}

}  // namespace
}  // namespace troupe::test
