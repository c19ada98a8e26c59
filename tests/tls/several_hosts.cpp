// A server of several hosts shows each client the certificate of the host that it asks for.
#include "tls/support.hpp"

namespace troupe::test {
namespace {

class tls_several_hosts : public tls_conformance {};

tls_identity shown(const identity& one) {
  tls_identity made;
  made.certificate_pem = one.certificate;
  made.key_pem = one.key;
  return made;
}

identity issue(const authority& by, const char* names) {
  wanted_certificate like;
  like.names = names;
  return by.issue(like);
}

// Returns the names in the certificate that the server shows, or how the handshake failed.
task<std::string> shown_to(tls_context trust, tls_context self, std::string host) {
  tls_pair pair = co_await make_tls_pair(std::move(trust), std::move(self), std::move(host));
  auto ends = [](tls_stream& one) -> task<std::string> {
    const std::string how = co_await outcome_of(shake(one));
    if (how != "ok") one.close();
    co_return how;
  };
  auto both = when_all(ends(pair.client), ends(pair.server));
  const auto [client, server] = co_await std::move(both);
  if (client != "ok") co_return client;
  std::string names;
  const tls_certificate certificate = pair.client.peer_certificate().value();
  for (const std::string& one : certificate.names) names += one + " ";
  co_return names;
}

TEST_P(tls_several_hosts, each_sees_the_certificate_of_who_it_asks_for) {
  auto ask = []() -> task<> {
    tls_options self = showing(good_identity());
    // One certificate is signed by an authority in between, whose certificate must be sent along.
    static const authority between("in between", trusted());
    identity deep = issue(between, "DNS:*.wide.test");
    deep.certificate += between.certificate();
    self.more.push_back(shown(issue(trusted(), "DNS:other.test,DNS:also.test")));
    self.more.push_back(shown(deep));
    const tls_context server = tls_context::server(self), client = tls_context::client(trusting());
    tls_options careless;
    careless.verify = false;
    const tls_context anybody = tls_context::client(careless);
    for (int round = 0; round < 2; ++round) {  // the second round resumes sessions of the first one
      const std::string good = co_await shown_to(client, server, "good.test");
      EXPECT_EQ(good, "good.test ");
      const std::string other = co_await shown_to(client, server, "other.test");
      EXPECT_EQ(other, "other.test also.test ");
      const std::string also = co_await shown_to(client, server, "also.test");
      EXPECT_EQ(also, "other.test also.test ");
      const std::string wide = co_await shown_to(client, server, "a.wide.test");
      EXPECT_EQ(wide, "*.wide.test ");
      const std::string unknown = co_await shown_to(client, server, "unknown.test");
      EXPECT_EQ(unknown, "certificate");
      const std::string first = co_await shown_to(anybody, server, "unknown.test");
      EXPECT_EQ(first, "good.test ");
      // A client does not name the host when it has only an address.
      const std::string unnamed = co_await shown_to(anybody, server, "127.0.0.1");
      EXPECT_EQ(unnamed, "good.test ");
    }
  };
  run(ask());
}

TEST_P(tls_several_hosts, an_exact_name_counts_before_a_wildcard) {
  auto ask = []() -> task<> {
    tls_options self = showing(good_identity());
    self.more.push_back(shown(issue(trusted(), "DNS:*.wide.test")));
    self.more.push_back(shown(issue(trusted(), "DNS:a.wide.test,DNS:UPPER.test")));
    self.more.push_back(shown(issue(trusted(), "DNS:a.wide.test,DNS:also.test")));
    const tls_context server = tls_context::server(self), client = tls_context::client(trusting());
    const std::string exact = co_await shown_to(client, server, "A.wide.test");
    EXPECT_EQ(exact, "a.wide.test UPPER.test ");
    const std::string upper = co_await shown_to(client, server, "upper.TEST");
    EXPECT_EQ(upper, "a.wide.test UPPER.test ");
    const std::string wide = co_await shown_to(client, server, "b.wide.test");
    EXPECT_EQ(wide, "*.wide.test ");
    // A wildcard is for one label, and for at least one.
    for (const char* host : {"b.a.wide.test", "wide.test"}) {
      const std::string none = co_await shown_to(client, server, host);
      EXPECT_EQ(none, "certificate") << host;
    }
  };
  run(ask());
}

TEST(tls_several_hosts_options, that_make_no_sense_are_refused) {
  tls_options self = showing(good_identity());
  self.more.emplace_back();
  EXPECT_THROW(tls_context::server(self), option_error);
  self.more.front() = shown(good_identity());
  self.more.front().key_pem = issue(trusted(), "DNS:a.test").key;
  EXPECT_THROW(tls_context::server(self), option_error);
  self.more.front() = shown(good_identity());
  EXPECT_THROW(tls_context::client(self), option_error);
  EXPECT_NO_THROW(tls_context::server(self));
}

}  // namespace

TROUPE_TLS_TEST_EACH(tls_several_hosts);

}  // namespace troupe::test
