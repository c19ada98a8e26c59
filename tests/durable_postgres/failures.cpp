// Durable actors on PostgreSQL: connections that are cut and servers that are killed within
// commits, and two stores in one database.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "durable_postgres/place.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;

struct Account {
  std::int64_t cents = 0;
  std::map<std::string, int> paid;
  std::map<std::string, int> got;

  void open(std::int64_t amount) { cents = amount; }
  void credit(std::string transfer, std::int64_t amount) {
    cents += amount;
    ++got[transfer];
  }
  std::int64_t debit(std::string transfer, std::int64_t amount) {
    cents -= amount;
    ++paid[transfer];
    return amount;
  }
  void push(durable::turn& turn, std::string to, std::string transfer, std::int64_t amount) {
    debit(transfer, amount);
    turn.post<&Account::credit>(to, transfer, amount);
  }
  task<> pull(durable::turn& turn, std::string from, std::string transfer, std::int64_t amount) {
    auto asked = turn.ask<&Account::debit>(from, transfer, amount);
    const std::int64_t taken = co_await std::move(asked);
    credit(transfer, taken);
  }
  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
  std::int64_t balance() const { return cents; }
  Account all() const { return *this; }
};

auto accounts() {
  return durable::kind<Account, &Account::open, &Account::credit, &Account::debit, &Account::push,
                       &Account::pull, &Account::deposit, &Account::balance, &Account::all>();
}

constexpr std::uint64_t accounts_count = 6;
constexpr std::int64_t opening = 1'000;

// Clients that transfer money, each transfer with an id, until they are told to stop.
class bank {
 public:
  bank(runtime& rt, std::string schema) : rt_(rt), schema_(std::move(schema)) {}

  // Calls disturb(round), which blocks, after each 10 transfers or so.
  task<> run(int rounds, std::function<void(int)> disturb) {
    auto opens = store::open(rt_, storage_in(schema_, rt_), accounts());
    store_.emplace(co_await std::move(opens));
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      auto asked = store_->get<Account>(name(i)).ask<&Account::open>(opening);
      co_await std::move(asked);
    }
    std::vector<future<>> clients;
    for (int client = 0; client < 4; ++client) clients.push_back(rt_.spawn(sends(client)));
    for (int round = 0; round < rounds; ++round) {
      const int before = acknowledged_;
      while (acknowledged_ < before + 10) co_await sleep_for(1ms);
      co_await sleep_for(std::chrono::microseconds(kit::random_number() % 5'000));
      auto disturbs = blocking([&disturb, round] { disturb(round); });
      co_await std::move(disturbs);
    }
    stops_ = true;
    for (auto& one : clients) co_await std::move(one);
    auto checks = check();
    co_await std::move(checks);
    unknown_ = static_cast<int>(store_->counts().failed_commits);
    store_.reset();
  }
  int failed_commits() const { return unknown_; }

 private:
  static std::string name(std::uint64_t number) { return "account " + std::to_string(number); }

  task<> sends(int client) {
    for (int i = 0; !stops_; ++i) {
      const std::string transfer = std::to_string(client) + "." + std::to_string(i);
      // Accounts ask those with smaller numbers alone, so that no asks wait for each other.
      const std::uint64_t low = kit::random_number() % (accounts_count - 1);
      const std::uint64_t high = low + 1 + kit::random_number() % (accounts_count - low - 1);
      const auto amount = static_cast<std::int64_t>(1 + kit::random_number() % 50);
      const auto id = durable::message_id::of(transfer);
      const bool pushes = kit::random_number() % 2 == 0;
      for (bool acknowledged = false; !acknowledged;) {
        try {
          const auto whom = store_->get<Account>(name(pushes ? low : high)).with_id(id);
          auto asked = pushes ? whom.ask<&Account::push>(name(high), transfer, amount)
                              : whom.ask<&Account::pull>(name(low), transfer, amount);
          co_await std::move(asked);
          acknowledged = true;
        } catch (const database::error&) {
        }
        if (!acknowledged) co_await sleep_for(5ms);
      }
      transfers_[static_cast<std::size_t>(client)].push_back(transfer);
      ++acknowledged_;
    }
  }

  task<> check() {
    while (postgres_server::get().sql("SELECT count(*) FROM " + schema_ + ".durable_inbox") != "0")
      co_await sleep_for(20ms);
    std::int64_t sum = 0;
    std::map<std::string, int> paid, got;
    for (std::uint64_t i = 0; i < accounts_count; ++i) {
      std::optional<Account> one;
      while (!one) {
        try {
          auto asked = store_->get<Account>(name(i)).ask<&Account::all>();
          one = co_await std::move(asked);
        } catch (const database::error&) {
        }
        if (!one) co_await sleep_for(5ms);
      }
      sum += one->cents;
      for (const auto& [transfer, times] : one->paid) paid[transfer] += times;
      for (const auto& [transfer, times] : one->got) got[transfer] += times;
    }
    EXPECT_EQ(sum, static_cast<std::int64_t>(accounts_count) * opening);
    std::size_t expected = 0;
    for (const auto& of_client : transfers_) {
      expected += of_client.size();
      for (const std::string& transfer : of_client) {
        EXPECT_EQ(paid[transfer], 1) << transfer;
        EXPECT_EQ(got[transfer], 1) << transfer;
      }
    }
    EXPECT_EQ(paid.size(), expected);
    EXPECT_EQ(got.size(), expected);
    EXPECT_EQ(postgres_server::get().sql("SELECT count(*) FROM " + schema_ + ".durable_dead"), "0");
    EXPECT_EQ(postgres_server::get().sql("SELECT count(*) FROM " + schema_ +
                                         ".durable_answers WHERE asker <> '\\x" +
                                         std::string(32, '0') + "'"),
              "0");
  }

  runtime& rt_;
  const std::string schema_;
  std::optional<store> store_;
  std::atomic<bool> stops_{false};
  std::atomic<int> acknowledged_{0};
  std::vector<std::string> transfers_[4];
  int unknown_ = 0;
};

class durable_postgres_failures : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
    schema_ = make_schema();
  }
  // Runs test(runtime) as a task.
  template <class Test>
  void with(Test test) {
    runtime rt({.workers = 2});
    future<> done = rt.spawn(test(rt));
    rt.run();
    done.get();
  }
  void run_bank(int rounds, std::function<void(int)> disturb) {
    runtime rt({.workers = 2});
    bank of(rt, schema_);
    future<> done = rt.spawn(of.run(rounds, std::move(disturb)));
    rt.run();
    done.get();
    std::cout << of.failed_commits() << " commits failed\n";
  }
  static bool is_deep() { return std::getenv("TROUPE_DEEP") != nullptr; }

  std::string schema_;
};

TEST_F(durable_postgres_failures, connections_that_are_cut_lose_nothing) {
  run_bank(is_deep() ? 2'000 : fewer(100), [](int) {
    postgres_server::get().sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = "
        "'client backend' AND pid <> pg_backend_pid()");
  });
}

TEST_F(durable_postgres_failures, a_server_that_is_killed_loses_nothing) {
  run_bank(is_deep() ? 200 : fewer(20), [](int round) {
    round % 2 == 0 ? postgres_server::get().kill_server() : postgres_server::get().crash_server();
    postgres_server::get().start_server();
  });
}

// Deposits one cent at a time, each under an id, until it is told to stop.
task<> deposit_all(store to, int client, std::shared_ptr<std::atomic<int>> made,
                   std::shared_ptr<std::atomic<bool>> stops) {
  for (int i = 0; !*stops; ++i) {
    const auto id = durable::message_id::of(std::to_string(client) + "." + std::to_string(i));
    for (bool acknowledged = false; !acknowledged;) {
      try {
        auto asked = to.get<Account>("a").with_id(id).ask<&Account::deposit>(1);
        co_await std::move(asked);
        acknowledged = true;
      } catch (const database::error&) {
      }
      if (!acknowledged) co_await sleep_for(5ms);
    }
    ++*made;
  }
}

TEST_F(durable_postgres_failures, a_fail_over_to_a_standby_loses_nothing) {
  const struct both_servers {
    both_servers() { postgres_server::get().start_standby(); }
    ~both_servers() { postgres_server::get().end_standby(); }
  } both;
  postgres_server& servers = postgres_server::get();
  with([&](runtime& rt) -> task<> {
    auto in = durable::postgres_storage(
        rt,
        servers.target_of_both("target_session_attrs=read-write options=-csearch_path=" + schema_));
    auto opens = store::open(rt, std::move(in), accounts());
    const store kept = co_await std::move(opens);
    const auto made = std::make_shared<std::atomic<int>>(0);
    const auto stops = std::make_shared<std::atomic<bool>>(false);
    std::vector<future<>> clients;
    for (int client = 0; client < 4; ++client)
      clients.push_back(rt.spawn(deposit_all(kept, client, made, stops)));
    while (*made < 50) co_await sleep_for(1ms);
    auto fails = blocking([&servers] { servers.fail_over(); });
    co_await std::move(fails);
    const int before = *made;
    while (*made < before + 50) co_await sleep_for(1ms);
    *stops = true;
    for (auto& one : clients) co_await std::move(one);
    EXPECT_EQ(co_await kept.get<Account>("a").ask<&Account::balance>(), *made);
  });
}

template <class T>
task<std::string> failure_of(future<T> call) {
  try {
    co_await std::move(call);
  } catch (const durable::store_taken&) {
    co_return "store_taken";
  } catch (const usage_error& failed) {
    co_return failed.what();
  }
  co_return "none";
}

// Deposits until the store is taken, and counts those that were acknowledged.
task<> deposit(store to, std::shared_ptr<std::atomic<int>> made) {
  for (;;) {
    const std::string failed = co_await failure_of(to.get<Account>("a").ask<&Account::deposit>(1));
    if (failed == "none") {
      ++*made;
      continue;
    }
    EXPECT_EQ(failed, "store_taken");
    co_return;
  }
}

TEST_F(durable_postgres_failures, a_store_that_was_opened_again_stores_nothing_any_more) {
  with([this](runtime& rt) -> task<> {
    for (int round = 0; round < 5; ++round) {
      auto first = store::open(rt, storage_in(schema_, rt), accounts());
      store older = co_await std::move(first);
      const std::int64_t before = co_await older.get<Account>("a").ask<&Account::balance>();
      const auto made = std::make_shared<std::atomic<int>>(0);
      future<> deposits = rt.spawn(deposit(older, made));
      while (*made < 5) co_await sleep_for(1ms);
      auto second = store::open(rt, storage_in(schema_, rt), accounts());
      store newer = co_await std::move(second);
      const std::int64_t seen = co_await newer.get<Account>("a").ask<&Account::balance>();
      co_await std::move(deposits);
      EXPECT_EQ(seen, before + *made);
      EXPECT_EQ(co_await newer.get<Account>("a").ask<&Account::deposit>(1), seen + 1);
    }
  });
}

// What a lost connection leaves in the server: a transaction that is still to be committed.
task<> store_batch_seven(postgres::connection other, durable::storage& in,
                         std::shared_ptr<std::optional<future<std::uint64_t>>> later) {
  const auto body = [&in, later](postgres::transaction& all) -> task<> {
    co_await all.execute("SELECT FROM durable_meta WHERE name = 'owner' FOR UPDATE");
    co_await all.execute("UPDATE durable_meta SET value = 7 WHERE name = 'last_batch'");
    *later = spawn(in.last_batch());
    for (std::optional<int> waits = 0; waits == 0;) {
      auto asks = all.query_one<int>(
          "SELECT count(*) FROM pg_locks WHERE NOT granted "
          "AND pg_backend_pid() = ANY (pg_blocking_pids(pid))");
      waits = co_await std::move(asks);
    }
  };
  auto runs = other.in_transaction(body);
  co_await std::move(runs);
}

TEST_F(durable_postgres_failures, the_last_batch_is_known_once_no_commit_is_under_way) {
  with([this](runtime& rt) -> task<> {
    const auto in = storage_in(schema_, rt);
    auto opens = in->open();
    const durable::opened_storage found = co_await std::move(opens);
    EXPECT_EQ(found.last_batch, 0u);
    const auto later = std::make_shared<std::optional<future<std::uint64_t>>>();
    auto stores = store_batch_seven(postgres::connection(rt, schema_target(schema_)), *in, later);
    co_await std::move(stores);
    EXPECT_EQ(co_await std::move(**later), 7u);
  });
}

TEST_F(durable_postgres_failures, keys_may_have_any_bytes_and_are_limited_in_length) {
  using namespace std::string_view_literals;
  const std::vector<std::string> keys = {
      std::string("a\0b"sv),  "\xff", "\\", "\\xff", "\"{},'", "\u00e4\u20ac\U0001f600",
      std::string(1'900, 'k')};
  for (int life = 1; life <= 2; ++life) {
    with([&](runtime& rt) -> task<> {
      auto opens = store::open(rt, storage_in(schema_, rt), accounts());
      store all = co_await std::move(opens);
      for (const std::string& key : keys) {
        EXPECT_EQ(co_await all.get<Account>(key).ask<&Account::deposit>(1), life);
      }
      std::string refused;  // where the key is named
      try {
        static_cast<void>(all.get<Account>(std::string(2'000, 'k')));
      } catch (const usage_error& failure) {
        refused = failure.what();
      }
      EXPECT_NE(refused.find("up to 2000"), std::string::npos) << refused;
    });
  }
}

}  // namespace
}  // namespace troupe::test
