// postgres::connection: statements, rows and values.
#include "troupe/postgres/connection.hpp"

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "postgres/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct item {
  std::string name;
  int pieces;
};
enum class color : std::uint8_t { red = 1, blue = 2 };
struct everything {
  bool flag;
  std::int16_t small;
  std::uint32_t wide;
  std::int64_t widest;
  color paint;
  double price;
  float single;
  std::string text;
  std::vector<std::byte> bytes;
  std::chrono::system_clock::time_point at;
  std::chrono::sys_days day;
  std::optional<int> maybe;
  std::optional<std::string> perhaps;
};

class postgres_connections : public postgres_fixture {};

TEST_P(postgres_connections, rows_are_read_by_the_names_of_members) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TEMP TABLE items (name text PRIMARY KEY, pieces int NOT NULL);"
        "INSERT INTO items VALUES ('ink', 5), ('pen', 12)");
    const auto all = co_await db.query<item>("SELECT pieces, name FROM items ORDER BY name");
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all.front().name, "ink");
    EXPECT_EQ(all.back().pieces, 12);
    const auto few = co_await db.query<std::tuple<std::string, int>>(
        "SELECT name, pieces FROM items WHERE pieces < $1", 10);
    EXPECT_EQ(few, (std::vector<std::tuple<std::string, int>>{{"ink", 5}}));
    const auto sum = co_await db.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 17);
    const auto none = co_await db.query_one<item>("SELECT * FROM items WHERE name = $1", "x");
    EXPECT_FALSE(none.has_value());
    const postgres::changes made = co_await db.execute("UPDATE items SET pieces = pieces + $1", 1);
    EXPECT_EQ(made.rows, 2);
    const postgres::changes read = co_await db.execute("SELECT * FROM items");
    EXPECT_EQ(read.rows, 0);
  });
}

TEST_P(postgres_connections, values_come_back_as_they_were) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TEMP TABLE kinds (flag bool, small int2, wide oid, widest int8, paint int4, "
        "price float8, single float4, text text, bytes bytea, at timestamptz, day date, maybe "
        "int4, perhaps varchar)");
    const std::string text("quotes ' and \" or 1=1; -- \xc3\xa4");
    const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}};
    const auto at = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    const std::chrono::sys_days day(std::chrono::year(1969) / 7 / 20);
    co_await db.execute(
        "INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", true,
        std::int16_t{-128}, std::numeric_limits<std::uint32_t>::max(),
        std::numeric_limits<std::int64_t>::min(), color::blue, 0.1, 0.1f, text, bytes, at, day,
        std::nullopt, std::optional<std::string>("there"));
    for (const char* const words : {"SELECT * FROM kinds", "SELECT * FROM kinds WHERE $1 > 0"}) {
      const bool second = std::string_view(words).ends_with('0');
      auto call = second ? db.query_one<everything>(words, 1) : db.query_one<everything>(words);
      const auto got = co_await std::move(call);
      EXPECT_TRUE(got.has_value());
      EXPECT_TRUE(got->flag);
      EXPECT_EQ(got->small, -128);
      EXPECT_EQ(got->wide, std::numeric_limits<std::uint32_t>::max());
      EXPECT_EQ(got->widest, std::numeric_limits<std::int64_t>::min());
      EXPECT_EQ(got->paint, color::blue);
      EXPECT_EQ(got->price, 0.1);
      EXPECT_EQ(got->single, 0.1f);
      EXPECT_EQ(got->text, text);
      EXPECT_EQ(got->bytes, bytes);
      EXPECT_EQ(got->at, at);
      EXPECT_EQ(got->day, day);
      EXPECT_EQ(got->maybe, std::nullopt);
      EXPECT_EQ(got->perhaps, "there");
    }
  });
}

using in_text = std::tuple<std::string, bool, std::int64_t, double, std::vector<std::byte>,
                           std::chrono::system_clock::time_point, std::chrono::sys_days>;

TEST_P(postgres_connections, a_column_of_an_unknown_type_makes_all_columns_texts) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script("SET TimeZone = 'Asia/Kolkata'");
    const auto got = co_await db.query_one<in_text>(
        "SELECT '(1,2)'::point, true, -9223372036854775808, 1.25::float8, '\\x00ff'::bytea, "
        "'1999-12-31 23:59:59.5+00'::timestamptz, '2024-02-29'::date");
    using namespace std::chrono;
    const sys_days day(year(2000) / 1 / 1);
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(*got,
              in_text("(1,2)", true, std::numeric_limits<std::int64_t>::min(), 1.25,
                      {std::byte{0}, std::byte{255}}, day - 500ms, sys_days(year(2024) / 2 / 29)));
  });
}

TEST_P(postgres_connections, numbers_of_any_length_are_texts_and_integers_if_they_fit) {
  with([](postgres::connection db) -> task<> {
    for (const char* const number :
         {"0", "0.000", "-0.00012", "12345678901234567890.5", "10000", "-99999999.9999", "0.5",
          "100000000000000000000", "NaN", "9999.0001"}) {
      const auto text = co_await db.query_one<std::string>("SELECT $1::text::numeric", number);
      EXPECT_EQ(text, number);
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT 12.00::numeric"), 12);
    EXPECT_EQ(co_await db.query_one<double>("SELECT 0.1::numeric"), 0.1);
    EXPECT_TRUE(has(co_await failure_of(db.query<int>("SELECT 12.5::numeric AS n")), "`n` is a"));
    EXPECT_EQ(co_await db.query_one<std::string>("SELECT ($1::numeric * 2)::text", 21), "42");
    EXPECT_EQ(co_await db.query_one<std::string>("SELECT ($1::numeric * 2)::text", 0.25), "0.50");
    EXPECT_EQ(co_await db.query_one<std::string>("SELECT $1::uuid",
                                                 "00112233-4455-6677-8899-aabbccddeeff"),
              "00112233-4455-6677-8899-aabbccddeeff");
    EXPECT_EQ(co_await db.query_one<std::string>("SELECT $1::jsonb", "{\"a\": [1]}"),
              "{\"a\": [1]}");
  });
}

TEST_P(postgres_connections, what_does_not_fit_is_an_error_that_names_the_column) {
  with([](postgres::connection db) -> task<> {
    EXPECT_EQ(co_await failure_of(db.query<std::string>("SELECT 1 AS n")),
              "conversion: troupe: the column `n` is an integer; a text is needed");
    EXPECT_EQ(co_await failure_of(db.query<int>("SELECT NULL::int AS gone")),
              "conversion: troupe: the column `gone` is NULL; read it into a std::optional");
    EXPECT_TRUE(has(co_await failure_of(db.query<std::int8_t>("SELECT 128 AS n")), "`n` is 128"));
    EXPECT_TRUE(has(co_await failure_of(db.query<item>("SELECT 1 AS pieces")), "`name`"));
    EXPECT_TRUE(
        has(co_await failure_of(db.query<item>("SELECT 'a' AS name, 1 AS pieces, 2 AS x")), "`x`"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1::int2", 40'000)), "parameter 1"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1::int")), "has 1 parameters"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1::bytea", "x")), "bytea"));
    const std::string zero("a\0b", 3);
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1::text", zero)), "22021"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1::uuid", zero)), "zero byte"));
    EXPECT_TRUE(has(co_await failure_of(db.query_one<int>("SELECT generate_series(1, 2)")),
                    "too many rows"));
    EXPECT_TRUE(has(co_await failure_of(
                        db.query<std::chrono::sys_seconds>("SELECT 'infinity'::timestamptz AS t")),
                    "`t`"));
  });
}

TEST_P(postgres_connections, refusals_have_a_kind_and_the_words_of_the_server) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TEMP TABLE people (name text CONSTRAINT one_name UNIQUE, age int NOT NULL CHECK "
        "(age > 0))");
    co_await db.execute("INSERT INTO people VALUES ($1, $2)", "Ada", 36);
    try {
      co_await db.execute("INSERT INTO people VALUES ($1, $2)", "Ada", 36);
      ADD_FAILURE();
    } catch (const postgres::error& failed) {
      EXPECT_EQ(failed.kind(), database::failure::constraint);
      EXPECT_EQ(failed.broken_rule(), database::rule::unique);
      EXPECT_EQ(failed.effect(), database::effect::none);
      EXPECT_EQ(failed.sqlstate(), "23505");
      EXPECT_EQ(failed.constraint(), "one_name");
      EXPECT_TRUE(has(failed.detail(), "Ada"));
    }
    EXPECT_TRUE(has(co_await failure_of(db.execute("INSERT INTO people VALUES ('B', -1)")),
                    "constraint 23514"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("INSERT INTO people VALUES ('C', NULL)")),
                    "constraint 23502"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELEKT")), "statement 42601"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1 / $1::int", 0)), "conversion 22012"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1; SELECT 2")), "statement 42601"));
    EXPECT_TRUE(has(co_await failure_of(db.run_script("SELECT 1; SELEKT")), "statement 42601"));
    EXPECT_EQ(co_await db.query_one<int>("SELECT 5"), 5);
  });
}

TEST_P(postgres_connections, what_begins_or_ends_a_transaction_is_refused) {
  with([](postgres::connection db) -> task<> {
    for (const char* const words :
         {"BEGIN", " start transaction", "-- hello\nCommit", "/* a /* b */ */ rollback", "END",
          "ABORT", "PREPARE TRANSACTION 'x'"}) {
      EXPECT_TRUE(has(co_await failure_of(db.execute(words)), "use in_transaction")) << words;
    }
    EXPECT_TRUE(has(co_await failure_of(db.execute("COPY x FROM STDIN")), "copy_in"));
    EXPECT_TRUE(has(co_await failure_of(db.run_script("BEGIN; SELECT 1")), "in_transaction"));
    // None is open now.
    EXPECT_TRUE(has(co_await failure_of(db.execute("SAVEPOINT here")), "25P01"));
  });
}

TEST_P(postgres_connections, calls_at_the_same_time_fail_by_themselves) {
  with([](postgres::connection db) -> task<> {
    std::vector<future<std::optional<int>>> all;
    for (int i = 0; i < 200; ++i)
      all.push_back(spawn(db.query_one<int>("SELECT 100 / ($1::int - 50)", i)));
    int failed = 0;
    for (int i = 0; i < 200; ++i) {
      try {
        EXPECT_EQ(co_await std::move(all[static_cast<std::size_t>(i)]), 100 / (i - 50));
      } catch (const postgres::error& of) {
        EXPECT_EQ(of.sqlstate(), "22012");
        EXPECT_EQ(i, 50);
        ++failed;
      }
    }
    EXPECT_EQ(failed, 1);
  });
}

TEST_P(postgres_connections, large_values_travel_both_ways_at_the_same_time) {
  with([](postgres::connection db) -> task<> {
    std::vector<future<std::optional<std::string>>> all;
    const std::string large(3'000'000, 'x');
    for (int i = 0; i < 8; ++i)
      all.push_back(spawn(db.query_one<std::string>("SELECT $1::text", large)));
    for (auto& one : all) {
      const auto got = co_await std::move(one);
      EXPECT_TRUE(got == large);
    }
  });
}

TEST_P(postgres_connections, statements_are_kept_up_to_a_number_and_made_anew_when_tables_change) {
  postgres::options few;
  few.statements_max = 3;
  with(
      [](postgres::connection db) -> task<> {
        for (int round = 0; round < 2; ++round) {
          for (int i = 0; i < 10; ++i) {
            const std::string words = "SELECT " + std::to_string(i);
            EXPECT_EQ(co_await db.query_one<int>(words), i);
          }
        }
        const auto kept = co_await db.query_one<int>("SELECT count(*) FROM pg_prepared_statements");
        EXPECT_LE(kept.value_or(99), 3);
        co_await db.run_script("CREATE TEMP TABLE t (n int); INSERT INTO t VALUES (1)");
        EXPECT_EQ(co_await db.query_one<int>("SELECT * FROM t"), 1);
        co_await db.run_script("ALTER TABLE t ALTER n TYPE bigint");
        EXPECT_EQ(co_await db.query_one<int>("SELECT * FROM t"), 1);
        co_await db.run_script("DEALLOCATE ALL");
        EXPECT_EQ(co_await db.query_one<int>("SELECT * FROM t"), 1);
      },
      few);
}

TROUPE_TEST_EACH(postgres_connections, threaded_settings);

}  // namespace
}  // namespace troupe::test
