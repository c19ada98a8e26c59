// Statements among the numbers of an observed program.
#include <string>
#include <vector>

#include "runtime/observing/observer.hpp"
#include "support/observed.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::test {
namespace {

class sqlite_numbers : public observed_runtimes {};

TEST_P(sqlite_numbers, statements_are_counted_by_their_text_without_values) {
  runtime rt(observed());
  json shown;
  const auto all = [&]() -> task<> {
    const sqlite::connection on(rt, ":memory:");
    auto makes = on.execute("CREATE TABLE secrets (word TEXT)");
    co_await std::move(makes);
    for (const char* const word : {"'a secret'", "'another one'"}) {
      auto puts = on.execute(std::string("INSERT INTO secrets VALUES (") + word + ")");
      co_await std::move(puts);
    }
    auto asks = on.query<std::string>("SELECT word FROM secrets WHERE word = ?", "a secret");
    co_await std::move(asks);
    shown = json::parse(troupe::observing::ask("numbers components"));
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  const json& table = named(shown["tables"], "prefix", "troupe_database_statement");
  const auto counted = [&](const char* text) {
    std::uint64_t count = 0;
    for (const json& row : table["rows"]) {
      if (row["labels"] != json({"sqlite", text})) continue;
      for (const json& bucket : row["values"][0]["counts"]) count += bucket.get<std::uint64_t>();
    }
    return count;
  };
  EXPECT_GE(counted("INSERT INTO secrets VALUES (?)"), 2u) << table;
  EXPECT_GE(counted("SELECT word FROM secrets WHERE word = ?"), 1u) << table;
  EXPECT_EQ(table.dump().find("a secret"), std::string::npos) << table;
}

const json* row_of(const json& all, const std::string& connection) {
  for (const json& row : named(all["tables"], "prefix", "troupe_sqlite")["rows"]) {
    if (row["labels"][0] == connection) return &row;
  }
  return nullptr;
}
std::uint64_t count_of(const json& histogram) {
  std::uint64_t count = 0;
  for (const json& bucket : histogram["counts"]) count += bucket.get<std::uint64_t>();
  return count;
}

TEST_P(sqlite_numbers, calls_that_wait_for_a_transaction_are_counted) {
  runtime rt(observed());
  json meanwhile, after;
  std::string waits;
  const auto wait_behind = [](sqlite::connection on) -> task<> {
    auto asks = on.query<int>("SELECT count(*) FROM pens");
    co_await std::move(asks);
  };
  const auto all = [&]() -> task<> {
    const sqlite::connection on(rt, ":memory:");
    auto makes = on.execute("CREATE TABLE pens (word TEXT)");
    co_await std::move(makes);
    future<> behind;
    const auto body = [&](sqlite::transaction& inside) -> task<> {
      auto puts = inside.execute("INSERT INTO pens VALUES (?)", "red");
      co_await std::move(puts);
      behind = rt.spawn(wait_behind(on));
      do {
        co_await yield();
        meanwhile = json::parse(troupe::observing::ask("numbers components"));
      } while ((*row_of(meanwhile, ":memory:"))["values"][0] == 0);
      waits = troupe::observing::ask("dump");
    };
    auto runs = on.in_transaction(body);
    co_await std::move(runs);
    co_await std::move(behind);
    after = json::parse(troupe::observing::ask("numbers components"));
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  const json& then = *row_of(after, ":memory:");
  EXPECT_EQ((*row_of(meanwhile, ":memory:"))["values"][0], 1) << meanwhile;
  EXPECT_EQ(then["values"][0], 0) << then;
  // The two calls outside, the begin, the insert and the commit.
  EXPECT_EQ(count_of(then["values"][1]), 5u) << then;
  bool is_counted = false;
  for (const json& row : named(after["tables"], "prefix", "troupe_database_statement")["rows"])
    is_counted = is_counted || row["labels"][1] == "INSERT INTO pens VALUES (?)";
  EXPECT_TRUE(is_counted) << "a statement of a transaction: " << after;
  EXPECT_NE(waits.find("waits at numbers.cpp:"), std::string::npos) << waits;
  EXPECT_EQ(waits.find("waits at connection.hpp:"), std::string::npos) << waits;
}

TEST_P(sqlite_numbers, each_connection_has_a_row_for_as_long_as_it_lives) {
  runtime rt(observed());
  const auto names = [] {
    const json all = json::parse(troupe::observing::ask("numbers components"));
    std::vector<std::string> found;
    for (const json& row : named(all["tables"], "prefix", "troupe_sqlite")["rows"])
      found.push_back(row["labels"][0].get<std::string>());
    return found;
  };
  {
    const sqlite::connection first(rt, ":memory:"), second(rt, ":memory:");
    EXPECT_EQ(names(), (std::vector<std::string>{":memory:", ":memory: (2)"}));
  }
  rt.run();
  const json all = json::parse(troupe::observing::ask("numbers components"));
  for (const json& table : all["tables"]) EXPECT_NE(table["prefix"], "troupe_sqlite") << all;
}

TROUPE_TEST_EACH(sqlite_numbers, each_policy);

}  // namespace
}  // namespace troupe::test
