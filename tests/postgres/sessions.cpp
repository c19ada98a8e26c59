// postgres::connection: the suite of all databases for sessions, and PostgreSQL's own part of it:
// prepared statements, limits of answers, domains and arrays.
#include "databases/sessions.hpp"

#include <chrono>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "postgres/fixture.hpp"
#include "support/resident.hpp"
#include "troupe/postgres/pool.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using database::failure;

struct postgres_place {
  using connection = postgres::connection;
  using transaction = postgres::transaction;
  static constexpr failure ended_kind = failure::lost;
  static inline const std::vector<std::string> headers{"postgres/connection.hpp",
                                                       "postgres/pool.hpp"};
  static constexpr const char* tables =
      "DROP TABLE IF EXISTS log, counted, strict; CREATE TABLE log (x text);"
      "CREATE TABLE counted (id int PRIMARY KEY, n text);"
      "INSERT INTO counted VALUES (1, 'a'), (2, 'b')";

  template <class Calls>
  static std::vector<named_call<Calls>> calls() {
    auto all = shared_calls<Calls>();
    all.push_back(
        {"copy_in", [](Calls& on, std::string text) { return drop_result(on.copy_in(text)); }});
    all.push_back(
        {"copy_out", [](Calls& on, std::string text) { return drop_result(on.copy_out(text)); }});
    return all;
  }
  static task<> end_transaction(transaction& within) {
    const auto call = [&] {
      return within.execute("SELECT pg_terminate_backend(pg_backend_pid())");
    };
    auto ends = end_of_call(call);
    static_cast<void>(co_await std::move(ends));
  }
  static std::vector<session_case> cases() {
    using enum run_as;
    constexpr bool succeeds = false;
    return {
        {"a change", "INSERT INTO counted VALUES (3, 'c')", statement, then::open, succeeds},
        {"a broken rule", "INSERT INTO counted VALUES (1, 'x')", statement, then::failed},
        {"a wrong text", "SELEKT 1", statement, then::failed},
        {"many rows", "INSERT INTO counted VALUES ($1, 'm')", many, then::failed},
        {"a value that does not fit", "UPDATE counted SET id = 1000 WHERE id = 1 RETURNING id",
         reads_a_number, then::open},
        {"several rows for one", "UPDATE counted SET id = id + 10 RETURNING id", reads_a_number,
         then::any_rule},
        // Beside a load the deadline may pass before it is sent, and the transaction goes on.
        {"a deadline", "SELECT pg_sleep(1000)", runs_out_of_time, then::any_rule},
        {"a script that fails", "INSERT INTO log VALUES ('in'); SELECT 1 / 0", script,
         then::failed},
        {"COMMIT", "COMMIT", statement, then::open},
        {"END", "-- the end\r END", statement, then::open},
        {"BEGIN", "BEGIN", statement, then::open},
        {"ROLLBACK", "/* back */ ROLLBACK", statement, then::open},
        {"a script with COMMIT", "COMMIT", script, then::open},
        {"a script with COMMIT behind a comment", "--\rCOMMIT", script, then::open},
        {"a column of the name begin", "CREATE TEMP TABLE spans (begin int); COMMIT AND CHAIN",
         script, then::open},
        {"a table of the name begin", "CREATE TEMP TABLE begin (x int); COMMIT; BEGIN", script,
         then::open},
        {"a function of the name begin",
         "CREATE OR REPLACE FUNCTION begin() RETURNS int LANGUAGE sql AS 'select 1'; ROLLBACK; "
         "BEGIN",
         script, then::open},
        {"a function of that name, and AND CHAIN",
         "CREATE OR REPLACE FUNCTION begin() RETURNS int LANGUAGE sql AS 'select 1'; ROLLBACK AND "
         "CHAIN",
         script, then::open},
        {"a text that goes on behind a line end",
         "SELECT E'a'\n'\\''; COMMIT AND CHAIN; SELECT 'x'", script, then::open},
        {"a text that goes on behind a comment",
         "SELECT E'a' -- more\n'\\''; COMMIT AND CHAIN; SELECT 'x'", script, then::open},
        {"a script with more behind COMMIT", "COMMIT; INSERT INTO log VALUES ('behind')", script,
         then::open},
        {"a script with ROLLBACK and BEGIN", "-- back\nROLLBACK; BEGIN", script, then::open},
        {"a script with AND CHAIN", "SELECT ';'; ROLLBACK AND CHAIN", script, then::open},
        {"a script with ABORT", "SELECT $a$;$a$; ABORT", script, then::open},
        {"a script with PREPARE TRANSACTION", "PREPARE TRANSACTION 'x'", script, then::open},
        {"a script with words in texts", "SELECT ';COMMIT', E'\\';COMMIT', $$;COMMIT;$$", script,
         then::open, succeeds},
        {"a function with a block",
         "CREATE OR REPLACE FUNCTION one() RETURNS int BEGIN ATOMIC SELECT 1; END", script,
         then::open, succeeds},
        {"a savepoint",
         "SAVEPOINT here; INSERT INTO log VALUES ('gone'); ROLLBACK TO here; RELEASE here", script,
         then::open, succeeds},
        {"a setting", "SET LOCAL work_mem = '1MB'", script, then::open, succeeds},
    };
  }
};

// Not in the coroutine: g++ 12 cannot have lists of values there.
struct array_values {
  std::vector<std::byte> bytes{std::byte{0}, std::byte{0x5c}};
  std::vector<std::optional<int>> numbers{1, std::nullopt, -3};
  std::vector<std::string_view> texts{"a,\"b\\", "", "NULL", "{}"};
  std::vector<std::vector<std::byte>> many_bytes{bytes, {}};
  std::vector<std::chrono::sys_days> days{std::chrono::sys_days(std::chrono::days(20'000))};
  std::vector<bool> flags{true, false};
  std::vector<double> reals{0.1, -1e300};
};
std::vector<int> five_and_one() { return {5, 1}; }
std::vector<int> one_number() { return {1}; }
std::vector<std::byte> two_bytes() { return {std::byte{0}, std::byte{255}}; }
std::vector<std::tuple<int>> two_numbers() { return {{7}, {8}}; }

class postgres_sessions : public postgres_fixture {};

TEST_P(postgres_sessions, a_transaction_is_stored_as_one_after_any_statement) {
  with(check_all_cases<postgres_place>);
}

TEST_P(postgres_sessions, a_transaction_whose_connection_is_lost_refuses_each_call) {
  with(check_ended_scope<postgres_place>);
}

TEST_P(postgres_sessions, the_effect_of_a_failed_call_is_true) {
  with(check_effects<postgres_place>);
}

TEST_P(postgres_sessions, each_text_and_target_with_a_zero_byte_is_refused) {
  check_all_calls_are_listed<postgres_place>();
  with([](postgres::connection db) -> task<> {
    auto prepares = db.run_script(postgres_place::tables);
    co_await std::move(prepares);
    auto checks = check_zero_bytes<postgres_place>(db);
    co_await std::move(checks);
    auto counts = db.query_one<std::int64_t>("SELECT count(*) FROM counted");
    EXPECT_EQ(co_await std::move(counts), 2);
  });
  with(target() + std::string(" application_name=a\0b", 22), [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.run_script("")), "zero byte"));
  });
}

TEST_P(postgres_sessions, a_call_that_outlives_its_scope_stores_nothing) {
  with(check_late_call<postgres_place>);
}

task<std::string> read_in_transaction(postgres::connection db) {
  std::string got;
  const auto body = [&](postgres::transaction& within) -> task<> {
    auto reads = within.query_one<std::int64_t>("SELECT x FROM altered");
    got = std::to_string((co_await std::move(reads)).value_or(0));
  };
  const auto all = [&] { return db.in_transaction(body); };
  auto runs = end_of_call(all);
  const call_end end = co_await std::move(runs);
  co_return end.threw ? end.text : got;
}

TEST_P(postgres_sessions, a_statement_that_became_stale_is_prepared_anew_in_transactions) {
  postgres_server::get().sql(
      "DROP TABLE IF EXISTS altered; CREATE TABLE altered (x int); INSERT INTO altered VALUES (1)");
  with([](postgres::connection db) -> task<> {
    EXPECT_EQ(co_await read_in_transaction(db), "1");
    postgres_server::get().sql("ALTER TABLE altered ALTER COLUMN x TYPE bigint");
    static_cast<void>(co_await read_in_transaction(db));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await read_in_transaction(db), "1") << "ALTER";
    for (const char* const drops : {"DISCARD ALL", "DEALLOCATE ALL"}) {
      auto discards = db.run_script(drops);
      co_await std::move(discards);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await read_in_transaction(db), "1") << drops;
    }
    // What is prepared is known to both sides alone.
    auto counts = db.query_one<std::int64_t>(
        "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT x%'");
    EXPECT_EQ(co_await std::move(counts), 1);
  });
}

TEST_P(postgres_sessions, types_of_parameters_are_asked_for_again_after_alter) {
  postgres_server::get().sql("DROP TABLE IF EXISTS altered; CREATE TABLE altered (x int)");
  with([](postgres::connection db) -> task<> {
    constexpr const char* adds = "INSERT INTO altered VALUES ($1)";
    auto first = db.execute(adds, 1);
    co_await std::move(first);
    EXPECT_TRUE(has(co_await failure_of(db.execute(adds, std::int64_t{5'000'000'000})),
                    "out of the range"));
    postgres_server::get().sql("ALTER TABLE altered ALTER COLUMN x TYPE bigint");
    EXPECT_EQ(co_await failure_of(db.execute(adds, std::int64_t{5'000'000'000})), "none");
    EXPECT_TRUE(has(co_await failure_of(db.execute(adds, "a text")), "22P02"));
    postgres_server::get().sql("ALTER TABLE altered ALTER COLUMN x TYPE text");
    EXPECT_EQ(co_await failure_of(db.execute(adds, "a text")), "none");
    const auto within = [&](postgres::transaction& all) -> task<> {
      auto again = all.execute(adds, "another");
      co_await std::move(again);
    };
    postgres_server::get().sql(
        "ALTER TABLE altered ALTER COLUMN x TYPE bytea USING convert_to(x, 'UTF8')");
    const auto bytes = [&](postgres::transaction& all) -> task<> {
      auto again = all.execute(adds, std::vector<std::byte>(3));
      co_await std::move(again);
    };
    EXPECT_EQ(co_await failure_of(db.in_transaction(bytes)), "none");
    EXPECT_TRUE(has(co_await failure_of(db.in_transaction(within)), "bytea"));
    auto counts = db.query_one<std::int64_t>("SELECT count(*) FROM altered");
    EXPECT_EQ(co_await std::move(counts), 4);
  });
}

TEST_P(postgres_sessions, names_of_prepared_statements_are_those_of_one_connection) {
  runtime rt(options());
  const auto name_of_statement = [](postgres::connection db) -> task<std::string> {
    constexpr const char* text = "SELECT name FROM pg_prepared_statements LIMIT 1";
    auto first = db.query_one<std::string>(text);
    const auto name = co_await std::move(first);
    co_return name.value_or("");
  };
  const auto test = [&](postgres::connection a, postgres::connection b) -> task<> {
    auto of_a = name_of_statement(a);
    const std::string first = co_await std::move(of_a);
    auto of_b = name_of_statement(b);
    const std::string second = co_await std::move(of_b);
    EXPECT_EQ(first.size(), std::string("troupe_").size() + 32 + 2) << first;
    EXPECT_TRUE(first.starts_with("troupe_"));
    EXPECT_NE(first, second);
  };
  future<> done =
      rt.spawn(test(postgres::connection(rt, target()), postgres::connection(rt, target())));
  rt.run();
  done.get();
}

TEST_P(postgres_sessions, without_prepared_statements_the_same_values_travel) {
  const auto test = [](postgres::connection db) -> task<> {
    auto prepares = db.run_script(
        "DROP TABLE IF EXISTS kinds; CREATE TABLE kinds (i int, b bytea, t timestamptz, d double "
        "precision, f boolean, s text)");
    co_await std::move(prepares);
    const std::vector<std::byte> bytes = two_bytes();
    const auto at = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    using row = std::tuple<int, std::vector<std::byte>, std::chrono::system_clock::time_point,
                           double, bool, std::string>;
    for (int i = 0; i < 3; ++i) {
      auto adds = db.execute("INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6)", i, bytes, at, 0.1,
                             true, "x");
      EXPECT_EQ((co_await std::move(adds)).rows, 1);
    }
    auto reads = db.query<row>("SELECT * FROM kinds WHERE i = $1", 2);
    const auto rows = co_await std::move(reads);
    EXPECT_EQ(rows.size(), 1u);
    if (!rows.empty()) {
      EXPECT_EQ(rows.front(), row(2, bytes, at, 0.1, true, "x"));
    }
    auto many = db.execute_many("INSERT INTO kinds (i) VALUES ($1)", two_numbers());
    EXPECT_EQ((co_await std::move(many)).rows, 2);
    auto counts = db.query_one<std::int64_t>("SELECT count(*) FROM pg_prepared_statements");
    EXPECT_EQ(co_await std::move(counts), 0);
    auto checks = check_all_cases<postgres_place>(db);
    co_await std::move(checks);
  };
  with(test, {.keep_prepared = false});
}

TEST_P(postgres_sessions, domains_and_arrays_are_parameters) {
  postgres_server::get().sql(
      "DROP TABLE IF EXISTS special; DROP DOMAIN IF EXISTS small_key, key; "
      "CREATE DOMAIN key AS bytea CHECK (length(VALUE) < 10); CREATE DOMAIN small_key AS key; "
      "CREATE TABLE special (k small_key, n int[], s text[], b bytea[], t timestamptz[], f "
      "boolean[], d double precision[])");
  const auto test = [](postgres::connection db) -> task<> {
    const array_values all;
    const std::vector<std::byte>& bytes = all.bytes;
    auto adds = db.execute("INSERT INTO special VALUES ($1, $2, $3, $4, $5, $6, $7)", bytes,
                           all.numbers, all.texts, all.many_bytes, all.days, all.flags, all.reals);
    EXPECT_EQ((co_await std::move(adds)).rows, 1);
    auto reads = db.query_one<std::vector<std::byte>>("SELECT k FROM special");
    EXPECT_EQ(co_await std::move(reads), bytes);
    auto equals = db.query_one<bool>(
        "SELECT n = '{1,NULL,-3}' AND s = ARRAY['a,\"b\\', '', 'NULL', '{}'] AND b = "
        "ARRAY['\\x005c'::bytea, ''] AND t = ARRAY['2024-10-04 00:00+00'::timestamptz] AND f = "
        "'{t,f}' AND d = ARRAY[0.1::float8, -1e300::float8] FROM special");
    EXPECT_EQ(co_await std::move(equals), true);
    auto any = db.query_one<std::int64_t>("SELECT count(*) FROM special WHERE n[1] = ANY($1)",
                                          five_and_one());
    EXPECT_EQ(co_await std::move(any), 1);
    auto empty = db.query_one<std::int64_t>("SELECT count(*) FROM special WHERE n[1] = ANY($1)",
                                            std::vector<int>{});
    EXPECT_EQ(co_await std::move(empty), 0);
    EXPECT_TRUE(
        has(co_await failure_of(db.execute("SELECT $1::int", one_number())), "is an array"));
    EXPECT_TRUE(
        has(co_await failure_of(db.execute("SELECT $1::text[]", all.many_bytes)), "bytea[]"));
    const std::vector<std::byte> long_bytes(10);
    EXPECT_TRUE(
        has(co_await failure_of(db.execute("INSERT INTO special (k) VALUES ($1)", long_bytes)),
            "23514"));
  };
  with(test);
  postgres_server::get().sql("TRUNCATE special");
  with(test, {.keep_prepared = false});
}

// The server would send a row after the other for hours.
constexpr const char* endless =
    "WITH RECURSIVE n (i) AS (SELECT 1::bigint UNION ALL SELECT i + 1 FROM n) "
    "SELECT i, repeat('x', 1000) AS t FROM n";

TEST_P(postgres_sessions, an_answer_past_its_limits_is_cancelled_and_takes_no_memory) {
  const auto test = [](postgres::connection db) -> task<> {
    const std::size_t before = resident_bytes();
    // AddressSanitizer keeps up to 256 MiB of freed memory, and reuses it later.
    const std::size_t most = before + std::size_t{slow ? 512u : 64u} * 1024 * 1024;
    using row = std::tuple<std::int64_t, std::string>;
    for (int i = 0; i < 2; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      auto many = failure_of(db.query<row>(endless));
      const std::string failed = co_await std::move(many);
      EXPECT_TRUE(has(failed, "too many rows")) << failed;
      auto one = failure_of(db.query_one<row>(endless));
      EXPECT_TRUE(has(co_await std::move(one), "several rows"));
      EXPECT_LT(std::chrono::steady_clock::now() - begun, 200s);
      const std::size_t now = resident_bytes();
      EXPECT_LT(now, most) << (now - before) / 1024 << " KiB more";
    }
    auto dropped = db.execute("SELECT repeat('x', 1000) FROM generate_series(1, 100000)");
    co_await std::move(dropped);
    EXPECT_LT(resident_bytes(), most);
    auto works = db.query_one<int>("SELECT 1");
    EXPECT_EQ(co_await std::move(works), 1);
  };
  with(test, {.rows_max = 1'000});
  with(test, {.bytes_max = 1'000'000});
}

TEST_P(postgres_sessions, a_change_with_too_large_an_answer_is_undone_or_unknown) {
  const auto test = [](postgres::connection db) -> task<> {
    auto prepares = db.run_script(postgres_place::tables);
    co_await std::move(prepares);
    const auto call = [&] {
      return db.query<int>(
          "INSERT INTO counted SELECT g, 'g' FROM generate_series(10, 100) AS g "
          "RETURNING id");
    };
    auto ends = end_of_call(call);
    const call_end end = co_await std::move(ends);
    EXPECT_EQ(end.failed, failure::too_many_rows) << end.text;
    auto counts = db.query_one<std::int64_t>("SELECT count(*) FROM counted");
    const auto rows = co_await std::move(counts);
    if (end.effect == database::effect::none) {
      EXPECT_EQ(rows, 2);
    }
    // Exactly as many as are allowed are no failure.
    auto exact = db.query<int>("SELECT generate_series(1, 10)::int");
    EXPECT_EQ((co_await std::move(exact)).size(), 10u);
  };
  with(test, {.rows_max = 10});
}

TROUPE_TEST_EACH(postgres_sessions, each_thread_policy);

}  // namespace
}  // namespace troupe::test
