// sqlite::connection: the suite of all databases for sessions, and SQLite's own part of it.
#include "databases/sessions.hpp"

#include "support/conformance.hpp"
#include "support/scratch.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using database::failure;

constexpr const char* endless_change =
    "INSERT INTO counted WITH RECURSIVE c(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM c) "
    "SELECT x, 'n' FROM c";

struct sqlite_place {
  using connection = sqlite::connection;
  using transaction = sqlite::transaction;
  static constexpr failure ended_kind = failure::transaction_ended;
  static inline const std::vector<std::string> headers{"sqlite/connection.hpp"};
  static constexpr const char* tables =
      "DROP TABLE IF EXISTS log; CREATE TABLE log (x TEXT);"
      "DROP TABLE IF EXISTS counted; CREATE TABLE counted (id INTEGER PRIMARY KEY, n TEXT);"
      "INSERT INTO counted VALUES (1, 'a'), (2, 'b');"
      "DROP TABLE IF EXISTS strict;"
      "CREATE TABLE strict (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK);"
      "INSERT INTO strict VALUES (1);"
      "DROP TABLE IF EXISTS guarded; CREATE TABLE guarded (id INTEGER);"
      "CREATE TRIGGER guards BEFORE INSERT ON guarded BEGIN SELECT RAISE(ROLLBACK, 'no'); END";

  template <class Calls>
  static std::vector<named_call<Calls>> calls() {
    return shared_calls<Calls>();
  }
  static task<> end_transaction(transaction& within) {
    const auto call = [&] { return within.execute("INSERT INTO strict VALUES (1)"); };
    auto ends = end_of_call(call);
    static_cast<void>(co_await std::move(ends));
  }
  static std::vector<session_case> cases() {
    using enum run_as;
    constexpr bool succeeds = false;
    return {
        {"a change", "INSERT INTO counted VALUES (3, 'c')", statement, then::open, succeeds},
        {"a broken rule", "INSERT INTO counted VALUES (1, 'x')", statement, then::open},
        {"a wrong text", "SELEKT 1", statement, then::open},
        {"many rows", "INSERT INTO counted VALUES ($1, 'm')", many, then::open},
        {"a value that does not fit", "UPDATE counted SET id = 1000 WHERE id = 1 RETURNING id",
         reads_a_number, then::open},
        {"ON CONFLICT ROLLBACK", "INSERT INTO strict VALUES (1)", statement, then::ended},
        {"INSERT OR ROLLBACK", "INSERT OR ROLLBACK INTO counted VALUES (1, 'x')", statement,
         then::ended},
        {"many rows with OR ROLLBACK", "INSERT OR ROLLBACK INTO counted VALUES ($1, 'm')", many,
         then::ended},
        {"RETURNING with OR ROLLBACK",
         "INSERT OR ROLLBACK INTO counted VALUES (1, 'x') RETURNING id", reads_a_number,
         then::ended},
        {"a trigger with RAISE(ROLLBACK)", "INSERT INTO guarded VALUES (1)", statement,
         then::ended},
        {"a script with OR ROLLBACK",
         "INSERT OR ROLLBACK INTO counted VALUES (1, 'x'); INSERT INTO log VALUES ('in')", script,
         then::ended},
        // Beside a load the deadline may pass before its first step, and the transaction goes on.
        {"a deadline of a change", endless_change, runs_out_of_time, then::any_rule},
        {"a deadline of a query",
         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
         runs_out_of_time, then::open},
        {"a full disk", "INSERT INTO counted VALUES (9, zeroblob(50000000))", statement,
         then::any_rule},
        {"COMMIT", "COMMIT", statement, then::open},
        {"END", "END", statement, then::open},
        {"BEGIN", "BEGIN", statement, then::open},
        {"ROLLBACK", "/* back */ ROLLBACK", statement, then::open},
        {"a script with COMMIT", "COMMIT", script, then::open},
        {"a script with more behind COMMIT", "COMMIT; INSERT INTO log VALUES ('behind')", script,
         then::open},
        {"a script with ROLLBACK and BEGIN", "-- back\nROLLBACK; BEGIN", script, then::open},
        {"a savepoint",
         "SAVEPOINT here; INSERT INTO log VALUES ('gone'); ROLLBACK TO here; RELEASE here", script,
         then::open, succeeds},
        {"a pragma", "PRAGMA user_version = 4", script, then::open, succeeds},
    };
  }
};

// What stands before the row that was refused stays, and the error says so.
task<> fails_in_parts(sqlite::connection db) {
  co_await db.run_script(
      "CREATE TABLE part (id INTEGER PRIMARY KEY); INSERT INTO part VALUES (1);"
      "CREATE TABLE checked (x INTEGER); CREATE TRIGGER checks BEFORE INSERT ON checked WHEN "
      "new.x = 3 BEGIN SELECT RAISE(FAIL, 'no'); END");
  const std::vector<std::pair<std::string, database::effect>> statements{
      {"INSERT OR FAIL INTO part VALUES (3), (1)", database::effect::unknown},
      {"INSERT OR FAIL INTO part VALUES (1), (5)", database::effect::none},
      {"INSERT INTO part VALUES (6), (1)", database::effect::none},
      {"INSERT INTO checked VALUES (1), (3)", database::effect::unknown},
  };
  for (const auto& [text, expected] : statements) {
    for (const bool as_script : {false, true}) {
      std::optional<database::effect> got;
      try {
        if (as_script) {
          co_await db.run_script(text);
        } else {
          co_await db.execute(text);
        }
      } catch (const database::error& failed) {
        got = failed.effect();
      }
      EXPECT_EQ(got, expected) << text;
      co_await db.run_script("DELETE FROM part WHERE id > 1");
    }
  }
}

class sqlite_sessions : public conformance {
 protected:
  template <class Test>
  void with(Test test, sqlite::options chosen = {}) {
    runtime rt(options());
    future<> done = rt.spawn(test(sqlite::connection(rt, folder_ / "data.db", chosen)));
    rt.run();
    done.get();
  }
  scratch folder_;
};

TEST_P(sqlite_sessions, what_a_failed_statement_has_stored_is_told) { with(fails_in_parts); }

TEST_P(sqlite_sessions, a_transaction_is_stored_as_one_after_any_statement) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: virtual time stands still while a statement runs";
  const auto test = [](sqlite::connection db) -> task<> {
    auto limits = db.run_script("PRAGMA max_page_count = 500");
    co_await std::move(limits);
    auto checks = check_all_cases<sqlite_place>(db);
    co_await std::move(checks);
  };
  with(test, {.stored = sqlite::durability::off});
}

TEST_P(sqlite_sessions, a_transaction_that_has_ended_refuses_each_call) {
  with(check_ended_scope<sqlite_place>);
}

TEST_P(sqlite_sessions, a_call_that_outlives_its_scope_stores_nothing) {
  with(check_late_call<sqlite_place>);
}

TEST_P(sqlite_sessions, the_effect_of_a_failed_call_is_true) { with(check_effects<sqlite_place>); }

TEST_P(sqlite_sessions, a_script_that_fails_may_have_stored_its_beginning) {
  with([](sqlite::connection db) -> task<> {
    const auto half = [&] { return db.run_script("CREATE TABLE a (x); SELEKT 1"); };
    auto runs = end_of_call(half);
    EXPECT_EQ((co_await std::move(runs)).effect, database::effect::unknown);
    const auto nothing = [&] { return db.run_script("SELECT 1; SELEKT 1"); };
    auto fails = end_of_call(nothing);
    EXPECT_EQ((co_await std::move(fails)).effect, database::effect::none);
  });
}

TEST_P(sqlite_sessions, each_text_and_path_with_a_zero_byte_is_refused) {
  check_all_calls_are_listed<sqlite_place>();
  with([](sqlite::connection db) -> task<> {
    auto prepares = db.run_script(sqlite_place::tables);
    co_await std::move(prepares);
    auto checks = check_zero_bytes<sqlite_place>(db);
    co_await std::move(checks);
    const auto body = [](sqlite::transaction& within) -> task<> {
      auto checks_within = check_zero_bytes<sqlite_place>(within);
      co_await std::move(checks_within);
    };
    auto runs = db.in_transaction(body);
    co_await std::move(runs);
    auto counts = db.query_one<int>("SELECT count(*) FROM counted");
    EXPECT_EQ(co_await std::move(counts), 2);
  });
  runtime rt(options());
  EXPECT_THROW(sqlite::connection(rt, std::string("a\0b", 3)), option_error);
  EXPECT_THROW(sqlite::connection(rt, ""), option_error);
}

// The lock of the file is held by another connection. What was given up is not done later.
TEST_P(sqlite_sessions, a_deadline_ends_the_wait_for_a_lock) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: virtual time stands still while a statement waits";
  runtime rt(options());
  const std::string path = folder_ / "data.db";
  const auto test = [](sqlite::connection holder, sqlite::connection db) -> task<> {
    auto prepares = holder.run_script("CREATE TABLE marks (n)");
    co_await std::move(prepares);
    const auto holds = [&](sqlite::transaction& within) -> task<> {
      auto takes = within.execute("INSERT INTO marks VALUES (0)");
      co_await std::move(takes);
      const auto begun = std::chrono::steady_clock::now();
      const auto one = [&] { return db.execute("INSERT INTO marks VALUES (1)"); };
      EXPECT_THROW(co_await with_deadline(100ms, one), timed_out);
      std::vector<future<>> all;
      const auto in_company = [](sqlite::connection on) -> task<> {
        const auto adds = [&] { return on.execute("INSERT INTO marks VALUES (2)"); };
        EXPECT_THROW(co_await with_deadline(100ms, adds), timed_out);
      };
      for (int i = 0; i < 5; ++i) all.push_back(spawn(in_company(db)));
      for (future<>& each : all) co_await std::move(each);
      const auto script = [&] { return db.run_script("INSERT INTO marks VALUES (3)"); };
      EXPECT_THROW(co_await with_deadline(100ms, script), timed_out);
      const auto body = [](sqlite::transaction& inner) -> task<> {
        auto adds = inner.execute("INSERT INTO marks VALUES (4)");
        co_await std::move(adds);
      };
      const auto whole = [&] { return db.in_transaction(body); };
      EXPECT_THROW(co_await with_deadline(100ms, whole), timed_out);
      // The thread of that connection waits for nothing: a query is answered at once.
      auto reads = db.query_one<int>("SELECT count(*) FROM marks");
      EXPECT_EQ(co_await std::move(reads), 0);
      EXPECT_LT(std::chrono::steady_clock::now() - begun, 100s) << "busy_timeout was waited for";
    };
    auto runs = holder.in_transaction(holds);
    co_await std::move(runs);
    auto reads = db.query_one<int>("SELECT sum(n) FROM marks");
    EXPECT_EQ(co_await std::move(reads), 0) << "a change was made after its caller had given up";
  };
  future<> done = rt.spawn(
      test(sqlite::connection(rt, path), sqlite::connection(rt, path, {.busy_timeout = 1'000s})));
  rt.run();
  done.get();
}

TROUPE_TEST_EACH(sqlite_sessions, all_settings);

}  // namespace
}  // namespace troupe::test
