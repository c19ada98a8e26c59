// postgres::connection: transactions, and callers that give up.
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "postgres/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_transactions : public postgres_fixture {
 protected:
  void SetUp() override {
    postgres_fixture::SetUp();
    if (IsSkipped()) return;
    postgres_server::get().sql(
        "DROP TABLE IF EXISTS accounts; CREATE TABLE accounts (name text PRIMARY KEY, cents int); "
        "INSERT INTO accounts VALUES ('Ada', 500), ('Grace', 20)");
  }
  static std::string cents(const char* name) {
    return postgres_server::get().sql("SELECT cents FROM accounts WHERE name = '" +
                                      std::string(name) + "'");
  }
};

TEST_P(postgres_transactions, all_or_nothing) {
  with([](postgres::connection db) -> task<> {
    const auto moves = [](postgres::transaction& all) -> task<int> {
      co_await all.execute("UPDATE accounts SET cents = cents - $1 WHERE name = $2", 100, "Ada");
      co_await all.execute("UPDATE accounts SET cents = cents + $1 WHERE name = $2", 100, "Grace");
      const auto left =
          co_await all.query_one<int>("SELECT cents FROM accounts WHERE name = 'Ada'");
      co_return left.value_or(0);
    };
    EXPECT_EQ(co_await db.in_transaction(moves), 400);
    const auto throws = [](postgres::transaction& all) -> task<> {
      co_await all.execute("UPDATE accounts SET cents = 0");
      throw std::runtime_error("no");
    };
    EXPECT_THROW(co_await db.in_transaction(throws), std::runtime_error);
    const auto fails = [](postgres::transaction& all) -> task<> {
      co_await all.execute("UPDATE accounts SET cents = 0");
      EXPECT_TRUE(has(co_await failure_of(all.execute("SELECT 1 / 0")), "22012"));
      EXPECT_TRUE(has(co_await failure_of(all.execute("SELECT 1")), "25P02"));
    };
    EXPECT_TRUE(has(co_await failure_of(db.in_transaction(fails)), "was rolled back"));
    const auto saves = [](postgres::transaction& all) -> task<> {
      co_await all.execute("SAVEPOINT here");
      EXPECT_TRUE(has(co_await failure_of(all.execute("SELECT 1 / 0")), "22012"));
      co_await all.execute("ROLLBACK TO here");
      co_await all.execute("UPDATE accounts SET cents = cents + 1 WHERE name = 'Ada'");
    };
    co_await db.in_transaction(saves, postgres::isolation::serializable);
  });
  EXPECT_EQ(cents("Ada"), "401");
  EXPECT_EQ(cents("Grace"), "120");
}

using rows_of_accounts = std::vector<std::tuple<std::string, int>>;
rows_of_accounts two_accounts(const char* one, int cents, const char* other, int of_other) {
  return {{one, cents}, {other, of_other}};
}
rows_of_accounts four_accounts() { return {{"Edsger", 1}, {"Donald", 2}, {"Ada", 3}, {"Tony", 4}}; }
std::vector<std::tuple<std::string, std::int64_t>> too_many_cents() {
  return {{"Edsger", 1}, {"Donald", std::int64_t{1} << 40}};
}
std::vector<std::pair<int, std::optional<std::string>>> raises() {
  return {{1, "Ada"}, {2, std::nullopt}, {3, "Grace"}};
}
std::vector<std::tuple<std::string, int, double>> slow_accounts() {
  return {{"Alan", 1, 0.0}, {"Barbara", 2, 60.0}, {"Tony", 3, 0.0}};
}
constexpr const char* add_account = "INSERT INTO accounts VALUES ($1, $2)";

TEST_P(postgres_transactions, many_rows_are_stored_all_or_nothing) {
  with([](postgres::connection db) -> task<> {
    EXPECT_EQ((co_await db.execute_many(add_account, two_accounts("Alan", 1, "Barbara", 2))).rows,
              2);
    // Neighbours in the pipeline go on, whatever becomes of a call.
    auto before = spawn(db.execute(add_account, "before", 1));
    auto fails = spawn(failure_of(db.execute_many(add_account, four_accounts())));
    auto after = spawn(db.execute(add_account, "after", 1));
    EXPECT_EQ((co_await std::move(before)).rows, 1);
    const std::string failed = co_await std::move(fails);
    EXPECT_TRUE(has(failed, "constraint 23505: troupe: postgres: row 3 of 4: ")) << failed;
    EXPECT_EQ((co_await std::move(after)).rows, 1);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*)::int FROM accounts"), 6);
    // Nothing is sent of a call whose last row cannot be.
    EXPECT_TRUE(
        has(co_await failure_of(db.execute_many(add_account, too_many_cents())), "conversion"));
    EXPECT_EQ((co_await db.execute("UPDATE accounts SET cents = 7")).rows, 6);
    EXPECT_EQ(
        (co_await db.execute_many(
             "UPDATE accounts SET cents = cents + $1 WHERE name = $2 RETURNING cents", raises()))
            .rows,
        2);
    EXPECT_EQ((co_await db.execute_many(add_account, rows_of_accounts())).rows, 0);
  });
  EXPECT_EQ(cents("Ada"), "8");
  EXPECT_EQ(cents("Grace"), "10");
}

std::vector<std::tuple<int>> three_alike() { return {{1}, {1}, {1}}; }

// A rule that is checked when all rows are there is broken by no row of them.
TEST_P(postgres_transactions, a_rule_that_is_checked_at_the_end_names_no_row) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script(
        "DROP TABLE IF EXISTS late; CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY "
        "DEFERRED)");
    const std::string failed =
        co_await failure_of(db.execute_many("INSERT INTO late VALUES ($1)", three_alike()));
    EXPECT_TRUE(has(failed, "constraint 23505: troupe: postgres: behind the last of 3 rows: "))
        << failed;
  });
}

TEST_P(postgres_transactions, many_rows_are_part_of_a_transaction) {
  with([](postgres::connection db) -> task<> {
    const auto adds = [](postgres::transaction& all) -> task<> {
      co_await all.execute_many(add_account, two_accounts("Alan", 1, "Barbara", 2));
      EXPECT_TRUE(
          has(co_await failure_of(all.execute_many(add_account, two_accounts("Tony", 4, "Ada", 3))),
              "row 2 of 2"));
    };
    EXPECT_TRUE(has(co_await failure_of(db.in_transaction(adds)), "was rolled back"));
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*)::int FROM accounts"), 2);
  });
}

TEST_P(postgres_transactions, there_is_a_limit_to_many_rows) {
  with([](postgres::connection db) -> task<> {
    std::vector<std::tuple<int>> numbers(65'536, std::tuple<int>(1));
    co_await db.run_script("CREATE TABLE IF NOT EXISTS numbers (n int); TRUNCATE numbers");
    constexpr const char* add = "INSERT INTO numbers VALUES ($1)";
    EXPECT_EQ((co_await db.execute_many(add, numbers)).rows, 65'536);
    numbers.emplace_back(1);
    std::string failed = "none";
    try {
      auto adds = db.execute_many(add, numbers);
      co_await std::move(adds);
    } catch (const database::error& refused) {
      failed = refused.what();
    }
    EXPECT_TRUE(has(failed, "65537 rows") && has(failed, "copy_in")) << failed;
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*)::int FROM numbers"), 65'536);
  });
}

TEST_P(postgres_transactions, a_stop_leaves_nothing_of_many_rows) {
  with([](postgres::connection db) -> task<> {
    const auto adds = [&] {
      return db.execute_many(
          "INSERT INTO accounts SELECT $1, $2 FROM (SELECT pg_sleep($3)) AS waits",
          slow_accounts());
    };
    EXPECT_THROW(co_await with_deadline(100ms, adds), timed_out);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*)::int FROM accounts"), 2);
  });
}

TEST_P(postgres_transactions, other_calls_wait_for_the_end_of_a_transaction) {
  with([](postgres::connection db) -> task<> {
    const auto slow = [](postgres::transaction& all) -> task<> {
      co_await all.execute("UPDATE accounts SET cents = 7");
      co_await all.execute("SELECT pg_sleep(0.05)");
      throw std::runtime_error("no");
    };
    future<> first = spawn(db.in_transaction(slow));
    std::vector<future<std::optional<int>>> reads;
    for (int i = 0; i < 20; ++i)
      reads.push_back(
          spawn(db.query_one<int>("SELECT cents FROM accounts WHERE name = $1", "Ada")));
    for (auto& one : reads) EXPECT_EQ(co_await std::move(one), 500);
    EXPECT_THROW(co_await std::move(first), std::runtime_error);
  });
}

TEST_P(postgres_transactions, changes_of_the_same_at_the_same_time_are_a_conflict) {
  runtime rt(options());
  const auto test = [](postgres::connection one, postgres::connection other) -> task<> {
    const auto body = [other](postgres::transaction& all) -> task<> {
      static_cast<void>(co_await all.query<int>("SELECT cents FROM accounts"));
      co_await other.execute("UPDATE accounts SET cents = cents + 1");
      co_await all.execute("UPDATE accounts SET cents = cents + 1");
    };
    const std::string failed =
        co_await failure_of(one.in_transaction(body, postgres::isolation::repeatable_read));
    EXPECT_TRUE(has(failed, "conflict 40001")) << failed;
  };
  future<> done =
      rt.spawn(test(postgres::connection(rt, target()), postgres::connection(rt, target())));
  rt.run();
  done.get();
}

TEST_P(postgres_transactions, a_deadline_cancels_the_statement_that_runs) {
  with([](postgres::connection db) -> task<> {
    const auto begun = std::chrono::steady_clock::now();
    const auto sleeps = [&] { return db.execute("SELECT pg_sleep(1000)"); };
    EXPECT_THROW(co_await with_deadline(50ms, sleeps), timed_out);
    // Behind it in the pipeline.
    EXPECT_EQ(co_await db.query_one<int>("SELECT 1"), 1);
    const auto body = [](postgres::transaction& all) -> task<> {
      co_await all.execute("UPDATE accounts SET cents = 0");
      co_await all.execute("SELECT pg_sleep(1000)");
    };
    const auto changes = [&] { return db.in_transaction(body); };
    EXPECT_THROW(co_await with_deadline(50ms, changes), timed_out);
    EXPECT_EQ(co_await db.query_one<int>("SELECT cents FROM accounts WHERE name = 'Ada'"), 500);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 500s);
  });
}

TEST_P(postgres_transactions, a_stop_cancels_its_own_statement_and_no_other) {
  with([](postgres::connection db) -> task<> {
    for (int round = 0; round < fewer(20); ++round) {
      std::stop_source stops;
      const auto sleeps = [](postgres::connection on, std::stop_token stop) -> task<> {
        const auto runs = [&] { return on.execute("SELECT pg_sleep(1000)"); };
        EXPECT_THROW(co_await with_stop(stop, runs), cancelled);
      };
      future<> first = spawn(sleeps(db, stops.get_token()));
      std::vector<future<std::optional<int>>> others;
      const auto adds = [](postgres::connection on, int i) {
        return on.query_one<int>("SELECT $1::int + (pg_sleep(0.001) IS NULL)::int", i);
      };
      for (int i = 0; i < 30; ++i) others.push_back(spawn(adds(db, i)));
      stops.request_stop();
      for (int i = 0; i < 30; ++i)
        EXPECT_EQ(co_await std::move(others[static_cast<std::size_t>(i)]), i);
      co_await std::move(first);
    }
  });
}

// The statement ends by itself while its cancel is on the way.
TEST_P(postgres_transactions, a_cancel_that_comes_late_ends_no_transaction) {
  with([](postgres::connection db) -> task<> {
    const auto given_up = [&] { return db.execute("SELECT pg_sleep(0.003)"); };
    const auto body = [](postgres::transaction& all) -> task<> {
      co_await all.execute("UPDATE accounts SET cents = cents + 1 WHERE name = 'Ada'");
      co_await all.execute("SELECT pg_sleep(0.005)");
    };
    for (int round = 0; round < fewer(30); ++round) {
      try {
        co_await with_deadline(2ms, given_up);
      } catch (const timed_out&) {
      }
      co_await db.in_transaction(body);
    }
    const std::optional<int> now =
        co_await db.query_one<int>("SELECT cents FROM accounts WHERE name = 'Ada'");
    EXPECT_EQ(now, 500 + fewer(30));
  });
}

TROUPE_TEST_EACH(postgres_transactions, threaded_settings);

}  // namespace
}  // namespace troupe::test
