// nats::connection: TLS with and without own certificates, passwords, tokens, nkeys, credentials,
// and what a user may not do.
#include <chrono>
#include <string>

#include "nats/fixture.hpp"
#include "nats/issued_user.hpp"
#include "nats/protocol/nkey.hpp"
#include "tls/certificates.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::connection;
using nats::key_kind;
using nats::nkey;

class nats_security : public nats_fixture {
 protected:
  // How a first connection with these options ends.
  std::string first_outcome(const std::string& servers, const nats::options& chosen = {}) {
    runtime rt(options());
    const auto connects = [](std::string to, nats::options how) -> task<std::string> {
      auto opens = nats::connect(std::move(to), std::move(how));
      co_return co_await outcome_of(std::move(opens));
    };
    future<std::string> how = rt.spawn(connects(servers, chosen));
    rt.run();
    return how.get();
  }
};

TEST_P(nats_security, passwords_and_tokens) {
  {
    nats_server server("authorization { user: ada, password: s3cret }");
    EXPECT_EQ(first_outcome(server.url()), "denied");
    EXPECT_EQ(first_outcome(server.url("ada:wrong")), "denied");
    EXPECT_EQ(first_outcome(server.url("ada:s3cret")), "ok");
    nats::options chosen;
    chosen.user = "ada";
    chosen.password = "s3cret";
    EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
    // "\r\n" in a password is a part of it.
    chosen.password = "s3cret\r\nPING\r\n\"";
    EXPECT_EQ(first_outcome(server.url(), chosen), "denied");
  }
  nats_server server("authorization { token: t0ken }");
  EXPECT_EQ(first_outcome(server.url()), "denied");
  EXPECT_EQ(first_outcome(server.url("t0ken")), "ok");
  nats::options chosen;
  chosen.token = "t0ken";
  EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
}

TEST_P(nats_security, nkeys) {
  const nkey key(key_kind::user, {1, 2, 3}), other(key_kind::user, {4});
  nats_server server("authorization { users: [ { nkey: " + key.public_key() + " } ] }",
                     {{"seed", "# of a test\n" + key.seed() + "\n"}});
  nats::options chosen;
  EXPECT_EQ(first_outcome(server.url()), "denied");
  chosen.nkey_seed = key.seed();
  EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
  chosen.nkey_seed = other.seed();
  EXPECT_EQ(first_outcome(server.url(), chosen), "denied");
  chosen.nkey_seed.clear();
  chosen.nkey_file = server.folder() + "/seed";
  EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
  chosen.nkey_file = server.folder() + "/nothing";
  EXPECT_EQ(first_outcome(server.url(), chosen), "denied");
}

TEST_P(nats_security, files_of_credentials) {
  const nkey user(key_kind::user, {3}), other(key_kind::user, {4});
  const issued_user issued(user);
  nats_server server(issued.server_config(), {{"user.creds", issued.file(user)}});
  nats::options chosen;
  EXPECT_EQ(first_outcome(server.url()), "denied");
  chosen.credentials_file = server.folder() + "/user.creds";
  EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
  chosen.credentials_file.clear();
  chosen.credentials = issued.file(user);
  EXPECT_EQ(first_outcome(server.url(), chosen), "ok");
  chosen.credentials = issued.file(other);
  EXPECT_EQ(first_outcome(server.url(), chosen), "denied");
  chosen.credentials = "no credentials";
  EXPECT_EQ(first_outcome(server.url(), chosen), "denied");
}

TEST_P(nats_security, tls_with_the_certificates_of_both_ends) {
  const authority trusted("trusted"), foreign("foreign");
  wanted_certificate names;
  names.names = "IP:127.0.0.1";
  const test::identity server_is = trusted.issue(names), client_is = trusted.issue(),
                       foreign_is = foreign.issue();
  const nats_server::files files{{"cert.pem", server_is.certificate},
                                 {"key.pem", server_is.key},
                                 {"ca.pem", trusted.certificate()}};
  const std::string tls = "tls { cert_file: FOLDER/cert.pem, key_file: FOLDER/key.pem, ";
  nats::options trusts, distrusts;
  trusts.tls.emplace();
  trusts.tls->ca_pem = trusted.certificate();
  distrusts.tls.emplace();
  distrusts.tls->ca_pem = foreign.certificate();
  {
    nats_server server(tls + "timeout: 10 }", files);
    EXPECT_EQ(first_outcome(server.url(), trusts), "ok");
    EXPECT_EQ(first_outcome(server.url({}, "tls"), trusts), "ok");
    EXPECT_EQ(first_outcome(server.url(), distrusts), "unreachable");
    EXPECT_EQ(first_outcome(server.url()), "unreachable");  // the system's store does not know it
    with(
        server.url(),
        [](connection bus) -> task<> {
          auto all = co_await bus.subscribe("a");
          for (int i = 0; i < 1'000; ++i) co_await bus.publish("a", std::string(1'000, 'x'));
          for (int i = 0; i < 1'000; ++i) EXPECT_EQ((co_await next_of(all)).size(), 1'000u);
          EXPECT_EQ(co_await outcome_of(bus.request("b", "")), "no_responders");
        },
        trusts);
  }
  nats_server server(tls + "ca_file: FOLDER/ca.pem, verify: true, timeout: 10 }", files);
  EXPECT_EQ(first_outcome(server.url(), trusts), "unreachable");
  trusts.tls->certificate_pem = client_is.certificate;
  trusts.tls->key_pem = client_is.key;
  EXPECT_EQ(first_outcome(server.url(), trusts), "ok");
  trusts.tls->certificate_pem = foreign_is.certificate;
  trusts.tls->key_pem = foreign_is.key;
  EXPECT_EQ(first_outcome(server.url(), trusts), "unreachable");
}

TEST_P(nats_security, a_server_without_tls_is_refused_when_tls_is_wanted) {
  nats_server server;
  EXPECT_EQ(first_outcome(server.url({}, "tls")), "unreachable");
  nats::options chosen;
  chosen.tls.emplace();
  EXPECT_EQ(first_outcome(server.url(), chosen), "unreachable");
}

TEST_P(nats_security, what_a_user_may_not_do_fails_as_denied) {
  nats_server server(
      "authorization { users: [ { user: ada, password: p, permissions: { "
      "publish: { deny: [\"secret.>\"] }, subscribe: { deny: [\"hidden\"] } } } ] }");
  with(server.url("ada:p"), [](connection bus) -> task<> {
    auto hidden = co_await bus.subscribe("hidden");
    EXPECT_EQ(co_await next_of(hidden), "denied");
    EXPECT_EQ(co_await outcome_of(bus.request("secret.x", "y")), "denied");
    auto open = co_await bus.subscribe("open");
    co_await bus.publish("open", "x");
    EXPECT_EQ(co_await next_of(open), "x");
    EXPECT_EQ(bus.now().connections, 1u);
  });
}

TROUPE_TEST_EACH(nats_security, each_thread_policy);

}  // namespace
}  // namespace troupe::test
