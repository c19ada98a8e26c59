// postgres::pool: its limits, waits and checks; and a program that runs on any database.
#include "troupe/postgres/pool.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "observe/numbers/registry.hpp"
#include "postgres/fixture.hpp"
#include "troupe/database/client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_pools : public postgres_fixture {
 protected:
  template <class Test>
  void with_pool(const postgres::pool_limits& limits, Test test) {
    runtime rt(options());
    future<> done = rt.spawn(test(postgres::pool(rt, target(), limits)));
    rt.run();
    done.get();
  }
};

static_assert(database::client<postgres::connection>);
static_assert(database::client<postgres::pool>);

TEST_P(postgres_pools, calls_share_a_few_connections) {
  postgres::pool_limits limits;
  limits.max = 3;
  with_pool(limits, [](postgres::pool all) -> task<> {
    std::vector<future<std::optional<int>>> ids;
    for (int i = 0; i < 30; ++i)
      ids.push_back(spawn(all.query_one<int>("SELECT pg_backend_pid() + 0 * $1::int", i)));
    std::vector<int> seen;
    for (auto& one : ids) {
      const auto id = co_await std::move(one);
      seen.push_back(id.value_or(0));
    }
    std::ranges::sort(seen);
    seen.erase(std::ranges::unique(seen).begin(), seen.end());
    EXPECT_LE(seen.size(), 3u);
    const auto body = [](postgres::transaction& inside) -> task<int> {
      const auto n = co_await inside.query_one<int>("SELECT 7");
      co_return n.value_or(0);
    };
    EXPECT_EQ(co_await all.in_transaction(body), 7);
    co_await all.run_script("SELECT 1; SELECT 2");
    EXPECT_LE(all.counts().made, 3u);
  });
}

// The rows of troupe_pool whose names begin so: the waits of each.
std::map<std::string, observe::distribution> shown_waits(const std::string& name) {
  observe::number_tables all;
  observe::collect_instruments(all);
  std::map<std::string, observe::distribution> found;
  for (const observe::number_rows& table : all.all()) {
    if (table.prefix != "troupe_pool") continue;
    for (const observe::table_row& row : table.rows) {
      if (row.labels.at(0).starts_with(name))
        found.emplace(row.labels.at(0), std::get<observe::distribution>(row.values.back()));
    }
  }
  return found;
}

// The program does nothing for it but give the pool a name.
TEST_P(postgres_pools, its_waits_are_among_the_numbers) {
  postgres::pool_limits limits;
  limits.max = 1;
  limits.name = "shop";
  runtime rt(options());
  {
    const postgres::pool all(rt, target(), limits), other(rt, target(), limits);
    for (int i = 0; i < 2; ++i)
      static_cast<void>(rt.spawn(all.run_script("SELECT pg_sleep(0.05)")));
    rt.run();
    const auto waits = shown_waits("shop");
    ASSERT_EQ(waits.size(), 2u);
    EXPECT_EQ(waits.at("shop").count(), 2u);
    EXPECT_GE(waits.at("shop").sum, 0.03);
    EXPECT_EQ(waits.at("shop (2)").count(), 0u);
  }
  EXPECT_TRUE(shown_waits("shop").empty());
  limits.name.clear();
  EXPECT_THROW(postgres::pool(rt, target(), limits), option_error);
}

TEST_P(postgres_pools, a_wait_that_is_too_long_is_busy) {
  postgres::pool_limits limits;
  limits.max = 1;
  limits.wait_max = 2s;
  with_pool(limits, [](postgres::pool all) -> task<> {
    const auto one = co_await all.borrow();
    const std::string failed = co_await failure_of(all.execute("SELECT 1"));
    EXPECT_TRUE(has(failed, "busy: ") && has(failed, "2000 ms")) << failed;
    EXPECT_EQ(co_await one->query_one<int>("SELECT 1"), 1);
    const auto asks = [&] { return all.execute("SELECT 1"); };
    EXPECT_THROW(co_await with_deadline(5ms, asks), timed_out);
  });
}

TEST_P(postgres_pools, idle_connections_are_checked_before_they_are_lent) {
  postgres::pool_limits limits;
  limits.max = 1;
  limits.check_after = 0s;
  with_pool(limits, [](postgres::pool all) -> task<> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(co_await all.query_one<int>("SELECT 1"), 1);
      auto ends = [] {
        postgres_server::get().sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE backend_type = "
            "'client backend' AND pid <> pg_backend_pid()");
      };
      auto later = blocking(std::move(ends));
      co_await std::move(later);
    }
  });
}

TROUPE_TEST_EACH(postgres_pools, each_thread_policy);

}  // namespace
}  // namespace troupe::test
