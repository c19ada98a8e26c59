// Durable actors of a cluster: what was acknowledged is there, once, whatever becomes of the nodes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::node;
using durable::message_id;

struct Account {
  std::int64_t cents = 0;
  std::map<std::string, int> seen;

  std::int64_t deposit(std::string id, std::int64_t amount) {
    ++seen[id];
    return cents += amount;
  }
  void pay(durable::turn& turn, std::string to, std::string id, std::int64_t amount) {
    cents -= amount;
    ++seen[id];
    turn.post<&Account::deposit>(to, id, amount);
  }
  task<std::int64_t> collect(durable::turn& turn, std::string from, std::string id,
                             std::int64_t amount) {
    auto asked = turn.ask<&Account::deposit>(from, id, -amount);
    static_cast<void>(co_await std::move(asked));
    ++seen[id];
    cents += amount;
    co_return cents;
  }
  Account all() const { return *this; }
};

auto accounts() {
  return durable::kind<Account, &Account::deposit, &Account::pay, &Account::collect,
                       &Account::all>();
}
std::string account(std::uint64_t number) { return "account " + std::to_string(number); }

constexpr std::uint64_t account_count = 12;

class cluster_durable_actors : public conformance {
 public:
  static cluster::options named(std::string name) {
    cluster::options chosen;
    chosen.name = std::move(name);
    chosen.lease = 2s;
    chosen.margin = 200ms;
    return chosen;
  }
  static task<std::vector<node>> join(runtime& rt, cluster::simulation in, int count) {
    std::vector<node> nodes;
    for (int i = 0; i < count; ++i)
      nodes.emplace_back(rt, in, named("node " + std::to_string(i)), accounts());
    for (const node& one : nodes) {
      auto waits = one.ready();
      co_await std::move(waits);
    }
    co_return nodes;
  }
  static task<std::vector<Account>> read_all(node on) {
    std::vector<Account> all;
    for (std::uint64_t i = 0; i < account_count; ++i) {
      for (;;) {
        bool done = false;
        try {
          auto asked = on.get_durable<Account>(account(i)).ask<&Account::all>();
          all.push_back(co_await std::move(asked));
          done = true;
        } catch (const troupe::error&) {
        }
        if (done) break;
        co_await sleep_for(50ms);
      }
    }
    co_return all;
  }
  static task<> deposit_once(node on, std::string to) {
    for (bool done = false; !done;) {
      try {
        auto asked = on.get_durable<Account>(to).ask<&Account::deposit>("d", 1);
        static_cast<void>(co_await std::move(asked));
        done = true;
      } catch (const troupe::error&) {
      }
      co_await sleep_for(20ms);
    }
  }
};

class cluster_durable_transfers : public cluster_durable_actors {};

TEST_P(cluster_durable_actors, every_node_has_the_same_ones) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    auto joins = join(rt, in, 3);
    std::vector<node> nodes = co_await std::move(joins);
    for (int round = 1; round <= 3; ++round) {
      for (std::uint64_t i = 0; i < account_count; ++i) {
        const node& one = nodes[(i + static_cast<std::uint64_t>(round)) % 3];
        auto asked = one.get_durable<Account>(account(i)).ask<&Account::deposit>("d", 10);
        EXPECT_EQ(co_await std::move(asked), 10 * round);
      }
    }
    auto pays = nodes[0].get_durable<Account>(account(0)).post<&Account::pay>(account(1), "t", 5);
    co_await std::move(pays);
    auto collects =
        nodes[1].get_durable<Account>(account(2)).ask<&Account::collect>(account(3), "c", 7);
    EXPECT_EQ(co_await std::move(collects), 37);
    std::int64_t second = 0;
    while (second != 35) {
      auto asked = nodes[2].get_durable<Account>(account(1)).ask<&Account::all>();
      second = (co_await std::move(asked)).cents;
      co_await sleep_for(5ms);
    }
    for (const node& one : nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// Clients that ask all the time are answered within a lease and a second of the database's return,
// however long it was away.
TEST_P(cluster_durable_actors, are_answered_soon_after_the_database_is_back) {
  if (GetParam().policy != policy::simulated) return;  // it takes a minute
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    auto joins = join(rt, in, 2);
    const std::vector<node> nodes = co_await std::move(joins);
    for (const std::chrono::milliseconds away : {500ms, 5'000ms, 16'000ms}) {
      in.set_database_away(true);
      std::vector<future<>> asks;
      for (std::uint64_t i = 0; i < account_count; ++i)
        asks.push_back(spawn(deposit_once(nodes[i % 2], account(i))));
      co_await sleep_for(away);
      in.set_database_away(false);
      const auto back = now();
      for (auto& one : asks) co_await std::move(one);
      EXPECT_LE(now() - back, 3s) << "it was away for " << away.count() << " ms";
    }
    for (const node& one : nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// What an ask ends with: the type of the exception, and its verdict.
task<std::string> end_of_ask(node on, std::string to) {
  try {
    auto asked = on.get_durable<Account>(to).ask<&Account::deposit>("d", 1);
    static_cast<void>(co_await std::move(asked));
  } catch (const troupe::error& e) {
    const verdict said = e.judged();
    co_return std::string(typeid(e).name()) + " " + std::to_string(static_cast<int>(said.fault)) +
        std::to_string(static_cast<int>(said.ran)) + std::to_string(static_cast<int>(said.retry));
  }
  co_return "none";
}

// While the database is away, it does not matter from where an actor is asked.
TEST_P(cluster_durable_actors, an_ask_fails_alike_here_and_from_another_node) {
  if (GetParam().policy != policy::simulated) return;  // as a node finds the database away
  runtime rt(options());
  std::size_t by_database = 0;
  const auto test = [&]() -> task<> {
    const cluster::simulation in;
    auto joins = join(rt, in, 2);
    const std::vector<node> nodes = co_await std::move(joins);
    for (std::uint64_t i = 0; i < account_count; ++i) {
      auto first = deposit_once(nodes[0], account(i));
      co_await std::move(first);
    }
    in.set_database_away(true);
    for (std::uint64_t i = 0; i < account_count; ++i) {
      auto one = spawn(end_of_ask(nodes[0], account(i)));
      auto other = spawn(end_of_ask(nodes[1], account(i)));
      const std::string end = co_await std::move(one);
      const std::string other_end = co_await std::move(other);
      EXPECT_EQ(end, other_end) << account(i);
      if (end.find("database") != std::string::npos) ++by_database;
    }
    in.set_database_away(false);
    for (const node& one : nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
  EXPECT_GT(by_database, 0u);
}

// The nodes that are there, and what clients know.
struct Bank {
  std::mutex mutex;
  std::vector<node> nodes;
  std::set<std::string> acknowledged;
  std::atomic<bool> goes_on{true};

  node any_node() {
    std::lock_guard held(mutex);
    return nodes[kit::random_number() % nodes.size()];
  }
};

// Transfers of one client, each until it is acknowledged, from whatever node is there.
task<> transfer(Bank& bank, std::uint64_t client) {
  for (int i = 0; bank.goes_on; ++i) {
    const std::string id = std::to_string(client) + "." + std::to_string(i);
    const std::uint64_t from = kit::random_number() % account_count;
    const std::uint64_t to =
        (from + 1 + kit::random_number() % (account_count - 1)) % account_count;
    // In one direction alone: a cycle of asks over nodes is not found.
    const bool collects = from < to && kit::random_number() % 2 == 0;
    for (bool done = false; !done;) {
      try {
        const auto payer =
            bank.any_node().get_durable<Account>(account(from)).with_id(message_id::of(id));
        auto posts = collects ? payer.post<&Account::collect>(account(to), id, -1)
                              : payer.post<&Account::pay>(account(to), id, 1);
        co_await std::move(posts);
        done = true;
      } catch (const troupe::error&) {
      }
      co_await sleep_for(done ? 1ms : 50ms);
    }
    std::lock_guard held(bank.mutex);
    bank.acknowledged.insert(id);
  }
}

// Nodes are killed and stopped, and others join.
task<> replace_nodes(runtime& rt, cluster::simulation in, Bank& bank) {
  for (int round = 0; round < 4; ++round) {
    co_await sleep_for(300ms);
    const std::size_t at = kit::random_number() % bank.nodes.size();
    const node gone = bank.nodes[at];
    if (round % 2 == 0) {
      in.kill(gone);
    } else {
      co_await gone.stop();
    }
    const node next(rt, in, cluster_durable_actors::named("next"), accounts());
    auto waits = next.ready();
    co_await std::move(waits);
    std::lock_guard held(bank.mutex);
    bank.nodes[at] = next;
  }
}

// Until nothing is under way: the sum of all accounts is 0, and each transfer has both effects.
task<> check_all(Bank& bank) {
  std::map<std::string, int> effects;
  std::int64_t sum = 1;
  for (int tries = 0; tries < 2'000; ++tries) {
    auto reads = cluster_durable_actors::read_all(bank.nodes[0]);
    const std::vector<Account> all = co_await std::move(reads);
    sum = 0;
    effects.clear();
    for (const Account& one : all) {
      sum += one.cents;
      for (const auto& [id, count] : one.seen) effects[id] += count;
    }
    const auto is_there = [&](const std::string& id) { return effects[id] == 2; };
    if (sum == 0 && std::ranges::all_of(bank.acknowledged, is_there)) break;
    co_await sleep_for(20ms);
  }
  EXPECT_EQ(sum, 0);
  for (const std::string& id : bank.acknowledged) EXPECT_EQ(effects[id], 2) << id;
  for (const auto& [id, count] : effects) EXPECT_EQ(count, 2) << id;
}

// Each of these waits for the other's actor, on another node; and one that asks who asks it.
TEST_P(cluster_durable_actors, asks_that_wait_for_each_other_over_nodes_are_refused) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    auto joins = join(rt, in, 3);
    const std::vector<node> nodes = co_await std::move(joins);
    std::atomic<int> done{0}, refused{0};
    const auto collects = [&](std::uint64_t to, std::uint64_t from, std::string id) -> task<> {
      try {
        auto asked = nodes[to % 3]
                         .get_durable<Account>(account(to))
                         .ask<&Account::collect>(account(from), id, 5);
        static_cast<void>(co_await std::move(asked));
        ++done;
      } catch (const durable::handler_failed& e) {
        EXPECT_EQ(e.type(), "troupe::deadlock") << e.what();
        ++refused;
      }
    };
    const auto begun = troupe::now();
    const int rounds = fewer(4);
    for (int round = 0; round < rounds; ++round) {
      std::vector<future<>> all;
      for (std::uint64_t i = 0; i < account_count; ++i)
        all.push_back(spawn(
            collects(i, round % 2 == 0 ? i ^ 1u : (i + 1) % account_count, std::to_string(round))));
      for (auto& one : all) co_await std::move(one);
    }
    EXPECT_LT(troupe::now() - begun, rounds * 9s);  // an ask takes 10 s until its time is over
    EXPECT_EQ(done + refused, rounds * static_cast<int>(account_count));
    EXPECT_GT(done.load(), 0);
    EXPECT_GT(refused.load(), 0);
    auto reads = read_all(nodes[0]);
    std::int64_t sum = 0;
    for (const Account& one : co_await std::move(reads)) sum += one.cents;
    EXPECT_EQ(sum, 0);
    for (const node& one : nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(cluster_durable_transfers, transfers_have_their_effect_once_while_nodes_come_and_go) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    cluster::database_faults faults;
    faults.delay_max = 2ms;
    in.set_faults(faults);
    auto joins = join(rt, in, 3);
    Bank bank;
    bank.nodes = co_await std::move(joins);
    std::vector<future<>> clients;
    for (std::uint64_t i = 0; i < 3; ++i) clients.push_back(spawn(transfer(bank, i)));
    auto replaces = replace_nodes(rt, in, bank);
    co_await std::move(replaces);
    bank.goes_on = false;
    for (auto& one : clients) co_await std::move(one);
    EXPECT_GT(bank.acknowledged.size(), 10u);
    auto checks = check_all(bank);
    co_await std::move(checks);
    for (const node& one : bank.nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// With real clocks leases take their time.
std::vector<setting> many_seeds() {
  std::vector<setting> all;
  for (std::uint64_t seed = 1; seed <= (slow ? 3u : 12u); ++seed)
    all.push_back({policy::simulated, 1, seed});
  return all;
}
TROUPE_TEST_EACH(cluster_durable_actors, each_policy);
TROUPE_TEST_EACH(cluster_durable_transfers, many_seeds);

}  // namespace
}  // namespace troupe::test
