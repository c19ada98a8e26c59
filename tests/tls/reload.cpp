// A server's certificates and keys of tickets change while it runs.
#include "support/scratch.hpp"
#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_reload : public tls_conformance {};

// Connects, and exchanges a byte, so that the client gets a ticket. Returns the serial number of
// the certificate that the server shows, and "resumed" behind it when the session was resumed.
task<std::string> connect(tls_context trust, tls_context self) {
  tls_pair pair = co_await make_connected_pair(std::move(trust), std::move(self));
  std::string got = pair.client.peer_certificate().value().serial;
  if (pair.client.resumed()) got += " resumed";
  EXPECT_EQ(pair.client.resumed(), pair.server.resumed());
  auto both = when_all(read_to_the_end(pair.client), send_and_end(pair.server, "x"));
  co_await std::move(both);
  co_return got;
}

tls_options up_to(tls_options options, tls_version most) {
  options.max_version = most;
  return options;
}

TEST_P(tls_reload, gives_new_connections_the_new_certificate_and_old_ones_go_on) {
  auto change = []() -> task<> {
    const identity first = trusted().issue(), second = trusted().issue();
    const tls_context server = tls_context::server(showing(first)),
                      copy = server;  // NOLINT: a copy is the same context
    tls_pair before = co_await make_connected_pair(tls_context::client(trusting()), server);
    server.reload(showing(second));
    tls_pair after = co_await make_connected_pair(tls_context::client(trusting()), copy);
    EXPECT_NE(before.client.peer_certificate().value().serial,
              after.client.peer_certificate().value().serial);
    for (tls_pair* one : {&before, &after}) {
      auto both = when_all(read_to_the_end(one->client), send_and_end(one->server, "still here"));
      auto [got, sent] = co_await std::move(both);
      EXPECT_EQ(got, "still here");
    }
  };
  run(change());
}

TEST_P(tls_reload, reads_the_same_files_again) {
  const scratch folder;
  const auto write = [&](const identity& one) {
    folder.put("certificate.pem", one.certificate);
    folder.put("key.pem", one.key);
  };
  auto change = [&]() -> task<> {
    write(trusted().issue());
    tls_options options;
    options.certificate_file = folder / "certificate.pem";
    options.key_file = folder / "key.pem";
    const tls_context server = tls_context::server(options);
    tls_options none = trusting();
    none.tickets = false;
    const tls_context client = tls_context::client(none);
    const std::string first = co_await connect(client, server);
    server.reload();
    const std::string same = co_await connect(client, server);
    EXPECT_EQ(same, first);
    write(trusted().issue());
    server.reload();
    const std::string other = co_await connect(client, server);
    EXPECT_NE(other, first);
    folder.put("key.pem", "damaged");
    EXPECT_THROW(server.reload(), option_error);
    const std::string kept = co_await connect(client, server);
    EXPECT_EQ(kept, other);
  };
  run(change());
}

TEST_P(tls_reload, keeps_the_sessions_of_clients) {
  auto change = []() -> task<> {
    for (const tls_version most : {tls_version::v1_2, tls_version::v1_3}) {
      const tls_context server = tls_context::server(showing(good_identity())),
                        client = tls_context::client(up_to(trusting(), most));
      const std::string full = co_await connect(client, server);
      server.reload(showing(trusted().issue()));
      const std::string again = co_await connect(client, server);
      EXPECT_EQ(again, full + " resumed");
    }
  };
  run(change());
}

TEST_P(tls_reload, of_who_is_trusted_ends_the_sessions_of_clients) {
  auto change = []() -> task<> {
    const authority other("another authority");
    tls_options self = showing(good_identity());
    self.client_certificates = client_proof::requested;
    self.ca_pem = trusted().certificate();
    const tls_context server = tls_context::server(self), client = tls_context::client(trusting());
    const std::string full = co_await connect(client, server);
    const std::string again = co_await connect(client, server);
    EXPECT_EQ(again, full + " resumed");
    self.ca_pem = other.certificate();
    server.reload(self);
    const std::string after = co_await connect(client, server);
    EXPECT_EQ(after, full);
  };
  run(change());
}

TEST_P(tls_reload, keys_of_tickets_rotate_and_the_last_three_are_taken) {
  auto rotate = []() -> task<> {
    for (const tls_version most : {tls_version::v1_2, tls_version::v1_3}) {
      const tls_context server = tls_context::server(showing(good_identity())),
                        client = tls_context::client(up_to(trusting(), most));
      const std::string full = co_await connect(client, server);
      for (int i = 0; i < 6; ++i) {  // each connection gets a ticket of the newest key
        server.rotate_ticket_keys();
        const std::string again = co_await connect(client, server);
        EXPECT_EQ(again, full + " resumed") << i;
      }
      for (int i = 0; i < 2; ++i) server.rotate_ticket_keys();
      const std::string late = co_await connect(client, server);
      EXPECT_EQ(late, full + " resumed");
      for (int i = 0; i < 3; ++i) server.rotate_ticket_keys();
      const std::string too_late = co_await connect(client, server);
      EXPECT_EQ(too_late, full);
    }
  };
  run(rotate());
}

TEST_P(tls_reload, two_contexts_do_not_take_each_others_tickets) {
  auto meet = []() -> task<> {
    const tls_context one = tls_context::server(showing(good_identity())),
                      other = tls_context::server(showing(good_identity())),
                      client = tls_context::client(trusting());
    const std::string full = co_await connect(client, one);
    const std::string there = co_await connect(client, other);
    EXPECT_EQ(there, full);
  };
  run(meet());
}

TEST(tls_reload_of_a_client, is_refused) {
  const tls_context client = tls_context::client(trusting());
  EXPECT_THROW(client.reload(), usage_error);
  EXPECT_THROW(client.rotate_ticket_keys(), usage_error);
}

}  // namespace

TROUPE_TLS_TEST_EACH(tls_reload);

}  // namespace troupe::test
