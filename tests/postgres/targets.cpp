// postgres::connection: the values of a target that count, wherever they are written.
#include <chrono>
#include <string>
#include <tuple>

#include "postgres/fixture.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class postgres_targets : public postgres_fixture {
 protected:
  static task<> has_user(postgres::connection db, std::string user) {
    auto reads = db.query_one<std::string>("SELECT current_user::text");
    EXPECT_EQ(co_await std::move(reads), user);
  }
};

TEST_P(postgres_targets, the_file_of_services_counts_before_the_defaults) {
  const scratch folder;
  const postgres_server& server = postgres_server::get();
  server.sql("DROP ROLE IF EXISTS of_service; CREATE ROLE of_service LOGIN");
  const std::string place = "host=" + server.folder() + "\nport=" + server.port() + "\n";
  const std::string file = folder.put(
      "services.conf", "[bank]\n" + place + "user=of_service\ndbname=postgres\n[secure]\n" + place +
                           "user=tester\ndbname=postgres\nsslmode=verify-full\n"
                           "sslrootcert=/dev/null\n");
  const scoped_environment services("PGSERVICEFILE", file.c_str());
  with("service=bank", [](postgres::connection db) { return has_user(db, "of_service"); });
  with("service=bank user=tester", [](postgres::connection db) { return has_user(db, "tester"); });
  // A service's sslmode is not weakened by the default.
  with("service=secure host=127.0.0.1", [](postgres::connection db) -> task<> {
    const std::string failed = co_await failure_of(db.run_script(""));
    EXPECT_TRUE(has(failed, "certificate")) << failed;
  });
  with("service=none", [](postgres::connection db) -> task<> {
    EXPECT_TRUE(has(co_await failure_of(db.run_script("")), "malformed"));
  });
}

// This client does not encrypt by GSSAPI, and must not connect without what was asked for.
TEST_P(postgres_targets, encryption_by_gssapi_is_refused_if_the_target_insists) {
  const scratch folder;
  const postgres_server& server = postgres_server::get();
  const auto is_refused = [](postgres::connection db) -> task<> {
    const std::string failed = co_await failure_of(db.run_script(""));
    EXPECT_TRUE(has(failed, "malformed") && has(failed, "gssencmode")) << failed;
  };
  const std::string place = "host=127.0.0.1 user=tester dbname=postgres port=" + server.port();
  with(place + " gssencmode=require", is_refused);
  with(place + " gssencmode=always", is_refused);
  const std::string file = folder.put("services.conf", "[bank]\nuser=tester\ngssencmode=require\n");
  const scoped_environment services("PGSERVICEFILE", file.c_str());
  with("service=bank host=127.0.0.1 port=" + server.port(), is_refused);
  const scoped_environment insists("PGGSSENCMODE", "require");
  with(place, is_refused);
  with(server.tcp_target("gssencmode=prefer"),
       [](postgres::connection db) { return has_user(db, "tester"); });
}

TEST_P(postgres_targets, lists_of_different_lengths_are_refused) {
  for (const char* const wrong : {"host=a,b port=1,2,3", "host=a,b hostaddr=127.0.0.1"})
    with(wrong, [](postgres::connection db) -> task<> {
      const std::string failed = co_await failure_of(db.run_script(""));
      EXPECT_TRUE(has(failed, "malformed") && has(failed, "could not match")) << failed;
    });
}

TEST_P(postgres_targets, a_port_that_is_none_is_refused) {
  for (const char* const wrong : {"0", "65536", "99999", "-1", "54x", "5432,0"}) {
    with(std::string("host=127.0.0.1 port=") + wrong, [wrong](postgres::connection db) -> task<> {
      const std::string failed = co_await failure_of(db.run_script(""));
      EXPECT_TRUE(has(failed, "malformed") && has(failed, "port")) << wrong << ": " << failed;
    });
  }
}

TEST_P(postgres_targets, connect_timeout_of_the_target_limits_each_address) {
  const auto test = [](unix_listener silent, postgres::connection db) -> task<> {
    const auto begun = std::chrono::steady_clock::now();
    const std::string failed = co_await failure_of(db.execute("SELECT 1"));
    EXPECT_TRUE(has(failed, "not answered in time")) << failed;
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 500s);
    static_cast<void>(silent);
  };
  runtime rt(options());
  const scratch folder;
  postgres::options chosen;
  chosen.connect_timeout = 1'000s;
  future<> done = rt.spawn(
      test(unix_listener::listen(folder / ".s.PGSQL.5432"),
           postgres::connection(rt, "connect_timeout=1 user=x host=" + (folder / ""), chosen)));
  rt.run();
  done.get();
}

class postgres_standbys : public postgres_targets {};

TEST_P(postgres_standbys, a_standby_is_preferred) {
  postgres_server& server = postgres_server::get();
  const auto in_recovery = [](postgres::connection db, bool expected) -> task<> {
    auto reads = db.query_one<bool>("SELECT pg_is_in_recovery()");
    EXPECT_EQ(co_await std::move(reads), expected);
  };
  const auto test_with = [&](const char* attributes, bool expected) {
    with(server.target_of_both(attributes),
         [&](postgres::connection db) { return in_recovery(db, expected); });
  };
  server.start_standby();
  test_with("target_session_attrs=prefer-standby", true);
  test_with("target_session_attrs=standby", true);
  test_with("target_session_attrs=primary", false);
  test_with("", false);
  server.stop_standby();
  test_with("target_session_attrs=prefer-standby", false);
}

std::vector<setting> two_workers() { return {{policy::work_stealing, 2, 1}}; }
TROUPE_TEST_EACH(postgres_targets, each_thread_policy);
TROUPE_TEST_EACH(postgres_standbys, two_workers);

}  // namespace
}  // namespace troupe::test
