// postgres::connection behind a pooler that gives each transaction any of its connections.
#include <chrono>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "postgres/fixture.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_poolers : public postgres_fixture {
 protected:
  void SetUp() override {
    postgres_fixture::SetUp();
    if (IsSkipped()) return;
    if (!postgres_server::get().start_pooler()) GTEST_SKIP() << "needs pgbouncer";
  }
  // Runs test(connection) on several connections at the same time.
  template <class Test>
  void with_several(Test test, const postgres::options& chosen) {
    runtime rt(options());
    std::vector<future<>> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(rt.spawn(
          test(postgres::connection(rt, postgres_server::get().pooler_target(), chosen), i)));
    rt.run();
    for (future<>& one : all) one.get();
  }
};

std::vector<std::tuple<int>> twice(int number) { return {{number}, {number}}; }
std::string text_of(int number) { return "SELECT $1::int + " + std::to_string(number); }

TEST_P(postgres_poolers, without_prepared_statements_each_statement_runs) {
  postgres_server::get().sql("DROP TABLE IF EXISTS pooled; CREATE TABLE pooled (n int)");
  const auto test = [](postgres::connection db, int which) -> task<> {
    for (int i = 0; i < fewer(100); ++i) {
      const int number = 1'000 * which + i % 10;
      auto reads = db.query_one<int>(text_of(number), 5);
      EXPECT_EQ(co_await std::move(reads), number + 5);
      const auto body = [&](postgres::transaction& within) -> task<> {
        auto adds = within.execute("INSERT INTO pooled VALUES ($1)", number);
        co_await std::move(adds);
        auto more = within.execute_many("INSERT INTO pooled VALUES ($1)", twice(number));
        co_await std::move(more);
      };
      auto runs = db.in_transaction(body);
      co_await std::move(runs);
    }
    const auto sleeps = [&] { return db.execute("SELECT pg_sleep(1000)"); };
    EXPECT_THROW(co_await with_deadline(50ms, sleeps), timed_out);
    auto prepared = db.query_one<int>("SELECT count(*)::int FROM pg_prepared_statements");
    EXPECT_EQ(co_await std::move(prepared), 0);
  };
  with_several(test, {.keep_prepared = false});
  EXPECT_EQ(postgres_server::get().sql("SELECT count(*) FROM pooled"),
            std::to_string(4 * 3 * fewer(100)));
}

// Statements are prepared on one connection to the server and run on another. That fails, and never
// runs another statement of the same name.
TEST_P(postgres_poolers, with_prepared_statements_no_other_statement_runs) {
  const auto test = [](postgres::connection db, int which) -> task<> {
    for (int i = 0; i < fewer(100); ++i) {
      const int number = 1'000 * which + i % 10;
      try {
        auto reads = db.query_one<int>(text_of(number), 5);
        EXPECT_EQ(co_await std::move(reads), number + 5);
      } catch (const postgres::error& failed) {
        EXPECT_EQ(failed.sqlstate(), "26000") << failed.what();
        EXPECT_TRUE(has(failed.what(), "keep_prepared")) << failed.what();
      }
    }
  };
  with_several(test, {});
}

TROUPE_TEST_EACH(postgres_poolers, each_thread_policy);

}  // namespace
}  // namespace troupe::test
