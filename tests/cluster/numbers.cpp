// What the summary of an observed program says of its nodes, and counts().
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/observing/observer.hpp"
#include "support/observed.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct Tally {
  int count = 0;
  int add(int n) { return count += n; }
};

class cluster_numbers : public observed_runtimes {
 public:
  static cluster::node make(runtime& rt, const cluster::simulation& in, std::string name,
                            std::chrono::milliseconds lease = 60s) {
    cluster::options chosen;
    chosen.name = std::move(name);
    chosen.lease = lease;
    chosen.margin = lease / 10;
    return {rt, in, chosen, cluster::kind<Tally, &Tally::add>()};
  }
  // The part of the summary about nodes.
  static json shown() {
    const json all = json::parse(troupe::observing::ask("summary"));
    const json& own = all["runtimes"][0];
    return own.contains("cluster") ? own["cluster"] : json::array();
  }
  static std::size_t owned(const json& node, std::size_t place) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < node["owners"].size(); i += 2) {
      if (node["owners"][i] == place) sum += node["owners"][i + 1].get<std::size_t>();
    }
    return sum;
  }
  // Each member with its shards, as the map of owners has them, too.
  static void expect_members(const json& node, std::size_t count) {
    ASSERT_EQ(node["nodes"].size(), count) << node;
    std::size_t all = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const json& one = node["nodes"][i];
      EXPECT_EQ(one["shards"], owned(node, i)) << node;
      EXPECT_EQ(one["leaving"], false);
      if (one["id"] == node["id"]) {
        EXPECT_EQ(one["name"], node["node"]);
        EXPECT_EQ(one["shards"], node["shards"]) << node;
      }
      all += one["shards"].get<std::size_t>();
    }
    EXPECT_EQ(all, 1024u);
  }
};

TEST_P(cluster_numbers, a_summary_shows_nodes_shards_and_messages) {
  runtime rt(observed());
  json seen;
  std::vector<cluster::counts> counted;
  const auto all = [&]() -> task<> {
    const cluster::simulation in;
    const cluster::node one = make(rt, in, "one"), two = make(rt, in, "two");
    while (one.counts().shards != 512 || two.counts().shards != 512) co_await sleep_for(5ms);
    // Of 100 actors some are here, and some there.
    for (int i = 0; i < 100; ++i) {
      auto asks = one.get<Tally>(std::to_string(i)).ask<&Tally::add>(1);
      co_await std::move(asks);
    }
    const auto all_see = [] {
      const json now = shown();
      return std::ranges::all_of(now, [](const json& node) {
        return node["nodes"].size() == 2 && owned(node, 0) == 512 && owned(node, 1) == 512;
      });
    };
    for (const auto until = troupe::now() + 60s; !all_see() && troupe::now() < until;)
      co_await sleep_for(5ms);
    seen = shown();
    counted = {one.counts(), two.counts()};
    co_await one.stop();
    co_await two.stop();
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  const json one = named(seen, "node", "one"), two = named(seen, "node", "two");
  for (const json& node : {one, two}) {
    EXPECT_EQ(node["of"], "troupe");
    EXPECT_EQ(node["joined"], 1);
    EXPECT_EQ(node["connected"], 1);
    EXPECT_EQ(node["alone"], 0);
    EXPECT_EQ(node["members"], 2);
    EXPECT_GE(node["renewals"], 2);
    EXPECT_EQ(node["failed_renewals"], 0);
    EXPECT_EQ(node["shards_lost"], 0);
    EXPECT_FALSE(node.contains("last_failure"));
    expect_members(node, 2);
  }
  EXPECT_EQ(one["actors"].get<int>() + two["actors"].get<int>(), 100);
  EXPECT_EQ(one["created"].get<int>() + two["created"].get<int>(), 100);
  EXPECT_EQ(one["local"], counted[0].local);
  EXPECT_GE(one["sent"], two["actors"]);
  EXPECT_EQ(two["served"], one["sent"]);
  EXPECT_EQ(one["failed"], 0);
  EXPECT_EQ(one["waiting"], 0);
  EXPECT_TRUE(counted[0].is_connected);
  EXPECT_GE(counted[0].renewals, one["renewals"].get<std::uint64_t>());
}

TEST_P(cluster_numbers, a_summary_shows_leases_that_fail) {
  runtime rt(observed());
  json seen;
  cluster::counts counted;
  const auto all = [&]() -> task<> {
    const cluster::simulation in;
    const cluster::node one = make(rt, in, "one", 1s);
    auto joins = one.ready();
    co_await std::move(joins);
    in.set_database_away(true);
    while (one.counts().shards_lost != 1024) co_await sleep_for(20ms);
    do {  // the node goes on to try: both looks are of the same moment if no attempt came between
      counted = one.counts();
      seen = shown();
    } while (one.counts().failed_renewals != counted.failed_renewals);
    in.set_database_away(false);
    co_await one.stop();
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  ASSERT_EQ(seen.size(), 1u);
  const json& one = seen[0];
  EXPECT_EQ(one["shards"], 0);
  EXPECT_EQ(one["shards_lost"], 1024);
  EXPECT_GE(one["failed_renewals"], 1);
  EXPECT_EQ(one["failed_renewals"], counted.failed_renewals);
  EXPECT_TRUE(one.contains("last_failure")) << one;
}

// Before it has joined, it says why not; and what has gone is not shown.
TEST_P(cluster_numbers, a_node_is_shown_from_its_first_attempt_to_its_end) {
  runtime rt(observed());
  json before;
  std::size_t after = 1;
  const auto all = [&]() -> task<> {
    const cluster::simulation in;
    in.set_database_away(true);
    std::optional<cluster::node> one = make(rt, in, "one");
    try {
      auto joins = one->ready();
      co_await std::move(joins);
    } catch (const troupe::error&) {
    }
    before = shown();
    in.set_database_away(false);
    co_await one->stop();
    one.reset();
    while ((after = shown().size()) != 0) co_await sleep_for(5ms);
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0]["joined"], 0);
  EXPECT_EQ(before[0]["shards"], 0);
  EXPECT_TRUE(before[0].contains("last_failure")) << before;
  EXPECT_EQ(before[0]["owners"], json::parse("[-1,1024]"));
  EXPECT_EQ(after, 0u);
}

TEST_P(cluster_numbers, a_node_that_is_alone_owns_all) {
  runtime rt(observed());
  json seen;
  const auto all = [&]() -> task<> {
    const cluster::node one(rt, {.name = "alone", .page = "http://[::1]:8080/troupe/"},
                            cluster::kind<Tally, &Tally::add>());
    auto joins = one.ready();
    co_await std::move(joins);
    seen = shown();
    co_await one.stop();
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0]["alone"], 1);
  EXPECT_EQ(seen[0]["nodes"][0]["page"], "http://[::1]:8080/troupe/");
  EXPECT_EQ(seen[0]["owners"], json::parse("[0,1024]"));
  expect_members(seen[0], 1);
}

TROUPE_TEST_EACH(cluster_numbers, each_policy);

}  // namespace
}  // namespace troupe::test
