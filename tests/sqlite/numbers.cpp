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

TROUPE_TEST_EACH(sqlite_numbers, each_policy);

}  // namespace
}  // namespace troupe::test
