// postgres::connection: COPY in and out, and notifications.
#include <chrono>
#include <string>
#include <vector>

#include "postgres/fixture.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_streams : public postgres_fixture {};

TEST_P(postgres_streams, rows_are_copied_in_and_out) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script("CREATE TEMP TABLE items (n int PRIMARY KEY, name text)");
    auto in = co_await db.copy_in("COPY items FROM STDIN");
    const int rows = fewer(100'000);
    for (int i = 0; i < rows; ++i)
      co_await in.write(std::to_string(i) + "\tname of " + std::to_string(i) + "\n");
    const postgres::changes made = co_await in.finish();
    EXPECT_EQ(made.rows, rows);
    {
      auto out =
          co_await db.copy_out("COPY (SELECT * FROM items ORDER BY n) TO STDOUT (FORMAT csv)");
      std::string all;
      while (const auto some = co_await out.next()) {
        EXPECT_TRUE(some->ends_with('\n'));
        EXPECT_LT(some->size(), 100'000u);
        all += *some;
      }
      EXPECT_TRUE(all.starts_with("0,name of 0\n1,name of 1\n"));
      EXPECT_EQ(std::ranges::count(all, '\n'), rows);
      EXPECT_EQ(co_await out.next(), std::nullopt);
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items"), rows);
  });
}

TEST_P(postgres_streams, a_copy_that_is_not_finished_stores_nothing) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script("CREATE TEMP TABLE items (n int PRIMARY KEY, name text)");
    {
      auto in = co_await db.copy_in("COPY items FROM STDIN");
      co_await in.write("1\tone\n");
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items"), 0);
    auto bad = co_await db.copy_in("COPY items FROM STDIN");
    co_await bad.write("1\tone\nx\tbad\n");
    EXPECT_TRUE(has(co_await failure_of(bad.finish()), "conversion 22P02"));
    EXPECT_THROW(static_cast<void>(bad.finish()), database::error);
    EXPECT_THROW(static_cast<void>(bad.write("x")), database::error);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM items"), 0);
    EXPECT_TRUE(has(co_await failure_of(db.copy_in("COPY nothing FROM STDIN")), "42P01"));
    EXPECT_TRUE(has(co_await failure_of(db.copy_in("SELECT 1")), "copy_in takes"));
    // Within a transaction, which goes on.
    const auto body = [](postgres::transaction& all) -> task<int> {
      auto in = co_await all.copy_in("COPY items FROM STDIN");
      co_await in.write("1\tone\n2\ttwo\n");
      static_cast<void>(co_await in.finish());
      const auto n = co_await all.query_one<int>("SELECT count(*) FROM items");
      co_return n.value_or(-1);
    };
    EXPECT_EQ(co_await db.in_transaction(body), 2);
  });
}

TEST_P(postgres_streams, a_reader_that_goes_early_cancels_the_rest) {
  with([](postgres::connection db) -> task<> {
    for (int round = 0; round < 3; ++round) {
      auto out = co_await db.copy_out("COPY (SELECT generate_series(1, 2000000000)) TO STDOUT");
      EXPECT_TRUE((co_await out.next()).has_value());
      const auto dropped = std::move(out);
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT 1"), 1);
  });
}

// docs/protocols/given_up_waits.md
TEST_P(postgres_streams, a_wait_for_rows_that_is_given_up_loses_none) {
  constexpr int rows = 20'000;
  with([](postgres::connection db) -> task<> {
    auto out = co_await db.copy_out("COPY (SELECT generate_series(1, " + std::to_string(rows) +
                                    ")) TO STDOUT");
    std::string all;
    int given_up = 0;
    for (bool ended = false; !ended;) {
      const bool raced = ++given_up % 2 == 0;
      if (raced) {
        const auto nothing = []() -> task<> { co_await yield(); };
        auto either = when_any(out.next(), nothing());
        auto got = co_await std::move(either);
        if (got.index() != 0) continue;
        auto& some = std::get<0>(got);
        if (some) all += *some;
        ended = !some;
        continue;
      }
      try {
        auto next = out.next().timeout(30us);
        const auto some = co_await std::move(next);
        if (some) all += *some;
        ended = !some;
      } catch (const timed_out&) {
      }
    }
    std::string expected;
    for (int i = 1; i <= rows; ++i) expected += std::to_string(i) + "\n";
    EXPECT_TRUE(all == expected) << all.size() << " bytes of " << expected.size();
  });
}

TEST_P(postgres_streams, a_write_that_is_given_up_is_the_last) {
  with([](postgres::connection db) -> task<> {
    co_await db.run_script(
        "CREATE TEMP TABLE slow (n text); CREATE FUNCTION pg_temp.wait() RETURNS trigger AS $$ "
        "BEGIN "
        "PERFORM pg_sleep(0.001); RETURN NEW; END $$ LANGUAGE plpgsql; CREATE TRIGGER waits BEFORE "
        "INSERT ON slow FOR EACH ROW EXECUTE FUNCTION pg_temp.wait()");
    // Long rows: the server has to look at all that was sent before it hears of the end.
    const std::string row = std::string(8'000, 'x') + "\n";
    std::string piece;
    while (piece.size() < 64 * 1024) piece += row;
    {
      auto rows = co_await db.copy_in("COPY slow FROM STDIN");
      bool is_given_up = false;
      for (int i = 0; i < 1'000 && !is_given_up; ++i) {
        try {
          auto writes = rows.write(piece).timeout(1ms);
          co_await std::move(writes);
        } catch (const timed_out&) {
          is_given_up = true;
        }
      }
      EXPECT_TRUE(is_given_up);
      EXPECT_THROW(static_cast<void>(rows.write("1\n")), database::error);
      EXPECT_THROW(static_cast<void>(rows.finish()), database::error);
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM slow"), 0);
  });
}

TEST_P(postgres_streams, a_lost_connection_ends_a_copy) {
  with([](postgres::connection db) -> task<> {
    const auto id = co_await db.query_one<int>("SELECT pg_backend_pid()");
    auto out = co_await db.copy_out("COPY (SELECT generate_series(1, 2000000000)) TO STDOUT");
    EXPECT_TRUE((co_await out.next()).has_value());
    auto ends = [id] {
      postgres_server::get().sql("SELECT pg_terminate_backend(" + std::to_string(id.value_or(0)) +
                                 ")");
    };
    auto later = blocking(std::move(ends));
    co_await std::move(later);
    const auto reads = [](postgres::copy_reader& from) -> task<> {
      while (co_await from.next()) {
      }
    };
    const std::string failed = co_await failure_of(reads(out));
    EXPECT_TRUE(has(failed, "lost")) << failed;
  });
}

TEST_P(postgres_streams, notifications_come_to_those_who_listen) {
  with([](postgres::connection db) -> task<> {
    {
      auto orders = co_await db.listen("or\"ders");
      auto also = co_await db.listen("or\"ders");
      auto others = co_await db.listen("others");
      for (int i = 0; i < 5; ++i)
        co_await db.execute("SELECT pg_notify('or\"ders', $1)", std::to_string(i));
      co_await db.execute("NOTIFY others");
      auto tells = [] { postgres_server::get().sql("NOTIFY \"or\"\"ders\", 'from others'"); };
      auto later = blocking(std::move(tells));
      co_await std::move(later);
      for (postgres::listener* const each : {&orders, &also}) {
        for (const char* const text : {"0", "1", "2", "3", "4", "from others"}) {
          const auto got = co_await each->next();
          EXPECT_EQ(got->text, text);
          EXPECT_EQ(got->channel, "or\"ders");
          EXPECT_EQ(got->missed, 0u);
        }
      }
      EXPECT_EQ((co_await others.next())->text, "");
      const auto waits = [&] { return others.next(); };
      EXPECT_THROW(co_await with_deadline(5ms, waits), timed_out);
    }
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM pg_listening_channels()"), 0);
  });
}

TEST_P(postgres_streams, a_slow_listener_is_told_what_it_has_missed) {
  with([](postgres::connection db) -> task<> {
    auto numbers = co_await db.listen("numbers");
    co_await db.execute("SELECT pg_notify('numbers', n::text) FROM generate_series(1, 1030) AS n");
    // All of them have come before these answers.
    for (int i = 0; i < 2; ++i) co_await db.query_one<int>("SELECT 1");
    for (int i = 1; i <= 1024; ++i) EXPECT_EQ((co_await numbers.next())->text, std::to_string(i));
    co_await db.execute("NOTIFY numbers, 'last'");
    const auto last = co_await numbers.next();
    EXPECT_EQ(last->text, "last");
    EXPECT_EQ(last->missed, 6u);
  });
}

TEST_P(postgres_streams, a_lost_connection_ends_a_listener) {
  with([](postgres::connection db) -> task<> {
    auto numbers = co_await db.listen("numbers");
    const std::string failed =
        co_await failure_of(db.execute("SELECT pg_terminate_backend(pg_backend_pid())"));
    EXPECT_TRUE(has(failed, "lost 57P01")) << failed;
    EXPECT_TRUE(has(co_await failure_of(numbers.next()), "listen again"));
    auto again = co_await db.listen("numbers");
    co_await db.execute("NOTIFY numbers, 'here'");
    EXPECT_EQ((co_await again.next())->text, "here");
  });
}

TROUPE_TEST_EACH(postgres_streams, each_thread_policy);

}  // namespace
}  // namespace troupe::test
