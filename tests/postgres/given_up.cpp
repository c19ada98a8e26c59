// What PostgreSQL gives is not lost with a wait that loses (docs/protocols/given_up_waits.md).
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "given_up/sources.hpp"
#include "postgres/fixture.hpp"
#include "troupe/postgres/pool.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_given_up : public postgres_fixture {};

task<> at_once() { co_return; }

// A reader asks the session for each piece; one whose waits are given up has asked several times.
TEST_P(postgres_given_up, copy_reader_next) {
  with([](postgres::connection db) -> task<> {
    constexpr int rows = 300'000;
    auto out = co_await db.copy_out("COPY (SELECT generate_series(1, " + std::to_string(rows) +
                                    ")) TO STDOUT");
    std::string all;
    for (;;) {
      for (int i = 0; i < 20; ++i) {
        auto either = when_any(out.next(), at_once());
        auto got = co_await std::move(either);
        if (got.index() == 0) all += std::get<0>(got).value_or("");
      }
      const auto some = co_await out.next();
      if (!some) break;
      all += *some;
    }
    EXPECT_EQ(std::ranges::count(all, '\n'), rows);
    std::string expected;
    for (int i = 1; i <= rows; ++i) expected += std::to_string(i) + "\n";
    EXPECT_TRUE(all == expected) << all.size() << " bytes of " << expected.size();
  });
}

// The server sends the begin of a COPY together with its first rows, or its failure.
TEST_P(postgres_given_up, copy_before_it_begins) {
  with([](postgres::connection db) -> task<> {
    co_await db.execute("CREATE TEMPORARY TABLE copied (n int)");
    for (int round = 0; round < 40; ++round) {
      const bool sleeps = round % 20 == 0;
      const auto limit =
          sleeps ? std::chrono::microseconds(50'000) : std::chrono::microseconds(40 * round);
      try {
        auto opens = db.copy_out(sleeps ? "COPY (SELECT pg_sleep(10)) TO STDOUT"
                                        : "COPY (SELECT 1) TO STDOUT");
        auto out = co_await std::move(opens).timeout(limit);
        while (co_await out.next()) {
        }
      } catch (const timed_out&) {
      }
      try {
        auto opens = db.copy_in("COPY copied FROM STDIN");
        auto in = co_await std::move(opens).timeout(limit);
      } catch (const timed_out&) {
      }
      auto asks = db.query_one<int>("SELECT 1");
      EXPECT_EQ(co_await std::move(asks).timeout(10s), 1);
    }
  });
}

TEST_P(postgres_given_up, listener_next) {
  with([](postgres::connection db) -> task<> {
    constexpr int values = 1000;
    for (const given_up_by way : ways_to_give_up) {
      auto numbers = co_await db.listen("numbers");
      const auto next = [&]() -> task<std::string> {
        const auto came = co_await numbers.next();
        co_return came->text;
      };
      texts_source from(values, next);
      co_await db.execute("SELECT pg_notify('numbers', n::text) FROM generate_series(0, 999) AS n");
      co_await check_drained(from, values, way);
    }
  });
}

TEST_P(postgres_given_up, a_lease_that_comes_late_goes_back) {
  runtime rt(options());
  const auto test = [](postgres::pool db) -> task<> {
    for (int i = 0; i < 200; ++i) {
      auto held = std::make_unique<postgres::pool::lease>(co_await db.borrow());
      const auto gives_back = [](std::unique_ptr<postgres::pool::lease> lease,
                                 int turns) -> task<> {
        for (int k = 0; k < turns; ++k) co_await yield();
        lease.reset();
        for (int k = 0; k < turns; ++k) co_await yield();
      };
      auto either = when_any(db.borrow(), gives_back(std::move(held), i % 4));
      static_cast<void>(co_await std::move(either));
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT 1"), 1);
  };
  postgres::pool_limits one;
  one.max = 1;
  one.wait_max = 10s;
  future<> done = rt.spawn(test(postgres::pool(rt, target(), one)));
  rt.run();
  done.get();
}

TROUPE_TEST_EACH(postgres_given_up, each_thread_policy);

}  // namespace
}  // namespace troupe::test
