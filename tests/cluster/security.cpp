// A node and the security of its NATS servers: with what they want it joins and works, and with
// anything else ready() says why not.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nats/issued_user.hpp"
#include "nats/nats_server.hpp"
#include "postgres/cluster.hpp"
#include "support/conformance.hpp"
#include "tls/certificates.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using nats::key_kind;
using nats::nkey;

struct Ping {
  int count = 0;
  int add(int n) { return count += n; }
};

class cluster_security : public conformance {
 protected:
  void SetUp() override {
    conformance::SetUp();
    if (IsSkipped()) return;
    if (!nats_server::is_installed()) GTEST_SKIP() << "needs nats-server";
    if (const std::string& why = test::postgres_server::get().why_not(); !why.empty())
      GTEST_SKIP() << why;
  }

  static cluster::options of(const nats_server& bus, const std::string& url,
                             const nats::options& chosen) {
    cluster::options made;
    made.nats = url;
    made.database = test::postgres_server::get().target();
    made.cluster = "security" + std::to_string(bus.port());
    made.connection = chosen;
    return made;
  }
  // "ok", if the node has joined and its actors are found over that server; otherwise the kind and
  // the text of what ready() throws.
  static task<std::string> try_node(runtime& rt, cluster::options chosen) {
    const cluster::node one(rt, std::move(chosen), cluster::kind<Ping, &Ping::add>());
    std::string said = "ok";
    try {
      auto joins = one.ready();
      co_await std::move(joins);
      // Through the server, since it is asked of a node and not of its shards.
      auto asks = one.on<Ping>(one.self()).ask<&Ping::add>(3);
      EXPECT_EQ(co_await std::move(asks), 3);
      EXPECT_TRUE(one.counts().is_connected);
    } catch (const cluster::error& e) {
      said = std::string(cluster::name_of(e.kind())) + ": " + e.what();
    }
    co_await one.stop();
    co_return said;
  }
  std::string outcome(const nats_server& bus, const nats::options& chosen = {},
                      const std::string& user = {}) {
    runtime rt(options());
    future<std::string> said = rt.spawn(try_node(rt, of(bus, bus.url(user), chosen)));
    rt.run();
    return said.get();
  }
  void expect_failure(const std::string& outcome, const std::string& kind,
                      const std::string& words) {
    EXPECT_TRUE(outcome.starts_with(kind + ": ")) << outcome;
    EXPECT_NE(outcome.find(words), std::string::npos) << outcome;
  }
};

TEST_P(cluster_security, passwords) {
  const nats_server bus("authorization { user: ada, password: s3cret }");
  nats::options chosen;
  expect_failure(outcome(bus), "denied", "Authorization Violation");
  chosen.user = "ada";
  chosen.password = "wrong";
  expect_failure(outcome(bus, chosen), "denied", "Authorization Violation");
  chosen.password = "s3cret";
  EXPECT_EQ(outcome(bus, chosen), "ok");
  EXPECT_EQ(outcome(bus, {}, "ada:s3cret"), "ok");
}

TEST_P(cluster_security, nkeys) {
  const nkey key(key_kind::user, {1, 2, 3}), other(key_kind::user, {4});
  const nats_server bus("authorization { users: [ { nkey: " + key.public_key() + " } ] }",
                        {{"seed", key.seed() + "\n"}});
  nats::options chosen;
  chosen.nkey_seed = other.seed();
  expect_failure(outcome(bus, chosen), "denied", "Authorization Violation");
  chosen.nkey_seed = key.seed();
  EXPECT_EQ(outcome(bus, chosen), "ok");
  chosen.nkey_seed.clear();
  chosen.nkey_file = bus.folder() + "/nothing";
  expect_failure(outcome(bus, chosen), "denied", "/nothing");
  chosen.nkey_file = bus.folder() + "/seed";
  EXPECT_EQ(outcome(bus, chosen), "ok");
}

TEST_P(cluster_security, files_of_credentials) {
  const nkey user(key_kind::user, {3}), other(key_kind::user, {4});
  const issued_user issued(user);
  const nats_server bus(issued.server_config(), {{"user.creds", issued.file(user)}});
  nats::options chosen;
  expect_failure(outcome(bus), "denied", "Authorization Violation");
  chosen.credentials = issued.file(other);
  expect_failure(outcome(bus, chosen), "denied", "Authorization Violation");
  chosen.credentials.clear();
  chosen.credentials_file = bus.folder() + "/user.creds";
  EXPECT_EQ(outcome(bus, chosen), "ok");
}

TEST_P(cluster_security, tls_with_the_certificates_of_both_ends) {
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
    const nats_server bus(tls + "timeout: 10 }", files);
    EXPECT_EQ(outcome(bus, trusts), "ok");
    expect_failure(outcome(bus, distrusts), "unreachable", "certificate");
    expect_failure(outcome(bus), "unreachable", "certificate");
  }
  const nats_server bus(tls + "ca_file: FOLDER/ca.pem, verify: true, timeout: 10 }", files);
  expect_failure(outcome(bus, trusts), "unreachable", "certificate");
  trusts.tls->certificate_pem = foreign_is.certificate;
  trusts.tls->key_pem = foreign_is.key;
  expect_failure(outcome(bus, trusts), "unreachable", "certificate");
  trusts.tls->certificate_pem = client_is.certificate;
  trusts.tls->key_pem = client_is.key;
  EXPECT_EQ(outcome(bus, trusts), "ok");
}

// A user who may not take the subjects of nodes.
TEST_P(cluster_security, permissions) {
  const nats_server bus(
      "authorization { users: [ { user: ada, password: p, permissions: { subscribe: "
      "{ deny: [\"troupe.>\"] } } } ] }");
  const std::string said = outcome(bus, {}, "ada:p");
  EXPECT_TRUE(said.starts_with("denied: ")) << said;
}

// It goes on to try: a server that comes, or takes the node, later is as good.
TEST_P(cluster_security, a_node_joins_when_its_server_comes_later) {
  nats_server bus;
  bus.kill();
  runtime rt(options());
  const auto all = [&]() -> task<> {
    const cluster::node one(rt, of(bus, bus.url(), {}), cluster::kind<Ping, &Ping::add>());
    std::string first = "ok";
    try {
      auto joins = one.ready();
      co_await std::move(joins);
    } catch (const cluster::error& e) {
      first = cluster::name_of(e.kind());
    }
    EXPECT_EQ(first, "unreachable");
    bus.start();
    const auto until = troupe::now() + 60s;
    while (one.counts().shards != 1024 && troupe::now() < until) co_await sleep_for(10ms);
    auto joins = one.ready();
    co_await std::move(joins);
    auto asks = one.get<Ping>("a").ask<&Ping::add>(3);
    EXPECT_EQ(co_await std::move(asks), 3);
    co_await one.stop();
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();
}

std::vector<setting> one_security_setting() { return {{policy::work_stealing, 2, 1}}; }
TROUPE_TEST_EACH(cluster_security, one_security_setting);

}  // namespace
}  // namespace troupe::test
