// sqlite::connection: statements, rows, transactions, and what it does when things go wrong.
#include "troupe/sqlite/connection.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "support/conformance.hpp"
#include "support/scratch.hpp"
#include "troupe/database/client.hpp"
#include "troupe/database/error.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using database::failure;

struct item {
  std::string name;
  int pieces;
};
enum class color : std::uint8_t { red = 1, blue = 2 };
struct everything {
  bool flag;
  std::int8_t small;
  std::uint32_t wide;
  std::int64_t widest;
  color paint;
  double price;
  std::string text;
  std::vector<std::byte> bytes;
  std::chrono::system_clock::time_point at;
  std::optional<int> maybe;
  std::optional<std::string> perhaps;
};

class sqlite_connections : public conformance {
 protected:
  std::string file(const char* name = "data.db") const { return folder_ / name; }

  // Runs test(connection) as a task.
  template <class Test>
  void with(sqlite::connection db, runtime& rt, Test test) {
    future<> done = rt.spawn(test(std::move(db)));
    rt.run();
    done.get();
  }
  template <class Test>
  void with(const std::string& path, Test test, sqlite::options chosen = {}) {
    runtime rt(options());
    with(sqlite::connection(rt, path, chosen), rt, std::move(test));
  }

  // The kind of failure with which the call ends.
  template <class T>
  static task<std::string> failure_of(task<T> call) {
    try {
      static_cast<void>(co_await std::move(call));
    } catch (const database::error& failed) {
      co_return std::string(database::name_of(failed.kind())) + ": " + failed.what();
    }
    co_return "none";
  }
  static task<std::string> failure_of(task<> call) {
    const auto with_result = [](task<> of) -> task<int> {
      co_await std::move(of);
      co_return 0;
    };
    return failure_of(with_result(std::move(call)));
  }
  static bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  }

 private:
  scratch folder_;
};

task<> make_items(const sqlite::connection& db) {
  co_await db.run_script(
      "CREATE TABLE items (name TEXT PRIMARY KEY, pieces INTEGER NOT NULL CHECK (pieces >= 0));"
      "INSERT INTO items VALUES ('ink', 5), ('pen', 12)");
}

TEST_P(sqlite_connections, rows_are_read_by_the_names_of_members) {
  with(":memory:", [](sqlite::connection db) -> task<> {
    co_await make_items(db);
    const auto all = co_await db.query<item>("SELECT pieces, name FROM items ORDER BY name");
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all.front().name, "ink");
    EXPECT_EQ(all.back().pieces, 12);
    const auto few = co_await db.query<std::tuple<std::string, int>>(
        "SELECT name, pieces FROM items WHERE pieces < ?", 10);
    EXPECT_EQ(few, (std::vector<std::tuple<std::string, int>>{{"ink", 5}}));
    const auto sum = co_await db.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 17);
    const auto none = co_await db.query_one<item>("SELECT * FROM items WHERE name = ?", "x");
    EXPECT_FALSE(none.has_value());
  });
}

static_assert(database::client<sqlite::connection>);

// Changes at the same time share a transaction. One of them breaks a rule, one ends the transaction
// of them all, and one runs out of time.
TEST_P(sqlite_connections, changes_at_the_same_time_fail_by_themselves) {
  with(file(), [](sqlite::connection db) -> task<> {
    co_await db.run_script("CREATE TABLE numbers (n INTEGER PRIMARY KEY)");
    co_await db.execute("INSERT INTO numbers VALUES (13), (40)");
    for (int round = 0; round < 3; ++round) {
      const auto add = [](sqlite::connection on, int n, int in_round) {
        const char* text = n == 40 ? "INSERT OR ROLLBACK INTO numbers VALUES ($1)"
                                   : "INSERT INTO numbers VALUES ($1)";
        return on.execute(text, n == 13 || n == 40 ? n : n + 100 * in_round);
      };
      std::vector<future<sqlite::changes>> made;
      std::vector<future<std::optional<int>>> seen;
      for (int n = 0; n < 64; ++n) {
        made.push_back(spawn(add(db, n, round)));
        seen.push_back(spawn(db.query_one<int>("SELECT count(*) >= 2 FROM numbers")));
      }
      int refused = 0;
      for (auto& one : made) {
        try {
          const sqlite::changes got = co_await std::move(one);
          EXPECT_EQ(got.rows, 1);
        } catch (const database::error& failed) {
          EXPECT_EQ(failed.broken_rule(), database::rule::unique);
          ++refused;
        }
      }
      for (auto& one : seen) EXPECT_EQ(co_await std::move(one), 1);
      EXPECT_EQ(refused, 2);
      EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM numbers"), 2 + 62 * (round + 1));
    }
  });
}

TEST_P(sqlite_connections, a_change_that_is_interrupted_takes_no_other_with_it) {
  if (!threaded()) GTEST_SKIP() << "needs threads: virtual time stands still meanwhile";
  with(file(), [](sqlite::connection db) -> task<> {
    co_await db.run_script("CREATE TABLE numbers (n INTEGER)");
    const auto endless = [](sqlite::connection on) -> task<> {
      const auto adds = [&] {
        return on.execute(
            "INSERT INTO numbers WITH RECURSIVE all_of (n) AS (SELECT 1 UNION ALL SELECT n FROM "
            "all_of) SELECT n FROM all_of");
      };
      EXPECT_THROW(co_await with_deadline(std::chrono::milliseconds(20), adds), timed_out);
    };
    std::vector<future<sqlite::changes>> made;
    for (int n = 0; n < 10; ++n)
      made.push_back(spawn(db.execute("INSERT INTO numbers VALUES (1)")));
    future<> first = spawn(endless(db));
    for (int n = 0; n < 10; ++n)
      made.push_back(spawn(db.execute("INSERT INTO numbers VALUES (1)")));
    for (auto& one : made) EXPECT_EQ((co_await std::move(one)).rows, 1);
    co_await std::move(first);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM numbers"), 20);
  });
}

using rows_of_items = std::vector<std::tuple<std::string, int>>;
rows_of_items two_items(const char* one, int pieces, const char* other, int of_other) {
  return {{one, pieces}, {other, of_other}};
}

TEST_P(sqlite_connections, many_rows_are_stored_all_or_nothing) {
  with(file(), [](sqlite::connection db) -> task<> {
    constexpr const char* add = "INSERT INTO items VALUES ($1, $2)";
    co_await make_items(db);
    EXPECT_EQ((co_await db.execute_many(add, two_items("cap", 1, "nib", 2))).rows, 2);
    // They share a transaction with their neighbours, which go on.
    auto before = spawn(db.execute(add, "before", 1));
    auto fails = spawn(failure_of(db.execute_many(add, two_items("a", 1, "b", -1))));
    auto works = spawn(db.execute_many(add, two_items("c", 1, "d", 1)));
    auto after = spawn(db.execute(add, "after", 1));
    EXPECT_EQ((co_await std::move(before)).rows, 1);
    const std::string failed = co_await std::move(fails);
    EXPECT_TRUE(has(failed, "constraint: ") && has(failed, "(row 2 of 2)")) << failed;
    EXPECT_EQ((co_await std::move(works)).rows, 2);
    EXPECT_EQ((co_await std::move(after)).rows, 1);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items"), 8);
    EXPECT_EQ((co_await db.execute_many(add, rows_of_items())).rows, 0);
    const auto within = [&](sqlite::transaction& all) -> task<> {
      co_await all.execute_many(add, two_items("e", 1, "f", 1));
      const auto refused = co_await failure_of(all.execute_many(add, two_items("g", 1, "pen", 1)));
      EXPECT_TRUE(has(refused, "constraint: ")) << refused;
      co_await all.execute(add, "h", 1);
    };
    co_await db.in_transaction(within);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items"), 11);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items WHERE name = 'g'"), 0);
  });
}

TEST_P(sqlite_connections, what_cannot_run_in_a_transaction_runs_alone) {
  with(file(), [](sqlite::connection db) -> task<> {
    co_await db.run_script("CREATE TABLE numbers (n INTEGER)");
    std::vector<future<sqlite::changes>> made;
    for (int n = 0; n < 20; ++n) {
      made.push_back(spawn(db.execute("INSERT INTO numbers VALUES ($1)", n)));
      if (n % 5 == 0) made.push_back(spawn(db.execute("VACUUM")));
      if (n % 5 == 1) made.push_back(spawn(db.execute("PRAGMA optimize")));
    }
    for (auto& one : made) static_cast<void>(co_await std::move(one));
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM numbers"), 20);
  });
}

TEST_P(sqlite_connections, parameters_may_have_numbers) {
  with(":memory:", [](sqlite::connection db) -> task<> {
    using pair = std::tuple<std::string, int>;
    const auto got = co_await db.query_one<pair>("SELECT $2, $1 + $1", 4, "two");
    EXPECT_EQ(got, pair("two", 8));
    EXPECT_EQ(co_await db.query_one<int>("SELECT $1 * 10 + $2", 1, 2), 12);
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1, $3", 1, 2)), "from $1 on"));
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT $1, $1", 1, 2)), "has 1 parameters"));
  });
}

TEST_P(sqlite_connections, values_come_back_as_they_were) {
  with(":memory:", [](sqlite::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TABLE all_kinds (flag, small, wide, widest, paint, price, text, bytes, at, maybe, "
        "perhaps)");
    const std::string text("zero \0 inside, and ' or 1=1; --", 31);
    const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}};
    const auto at = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    const sqlite::changes made = co_await db.execute(
        "INSERT INTO all_kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", true, std::int8_t{-128},
        std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int64_t>::min(),
        color::blue, 0.1, text, bytes, at, std::nullopt, std::optional<std::string>("there"));
    EXPECT_EQ(made.rows, 1);
    const auto got = co_await db.query_one<everything>("SELECT * FROM all_kinds");
    EXPECT_TRUE(got.has_value());
    EXPECT_TRUE(got->flag);
    EXPECT_EQ(got->small, -128);
    EXPECT_EQ(got->wide, std::numeric_limits<std::uint32_t>::max());
    EXPECT_EQ(got->widest, std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(got->paint, color::blue);
    EXPECT_EQ(got->price, 0.1);
    EXPECT_EQ(got->text, text);
    EXPECT_EQ(got->bytes, bytes);
    EXPECT_EQ(got->at, at);
    EXPECT_EQ(got->maybe, std::nullopt);
    EXPECT_EQ(got->perhaps, "there");
    co_await db.execute("UPDATE all_kinds SET bytes = ?, text = ?", std::vector<std::byte>(), "");
    const auto empty = co_await db.query_one<std::tuple<std::vector<std::byte>, std::string>>(
        "SELECT bytes, text FROM all_kinds");
    EXPECT_EQ(empty, (std::tuple<std::vector<std::byte>, std::string>()));
  });
}

TEST_P(sqlite_connections, what_does_not_fit_is_an_error_that_names_the_column) {
  with(":memory:", [](sqlite::connection db) -> task<> {
    co_await make_items(db);
    EXPECT_EQ(co_await failure_of(db.query<std::string>("SELECT pieces FROM items")),
              "conversion: troupe: the column `pieces` is an integer; a text is needed");
    EXPECT_EQ(co_await failure_of(db.query<int>("SELECT NULL AS gone")),
              "conversion: troupe: the column `gone` is NULL; read it into a std::optional");
    std::string failed = co_await failure_of(db.query<std::int8_t>("SELECT 128 AS n"));
    EXPECT_TRUE(has(failed, "conversion: ") && has(failed, "`n` is 128")) << failed;
    failed = co_await failure_of(db.query<std::uint64_t>("SELECT -1 AS n"));
    EXPECT_TRUE(has(failed, "`n` is -1")) << failed;
    failed = co_await failure_of(db.query<int>("SELECT 1.5 AS n"));
    EXPECT_TRUE(has(failed, "`n` is a number; an integer is needed")) << failed;
    failed = co_await failure_of(db.query<bool>("SELECT 2 AS n"));
    EXPECT_TRUE(has(failed, "`n` is 2")) << failed;
    failed = co_await failure_of(db.execute("SELECT ?", std::uint64_t{1} << 63));
    EXPECT_TRUE(has(failed, "conversion: troupe: parameter 1")) << failed;
    failed = co_await failure_of(db.query<item>("SELECT name FROM items"));
    EXPECT_TRUE(has(failed, "statement: ") && has(failed, "`pieces`")) << failed;
    failed = co_await failure_of(db.query<item>("SELECT name, pieces, 1 AS more FROM items"));
    EXPECT_TRUE(has(failed, "`more`")) << failed;
    failed = co_await failure_of(db.query<item>("SELECT name, pieces, name FROM items"));
    EXPECT_TRUE(has(failed, "`name`")) << failed;
    failed = co_await failure_of(db.query<std::tuple<int>>("SELECT 1, 2"));
    EXPECT_TRUE(has(failed, "gives 2 columns, and is read into 1")) << failed;
  });
}

TEST_P(sqlite_connections, statements_that_are_wrong_are_refused) {
  with(":memory:", [](sqlite::connection db) -> task<> {
    co_await make_items(db);
    std::string failed = co_await failure_of(db.query<int>("SELEKT 1"));
    EXPECT_TRUE(has(failed, "statement: ") && has(failed, "SELEKT")) << failed;
    EXPECT_TRUE(has(co_await failure_of(db.execute("")), "statement: "));
    EXPECT_TRUE(has(co_await failure_of(db.execute("DELETE FROM items; DROP TABLE items")),
                    "takes one statement"));
    EXPECT_TRUE(has(co_await failure_of(db.query<int>("SELECT ?")), "has 1 parameters"));
    EXPECT_TRUE(has(co_await failure_of(db.query<int>("SELECT 1", 2)), "was given 1"));
    EXPECT_TRUE(
        has(co_await failure_of(db.query_one<int>("SELECT pieces FROM items")), "too many rows: "));
    EXPECT_TRUE(has(co_await failure_of(db.execute("INSERT INTO items VALUES ('pen', 1)")),
                    "constraint: "));
    EXPECT_TRUE(
        has(co_await failure_of(db.execute("UPDATE items SET pieces = -1")), "constraint: "));
    EXPECT_TRUE(has(co_await failure_of(db.execute("BEGIN")), "use in_transaction"));
    EXPECT_TRUE(
        has(co_await failure_of(db.run_script("BEGIN; DELETE FROM items")), "use in_transaction"));
    const auto sum = co_await db.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 17) << "nothing was changed";
  });
}

TEST_P(sqlite_connections, an_answer_has_at_most_rows_max_rows) {
  const auto count = [](sqlite::connection db) -> task<> {
    const char* const text =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i "
        "FROM n";
    const auto most = co_await db.query<int>(text, 10);
    EXPECT_EQ(most.size(), 10u);
    EXPECT_TRUE(has(co_await failure_of(db.query<int>(text, 11)), "too many rows: "));
  };
  with(":memory:", count, {.rows_max = 10});
}

TEST_P(sqlite_connections, a_transaction_is_stored_as_one_or_not_at_all) {
  with(file(), [](sqlite::connection db) -> task<> {
    co_await make_items(db);
    const auto moves = [](sqlite::transaction& all) -> task<int> {
      co_await all.execute("UPDATE items SET pieces = pieces - 3 WHERE name = 'pen'");
      co_await all.execute("UPDATE items SET pieces = pieces + 3 WHERE name = 'ink'");
      co_return 7;
    };
    const int given = co_await db.in_transaction(moves);
    EXPECT_EQ(given, 7);
    const auto throws = [](sqlite::transaction& all) -> task<> {
      co_await all.execute("UPDATE items SET pieces = 100");
      throw std::runtime_error("on purpose");
    };
    try {
      co_await db.in_transaction(throws);
      ADD_FAILURE();
    } catch (const std::runtime_error& failed) {
      EXPECT_STREQ(failed.what(), "on purpose");
    }
    const auto fails = [](sqlite::transaction& all) -> task<> {
      co_await all.execute("DELETE FROM items WHERE name = 'ink'");
      co_await all.execute("UPDATE items SET pieces = -1");
    };
    EXPECT_TRUE(has(co_await failure_of(db.in_transaction(fails)), "constraint: "));
    const auto waits = [](sqlite::transaction& all) -> task<> {
      co_await all.execute("DELETE FROM items");
      co_await sleep_for(1h);
    };
    try {
      co_await with_deadline(20ms, db.in_transaction(waits));
      ADD_FAILURE();
    } catch (const timed_out&) {
    }
    const auto all = co_await db.query<item>("SELECT name, pieces FROM items ORDER BY name");
    EXPECT_EQ(all.size(), 2u);
    EXPECT_EQ(all.front().pieces, 8);
    EXPECT_EQ(all.back().pieces, 9);
  });
}

TEST_P(sqlite_connections, a_commit_that_fails_undoes_all) {
  with(file(), [](sqlite::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TABLE a (id INTEGER PRIMARY KEY);"
        "CREATE TABLE b (a INTEGER REFERENCES a(id) DEFERRABLE INITIALLY DEFERRED)");
    const auto breaks = [](sqlite::transaction& all) -> task<> {
      co_await all.execute("INSERT INTO b VALUES (1)");
    };
    EXPECT_TRUE(has(co_await failure_of(db.in_transaction(breaks)), "constraint: "));
    const auto count = co_await db.query_one<int>("SELECT count(*) FROM b");
    EXPECT_EQ(count, 0);
  });
}

TEST_P(sqlite_connections, other_calls_wait_for_the_end_of_a_transaction) {
  runtime rt(options());
  const sqlite::connection db(rt, ":memory:");
  const int writers = 8, rounds = fewer(40);
  const auto writes = [](sqlite::connection on, int times) -> task<> {
    for (int i = 0; i < times; ++i) {
      const auto adds = [](sqlite::transaction& all) -> task<> {
        const auto before = co_await all.query_one<int>("SELECT n FROM counter");
        co_await yield();
        co_await all.execute("UPDATE counter SET n = ?", *before + 1);
      };
      co_await on.in_transaction(adds);
    }
  };
  const auto reads = [](sqlite::connection on, int times) -> task<> {
    for (int i = 0; i < times; ++i) {
      const auto one = co_await on.query_one<int>("SELECT n FROM counter");
      EXPECT_GE(one, 0);
    }
  };
  const auto all = [&, db]() -> task<> {
    co_await db.run_script("CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0)");
    co_await scope([&](task_scope& within) -> task<> {
      for (int i = 0; i < writers; ++i) within.spawn(writes(db, rounds));
      for (int i = 0; i < writers; ++i) within.spawn(reads(db, rounds));
      co_return;
    });
    const auto sum = co_await db.query_one<int>("SELECT n FROM counter");
    EXPECT_EQ(sum, writers * rounds);
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();
}

TEST_P(sqlite_connections, a_statement_is_interrupted_by_its_deadline) {
  if (GetParam().policy == policy::simulated)
    GTEST_SKIP() << "needs threads: virtual time stands still meanwhile";
  with(":memory:", [](sqlite::connection db) -> task<> {
    const auto endless = [&] {
      return db.query<int>(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    };
    try {
      co_await with_deadline(20ms, endless);
      ADD_FAILURE();
    } catch (const timed_out&) {
    }
    const auto one = co_await db.query_one<int>("SELECT 1");
    EXPECT_EQ(one, 1) << "its thread is free again";
  });
}

TEST_P(sqlite_connections, a_file_that_cannot_be_opened_is_tried_again) {
  with(file("later/data.db"), [this](sqlite::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "unreachable: "));
    EXPECT_TRUE(has(co_await failure_of(make_items(db)), "unreachable: "));
    const std::string made = file("later");
    std::filesystem::create_directory(made);
    co_await make_items(db);
    const auto sum = co_await db.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 17);
  });
  const auto absent = [](sqlite::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "unreachable: "));
  };
  with(file("absent.db"), absent, {.create = false});
}

TEST_P(sqlite_connections, a_file_that_is_no_database_is_corrupted) {
  std::ofstream(file()) << std::string(4096, 'x');
  with(file(), [](sqlite::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "corrupted: "));
  });
  EXPECT_EQ(std::filesystem::file_size(file()), 4096u) << "it is left alone";
}

TEST_P(sqlite_connections, a_full_database_keeps_what_it_has) {
  with(file(), [](sqlite::connection db) -> task<> {
    co_await db.run_script("CREATE TABLE blobs (b)");
    const auto pages = co_await db.query_one<int>("PRAGMA max_page_count = 20");
    EXPECT_EQ(pages, 20);
    int stored = 0;
    std::string failed = "none";
    while (failed == "none" && stored < 100) {
      failed = co_await failure_of(
          db.execute("INSERT INTO blobs VALUES (?)", std::vector<std::byte>(4000)));
      if (failed == "none") ++stored;
    }
    EXPECT_TRUE(has(failed, "full: ")) << failed;
    const auto count = co_await db.query_one<int>("SELECT count(*) FROM blobs");
    EXPECT_EQ(count, stored);
    co_await db.execute("DELETE FROM blobs");
    co_await db.execute("INSERT INTO blobs VALUES (?)", std::vector<std::byte>(4000));
  });
}

TEST_P(sqlite_connections, a_read_only_file_is_not_written) {
  with(file(), [](sqlite::connection db) -> task<> { co_await make_items(db); });
  const auto reads = [](sqlite::connection db) -> task<> {
    const auto sum = co_await db.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 17);
    EXPECT_TRUE(has(co_await failure_of(db.execute("DELETE FROM items")), "read-only: "));
  };
  with(file(), reads, {.read_only = true});
}

TEST_P(sqlite_connections, a_locked_file_is_waited_for_and_then_refused) {
  runtime rt(options());
  const sqlite::connection first(rt, file()), second(rt, file(), {.busy_timeout = 50ms});
  const auto both = [&]() -> task<> {
    co_await make_items(first);
    const auto holds = [&](sqlite::transaction& all) -> task<> {
      co_await all.execute("UPDATE items SET pieces = 1");
      EXPECT_TRUE(has(co_await failure_of(second.execute("DELETE FROM items")), "busy: "));
      const auto sum = co_await second.query_one<int>("SELECT sum(pieces) FROM items");
      EXPECT_EQ(sum, 17) << "readers see what is stored";
    };
    co_await first.in_transaction(holds);
    const auto sum = co_await second.query_one<int>("SELECT sum(pieces) FROM items");
    EXPECT_EQ(sum, 2);
    co_await second.execute("DELETE FROM items");
  };
  future<> done = rt.spawn(both());
  rt.run();
  done.get();
}

TEST_P(sqlite_connections, few_statements_are_kept_prepared) {
  const auto many = [](sqlite::connection db) -> task<> {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 5; ++i) {
        const auto got = co_await db.query_one<int>("SELECT " + std::to_string(i));
        EXPECT_EQ(got, i);
      }
    }
    co_await make_items(db);
    const auto before = co_await db.query<item>("SELECT * FROM items");
    EXPECT_EQ(before.size(), 2u);
    co_await db.run_script("ALTER TABLE items ADD COLUMN more INTEGER");
    EXPECT_TRUE(has(co_await failure_of(db.query<item>("SELECT * FROM items")), "`more`"));
  };
  with(":memory:", many, {.statements_max = 2});
}

// A runtime has at most 1,000 threads of this kind.
TEST(sqlite_threads, are_used_again) {
  runtime rt({.workers = 2});
  const auto one_by_one = [&]() -> task<> {
    for (int i = 0; i < fewer(1100); ++i) {
      const sqlite::connection db(rt, ":memory:");
      const auto one = co_await db.query_one<int>("SELECT 1");
      EXPECT_EQ(one, 1);
    }
  };
  future<> done = rt.spawn(one_by_one());
  rt.run();
  done.get();
}

TEST_P(sqlite_connections, options_that_make_no_sense_are_refused) {
  runtime rt(options());
  EXPECT_THROW(sqlite::connection(rt, file(), {.busy_timeout = -1ms}), option_error);
  EXPECT_THROW(sqlite::connection(rt, file(), {.statements_max = 0}), option_error);
  EXPECT_THROW(sqlite::connection(rt, file(), {.rows_max = 0}), option_error);
}

TROUPE_TEST_EACH(sqlite_connections, all_settings);

}  // namespace
}  // namespace troupe::test
