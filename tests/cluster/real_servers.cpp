// Two nodes over a NATS server and a PostgreSQL server of the test's own, or a SQLite file.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "nats/nats_server.hpp"
#include "postgres/cluster.hpp"
#include "support/conformance.hpp"
#include "support/scratch.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using troupe::cluster::kind;
using troupe::cluster::node;

struct Account {
  std::int64_t cents = 0;
  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
  void pay(durable::turn& turn, std::string to, std::int64_t amount) {
    cents -= amount;
    turn.post<&Account::deposit>(to, amount);
  }
};
struct Counter {
  int count = 0;
  int add(int n) { return count += n; }
};

class cluster_on_real_servers : public conformance {
 protected:
  void SetUp() override {
    conformance::SetUp();
    if (IsSkipped()) return;
    if (!nats_server::is_installed()) GTEST_SKIP() << "needs nats-server";
    if (const std::string& why = test::postgres_server::get().why_not(); !why.empty())
      GTEST_SKIP() << why;
  }
};

node join(runtime& rt, const nats_server& bus, std::string name,
          std::chrono::milliseconds drain_max = 30s,
          std::string database = test::postgres_server::get().target()) {
  troupe::cluster::options chosen;
  chosen.drain_max = drain_max;
  chosen.nats = bus.url();
  chosen.name = std::move(name);
  chosen.database = std::move(database);
  chosen.cluster = "real";
  return node(rt, chosen, kind<Counter, &Counter::add>(),
              durable::kind<Account, &Account::deposit, &Account::pay>());
}

void hand_actors_over(const runtime_options& chosen, const std::string& database) {
  const nats_server bus;
  runtime rt(chosen);
  const auto test = [&]() -> task<> {
    std::vector<node> nodes;
    for (const char* name : {"one", "two"}) nodes.push_back(join(rt, bus, name, 30s, database));
    for (const node& one : nodes) {
      auto waits = one.ready();
      co_await std::move(waits);
    }
    while (nodes[0].counts().shards != 512 || nodes[1].counts().shards != 512)
      co_await sleep_for(10ms);
    for (int i = 0; i < 20; ++i) {
      const std::string key = "key " + std::to_string(i);
      for (int n = 1; n <= 2; ++n) {
        const node& one = nodes[static_cast<std::size_t>(n - 1)];
        auto counts = one.get<Counter>(key).ask<&Counter::add>(1);
        EXPECT_EQ(co_await std::move(counts), n);
        auto deposits = one.get_durable<Account>(key).ask<&Account::deposit>(10);
        EXPECT_EQ(co_await std::move(deposits), 10 * n);
      }
      auto pays = nodes[0].get_durable<Account>(key).post<&Account::pay>("all", 5);
      co_await std::move(pays);
    }
    co_await nodes[0].stop();
    for (int i = 0; i < 20; ++i) {
      auto deposits =
          nodes[1].get_durable<Account>("key " + std::to_string(i)).ask<&Account::deposit>(0);
      EXPECT_EQ(co_await std::move(deposits), 15);
    }
    std::int64_t sum = 0;
    while (sum != 100) {
      auto deposits = nodes[1].get_durable<Account>("all").ask<&Account::deposit>(0);
      sum = co_await std::move(deposits);
      co_await sleep_for(5ms);
    }
    co_await nodes[1].stop();
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(cluster_on_real_servers, actors_are_found_and_durable_ones_survive_a_hand_over) {
  hand_actors_over(options(), test::postgres_server::get().target());
}
TEST_P(cluster_on_real_servers, actors_are_found_and_survive_in_a_shared_sqlite_file) {
  const scratch folder;
  hand_actors_over(options(), "sqlite:" + folder / "cluster.db");
}

TEST_P(cluster_on_real_servers, a_stop_ends_though_the_servers_have_gone) {
  for (const bool without_database : {false, true}) {
    nats_server bus;
    runtime rt(options());
    const auto test = [&]() -> task<> {
      const node one = join(rt, bus, "one", 2s);
      auto waits = one.ready();
      co_await std::move(waits);
      auto counts = one.get<Counter>("key").ask<&Counter::add>(1);
      EXPECT_EQ(co_await std::move(counts), 1);
      bus.kill();
      if (without_database) postgres_server::get().kill_server();
      const auto begun = troupe::now();
      co_await one.stop();
      EXPECT_LT(troupe::now() - begun, 20s);
    };
    future<> done = rt.spawn(test());
    rt.run();
    if (without_database) postgres_server::get().start_server();
    done.get();
  }
}

std::vector<setting> one_setting() { return {{policy::work_stealing, 2, 1}}; }
TROUPE_TEST_EACH(cluster_on_real_servers, one_setting);

}  // namespace
}  // namespace troupe::test
