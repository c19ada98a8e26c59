// postgres::connection: servers that cannot be reached, and servers that go.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postgres/fixture.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_failures : public postgres_fixture {
 protected:
  struct outcomes {
    std::atomic<int> answered{0}, lost{0}, unknown{0}, other{0};
  };
  static task<> note(task<postgres::changes> call, std::shared_ptr<outcomes> to) {
    try {
      co_await std::move(call);
      ++to->answered;
    } catch (const database::error& failed) {
      ++(failed.kind() == database::failure::lost ? to->lost : to->other);
      if (failed.effect() == database::effect::unknown) ++to->unknown;
      if (failed.kind() != database::failure::lost) ADD_FAILURE() << failed.what();
    }
  }
  // 64 statements in flight, of which one stops the others until the server has gone.
  static task<> in_flight(postgres::connection db, std::function<void()> ends_server,
                          std::shared_ptr<outcomes> to) {
    co_await db.execute("INSERT INTO marks VALUES ($1)", -1);
    std::vector<task<>> all;
    for (int i = 0; i < 64; ++i) {
      auto call = i == 32 ? db.execute("SELECT pg_sleep(1000)")
                          : db.execute("INSERT INTO marks VALUES ($1)", i);
      all.push_back(note(std::move(call), to));
    }
    future<> running = spawn(in_order(std::move(all)));
    // The last of those before it is answered last.
    while (to->answered < 32) co_await sleep_for(1ms);
    auto begins = blocking([] {
      postgres_server::get().sql(
          "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
          " AND query LIKE '%pg_sleep(1000)%' AND pid <> pg_backend_pid()) LOOP"
          " PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$");
    });
    co_await std::move(begins);
    auto later = blocking(std::move(ends_server));
    co_await std::move(later);
    co_await std::move(running);
  }
  static constexpr const char* stated = "SELECT 1";
  static task<> gives_up(postgres::connection db) {
    const auto asks = [db] { return db.execute(stated); };
    try {
      auto limited = with_deadline(20ms, asks);
      co_await std::move(limited);
      ADD_FAILURE() << "a stopped server has answered";
    } catch (const timed_out&) {
    }
  }
  // Begins them in this order.
  static task<> in_order(std::vector<task<>> all) { co_await when_all(std::move(all)); }
};

// What the server stops would take as long again: that is no lock of others.
TEST_P(postgres_failures, a_statement_that_the_server_stops_is_too_slow) {
  with(target("options='-c statement_timeout=20'"), [](postgres::connection db) -> task<> {
    try {
      co_await db.execute("SELECT pg_sleep(60)");
      ADD_FAILURE() << "it was not stopped";
    } catch (const postgres::error& stopped) {
      EXPECT_EQ(stopped.kind(), database::failure::too_slow);
      EXPECT_EQ(stopped.try_again_in(), std::nullopt);
    }
  });
}

TEST_P(postgres_failures, no_server_is_unreachable_and_the_next_call_tries_again) {
  with("host=/nowhere user=x dbname=y", [](postgres::connection db) -> task<> {
    for (int i = 0; i < 2; ++i) {
      const std::string failed = co_await failure_of(db.execute("SELECT 1"));
      EXPECT_TRUE(has(failed, "unreachable")) << failed;
    }
  });
  with("no such = = target", [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "malformed"));
  });
  with(target("dbname=nothing"), [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "\"nothing\" does not exist"));
  });
  // What no later try can mend is denied; libpq tells its SQLSTATE only within a text.
  for (const auto& [who, state] : {std::pair("dbname=nothing", "(SQLSTATE 3D000)"),
                                   std::pair("user=nobody_knows", "(SQLSTATE 28000)")}) {
    with(target(who), [state = std::string(state)](postgres::connection db) -> task<> {
      try {
        co_await db.execute("SELECT 1");
        ADD_FAILURE() << "the server has let us in";
      } catch (const postgres::error& refused) {
        EXPECT_EQ(refused.kind(), database::failure::denied);
        EXPECT_EQ(refused.try_again_in(), std::nullopt);
        EXPECT_TRUE(std::string_view(refused.what()).ends_with(state)) << refused.what();
      }
    });
  }
  with("host=no.such.host.invalid dbname=y", [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "has no address"));
  });
}

TEST_P(postgres_failures, a_server_that_does_not_answer_is_given_up_in_time) {
  const auto test = [](unix_listener silent, postgres::connection db) -> task<> {
    const std::string failed = co_await failure_of(db.execute("SELECT 1"));
    EXPECT_TRUE(has(failed, "not answered in time")) << failed;
    static_cast<void>(silent);
  };
  runtime rt(options());
  const scratch folder;
  postgres::options chosen;
  chosen.connect_timeout = 100ms;
  future<> done = rt.spawn(test(unix_listener::listen(folder / ".s.PGSQL.5432"),
                                postgres::connection(rt, "user=x host=" + (folder / ""), chosen)));
  rt.run();
  done.get();
}

TEST_P(postgres_failures, tls_and_names_of_hosts) {
  const auto is_secure = [](postgres::connection db) -> task<> {
    EXPECT_EQ(
        co_await db.query_one<bool>("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"),
        true);
    const std::string large(1'000'000, 'x');
    std::vector<future<std::optional<std::string>>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(spawn(db.query_one<std::string>("SELECT $1::text", large)));
    for (auto& one : all) {
      const auto got = co_await std::move(one);
      EXPECT_TRUE(got == large);
    }
  };
  const std::string root = postgres_server::get().folder() + "/data/server.crt";
  with(postgres_server::get().tcp_target("sslmode=verify-full sslrootcert=" + root), is_secure);
  const auto is_refused = [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.execute("SELECT 1")), "certificate"));
  };
  with(postgres_server::get().tcp_target("sslmode=verify-full sslrootcert=/dev/null"), is_refused);
  with(postgres_server::get().tcp_target("hostaddr=127.0.0.1 sslmode=require"), is_secure);
}

TEST_P(postgres_failures, a_backend_that_ends_in_the_middle_resolves_each_call_once) {
  postgres_server::get().sql("DROP TABLE IF EXISTS marks; CREATE TABLE marks (n int)");
  const auto counts = std::make_shared<outcomes>();
  with([&](postgres::connection db) -> task<> {
    const auto ends = [] {
      postgres_server::get().sql(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE "
          "'%pg_sleep(1000)%'"
          " AND pid <> pg_backend_pid()");
    };
    co_await in_flight(db, ends, counts);
    // What the server did not see is told so, since it said that it ends.
    EXPECT_EQ(counts->answered, 32);
    EXPECT_EQ(counts->lost, 32);
    EXPECT_EQ(counts->unknown, 0);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM marks"), 33);
  });
}

TEST_P(postgres_failures, a_transaction_does_not_outlive_its_connection) {
  postgres_server::get().sql("DROP TABLE IF EXISTS marks; CREATE TABLE marks (n int)");
  with([](postgres::connection db) -> task<> {
    const auto body = [](postgres::transaction& all) -> task<> {
      co_await all.execute("INSERT INTO marks VALUES (1)");
      EXPECT_TRUE(
          has(co_await failure_of(all.execute("SELECT pg_terminate_backend(pg_backend_pid())")),
              "lost 57P01"));
      EXPECT_TRUE(has(co_await failure_of(all.execute("INSERT INTO marks VALUES (2)")), "lost"));
    };
    const std::string failed = co_await failure_of(db.in_transaction(body));
    EXPECT_TRUE(has(failed, "lost") && has(failed, "done nothing")) << failed;
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM marks"), 0);
  });
}

TEST_P(postgres_failures, a_connection_that_was_closed_while_idle_is_opened_again) {
  with([](postgres::connection db) -> task<> {
    for (int i = 0; i < 3; ++i) {
      const auto id = co_await db.query_one<int>("SELECT pg_backend_pid()");
      auto ends = [id] {
        postgres_server::get().sql("SELECT pg_terminate_backend(" + std::to_string(id.value_or(0)) +
                                   ", 5000)");
      };
      auto later = blocking(std::move(ends));
      co_await std::move(later);
      EXPECT_EQ(co_await db.query_one<int>("SELECT 1"), 1);
    }
  });
}

TEST_P(postgres_failures, a_killed_server_resolves_each_call_once) {
  postgres_server::get().sql("DROP TABLE IF EXISTS marks; CREATE TABLE marks (n int)");
  const auto counts = std::make_shared<outcomes>();
  with([&](postgres::connection db) -> task<> {
    const auto ends = [] { postgres_server::get().kill_server(); };
    co_await in_flight(db, ends, counts);
    EXPECT_EQ(counts->answered, 32);
    EXPECT_EQ(counts->lost, 32);
    auto later = blocking([] { postgres_server::get().start_server(); });
    co_await std::move(later);
    const auto marks = co_await db.query_one<int>("SELECT count(*) FROM marks");
    EXPECT_EQ(marks, 33);
  });
}

TEST_P(postgres_failures, a_commit_whose_answer_is_lost_may_have_been_done) {
  postgres_server::get().sql(
      "DROP TABLE IF EXISTS marks; CREATE TABLE marks (n int); "
      "CREATE OR REPLACE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN PERFORM pg_sleep(1000); RETURN NULL; END'; "
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON marks DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION sleeps()");
  with([](postgres::connection db) -> task<> {
    const auto body = [](postgres::transaction& all) -> task<> {
      co_await all.execute("INSERT INTO marks VALUES (1)");
    };
    future<> stores = spawn(db.in_transaction(body));
    auto begins = blocking([] {
      postgres_server::get().sql(
          "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
          " AND query = 'COMMIT') LOOP"
          " PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$");
      postgres_server::get().kill_server();
    });
    co_await std::move(begins);
    bool unknown = false;
    try {
      co_await std::move(stores);
    } catch (const database::error& failed) {
      unknown =
          failed.kind() == database::failure::lost && failed.effect() == database::effect::unknown;
    }
    EXPECT_TRUE(unknown);
    auto later = blocking([] { postgres_server::get().start_server(); });
    co_await std::move(later);
    EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM marks"), 0);
    co_await db.run_script("DROP TABLE marks");
  });
}

// All calls of the connection are told, and the next one has another connection.
TEST_P(postgres_failures, a_server_that_is_silent_is_given_up) {
  postgres_server::get().sql("DROP TABLE IF EXISTS marks; CREATE TABLE marks (n int)");
  postgres::options impatient;
  impatient.answer_timeout = 400ms;
  with(
      target(),
      [](postgres::connection db) -> task<> {
        for (int i = 0; i < 2; ++i) {
          const auto told = std::make_shared<outcomes>();
          std::vector<task<>> all;
          all.push_back(note(db.execute("INSERT INTO marks VALUES (1)"), told));
          all.push_back(note(db.execute("SELECT pg_sleep(5)"), told));
          all.push_back(note(db.execute("INSERT INTO marks VALUES (2)"), told));
          auto runs = in_order(std::move(all));
          co_await std::move(runs);
          // What was not sent yet is sent over the next connection.
          EXPECT_GE(told->lost, 1);
          EXPECT_EQ(told->answered + told->lost, 3);
          EXPECT_EQ(told->unknown, told->lost);
        }
        EXPECT_EQ(co_await db.query_one<int>("SELECT count(*) FROM marks WHERE n = 1"), 2);
        // An idle connection is not silent.
        co_await sleep_for(600ms);
        EXPECT_EQ(co_await db.query_one<int>("SELECT 1"), 1);
      },
      impatient);
}

// As one that has gone behind a proxy, which keeps the connection open. run() returns all the same.
TEST_P(postgres_failures, a_server_that_is_silent_and_works_for_nobody_is_given_up) {
  postgres::options impatient;
  impatient.cancel_timeout = 200ms;
  int backend = -1;
  constexpr const char* which = "SELECT pg_backend_pid()";
  const auto stop = [&backend](std::optional<int> pid) {
    backend = pid.value_or(-1);
    EXPECT_EQ(::kill(backend, SIGSTOP), 0);
  };
  const auto check = [&](auto test) {
    with(target(), test, impatient);
    EXPECT_EQ(::kill(backend, SIGCONT), 0);
  };
  // The session has asked it to prepare the statement, and has not sent that yet.
  check([&](postgres::connection db) -> task<> {
    stop(co_await db.query_one<int>(which));
    auto gives = gives_up(db);
    co_await std::move(gives);
  });
  // The statement was sent, and another one behind it, which is told.
  check([&](postgres::connection db) -> task<> {
    co_await db.execute(stated);
    stop(co_await db.query_one<int>(which));
    const auto told = std::make_shared<outcomes>();
    std::vector<task<>> all;
    all.push_back(gives_up(db));
    all.push_back(note(db.execute(stated), told));
    auto runs = in_order(std::move(all));
    co_await std::move(runs);
    EXPECT_EQ(told->unknown, 1);
    EXPECT_EQ(co_await db.query_one<int>(stated), 1);
  });
  // The session has sent ROLLBACK itself.
  check([&](postgres::connection db) -> task<> {
    const auto body = [&](postgres::transaction& within) -> task<> {
      stop(co_await within.query_one<int>(which));
      throw std::runtime_error("given up");
    };
    try {
      auto runs = db.in_transaction(body);
      co_await std::move(runs);
      ADD_FAILURE() << "it was stored";
    } catch (const std::runtime_error& given_up) {
      EXPECT_STREQ(given_up.what(), "given up");
    }
  });
}

TROUPE_TEST_EACH(postgres_failures, each_thread_policy);

}  // namespace
}  // namespace troupe::test
