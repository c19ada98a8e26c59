// The handshake: which peers are trusted, what is agreed on, and how everything else is refused.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_handshake : public tls_conformance {};

struct both_outcomes {
  std::string client, server;
  both_outcomes() {}
};
task<both_outcomes> shake_both(tls_options trust, tls_options self, std::string host) {
  tls_pair pair =
      co_await make_tls_pair(tls_context::client(trust), tls_context::server(self), host);
  // A side whose handshake fails closes its stream, as a program should.
  auto ends = [](tls_stream& one) -> task<std::string> {
    const std::string how = co_await outcome_of(shake(one));
    if (how != "ok") {
      one.close();
    } else {
      // Under TLS 1.3 a client's handshake ends before the server has looked at the client's
      // certificate.
      std::array<char, 1> byte;
      auto reads = [](tls_stream& from, std::span<char> to) -> task<> { co_await from.read(to); };
      auto writes = [](tls_stream& to) -> task<> { co_await to.shutdown(); };
      co_await outcome_of(writes(one));
      co_return co_await outcome_of(reads(one, byte));
    }
    co_return how;
  };
  both_outcomes made;
  auto all = when_all(ends(pair.client), ends(pair.server));
  auto [client, server] = co_await std::move(all);
  made.client = client;
  made.server = server;
  co_return made;
}

TEST_P(tls_handshake, both_agree_and_know_what_on) {
  auto agree = []() -> task<> {
    tls_pair pair = co_await make_good_pair();
    for (const tls_stream* one : {&pair.client, &pair.server}) {
      EXPECT_EQ(one->version(), "TLSv1.3");
      EXPECT_EQ(one->cipher(), "TLS_AES_256_GCM_SHA384");
      EXPECT_EQ(one->alpn(), "");
      EXPECT_FALSE(one->resumed());
    }
    EXPECT_FALSE(pair.server.peer_certificate().has_value());
    const tls_certificate shown = pair.client.peer_certificate().value();
    EXPECT_EQ(shown.subject, "CN=server");
    EXPECT_EQ(shown.issuer, "CN=the authority");
    EXPECT_EQ(shown.names, std::vector<std::string>{"good.test"});
    EXPECT_EQ(shown.sha256.size(), 64u);
    EXPECT_EQ(shown.not_after - shown.not_before, 2h);
    EXPECT_FALSE(shown.serial.empty());
  };
  run(agree());
}

TEST_P(tls_handshake, certificates_that_are_not_right_are_refused) {
  auto refuse = []() -> task<> {
    const authority unknown("nobody knows it");
    wanted_certificate old, early, other, wide, partial, address, nameless;
    nameless.names.clear();
    old.from_s = -7200, old.until_s = -3600;
    early.from_s = 3600, early.until_s = 7200;
    other.names = "DNS:other.test";
    wide.names = "DNS:*.deep.test";
    partial.names = "DNS:g*.deep.test";
    address.names = "IP:127.0.0.1,IP:::1";
    struct row {
      const char* name;
      identity shown;
      const char* host;
      const char* outcome;
      long verified;
    };
    const std::vector<row> table{
        {"good", good_identity(), "good.test", "ok", 0},
        {"good in capitals, complete", good_identity(), "GOOD.test.", "ok", 0},
        {"wildcard", trusted().issue(wide), "good.deep.test", "ok", 0},
        {"address", trusted().issue(address), "127.0.0.1", "ok", 0},
        {"address of IPv6", trusted().issue(address), "[::1]", "ok", 0},
        {"expired", trusted().issue(old), "good.test", "certificate", X509_V_ERR_CERT_HAS_EXPIRED},
        {"not valid yet", trusted().issue(early), "good.test", "certificate",
         X509_V_ERR_CERT_NOT_YET_VALID},
        {"another host", trusted().issue(other), "good.test", "certificate",
         X509_V_ERR_HOSTNAME_MISMATCH},
        {"wildcard a level up", trusted().issue(wide), "very.good.deep.test", "certificate",
         X509_V_ERR_HOSTNAME_MISMATCH},
        {"half a wildcard", trusted().issue(partial), "good.deep.test", "certificate",
         X509_V_ERR_HOSTNAME_MISMATCH},
        {"name for an address", good_identity(), "127.0.0.1", "certificate",
         X509_V_ERR_IP_ADDRESS_MISMATCH},
        {"common name alone", trusted().issue(nameless), "server", "certificate",
         X509_V_ERR_HOSTNAME_MISMATCH},
        {"unknown authority", unknown.issue(), "good.test", "certificate",
         X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY},
        {"self-signed", trusted().issue_self_signed(), "good.test", "certificate",
         X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT},
    };
    for (const row& one : table) {
      tls_pair pair = co_await make_tls_pair(tls_context::client(trusting()),
                                             tls_context::server(showing(one.shown)), one.host);
      auto client = [](tls_stream& self, const row& wanted) -> task<> {
        std::string outcome = "ok";
        try {
          co_await self.handshake();
        } catch (const tls_error& e) {
          outcome = text_of(e.reason());
          EXPECT_EQ(e.verify_result(), wanted.verified) << wanted.name << ": " << e.what();
        }
        EXPECT_EQ(outcome, wanted.outcome) << wanted.name;
        self.close();
      };
      auto server = [](tls_stream& self, const row& wanted) -> task<> {
        const std::string how = co_await outcome_of(shake(self));
        // The server is told the reason, unless it still writes when the client has closed.
        if (std::string_view(wanted.outcome) != "ok") {
          EXPECT_TRUE(how == "refused_by_peer" || how == "io_error") << wanted.name << ": " << how;
        }
      };
      auto both = when_all(client(pair.client, one), server(pair.server, one));
      co_await std::move(both);
    }
  };
  run(refuse());
}

TEST_P(tls_handshake, who_asks_for_no_certificate_is_told_of_none) {
  auto agree = []() -> task<> {
    const authority unknown("nobody knows it");
    wanted_certificate old;
    old.from_s = -7200, old.until_s = -3600;
    tls_options careless;
    careless.verify = false;
    const tls_options shady = showing(unknown.issue(old)), good = showing(good_identity()),
                      by_default;
    const both_outcomes got = co_await shake_both(careless, shady, "good.test");
    EXPECT_EQ(got.client + got.server, "okok");
    // By default the system's store decides, which does not contain the tests' authority.
    const both_outcomes by_system = co_await shake_both(by_default, good, "good.test");
    EXPECT_EQ(by_system.client, "certificate");
  };
  run(agree());
}

TEST_P(tls_handshake, a_chain_is_shown_whole) {
  auto show = []() -> task<> {
    const authority between("in between", trusted());
    tls_options self = showing(between.issue());
    const tls_options trust = trusting();
    const both_outcomes cut = co_await shake_both(trust, self, "good.test");
    EXPECT_EQ(cut.client, "certificate");
    self.certificate_pem += between.certificate();
    const both_outcomes whole = co_await shake_both(trust, self, "good.test");
    EXPECT_EQ(whole.client + whole.server, "okok");
  };
  run(show());
}

// The system's store is where OpenSSL looks by default. The variable SSL_CERT_FILE names another
// one.
TEST_P(tls_handshake, the_systems_store_is_trusted_by_default) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("troupe_ca_" + std::to_string(::getpid())))
          .string();
  std::ofstream(file) << trusted().certificate();
  auto shake_by_default = []() -> task<> {
    const tls_options by_default, self = showing(good_identity());
    const both_outcomes got = co_await shake_both(by_default, self, "good.test");
    EXPECT_EQ(got.client + got.server, "okok");
  };
  {
    const scoped_environment store("SSL_CERT_FILE", file.c_str());
    run(shake_by_default());
  }
  std::filesystem::remove(file);
}

TEST_P(tls_handshake, protocols_are_agreed_on_or_not) {
  using names = std::vector<std::string>;
  auto agree = []() -> task<> {
    struct row {
      names offered, served;
      const char* chosen;
    };
    const std::vector<row> table{{{"h2", "http/1.1"}, {"http/1.1"}, "http/1.1"},
                                 {{"a", "b"}, {"b", "a"}, "b"},  // the server chooses
                                 {{"a"}, {}, ""},
                                 {{}, {"a"}, ""}};
    for (const row& one : table) {
      tls_options trust = trusting(), self = showing(good_identity());
      trust.alpn = one.offered;
      self.alpn = one.served;
      const tls_pair pair =
          co_await make_connected_pair(tls_context::client(trust), tls_context::server(self));
      EXPECT_EQ(pair.client.alpn(), one.chosen);
      EXPECT_EQ(pair.server.alpn(), one.chosen);
    }
    // The preset of HTTPS, with the same preset, with a peer that offers more, and with one that
    // offers nothing.
    for (const names& offered : {tls_options::https().alpn, names{"h2", "http/1.1"}, names{}}) {
      tls_options preset = trusting(), served = showing(good_identity());
      preset.alpn = offered;
      served.alpn = tls_options::https("certificate", "key").alpn;
      const tls_pair pair =
          co_await make_connected_pair(tls_context::client(preset), tls_context::server(served));
      EXPECT_EQ(pair.client.alpn(), offered.empty() ? "" : "http/1.1");
      EXPECT_EQ(pair.server.alpn(), offered.empty() ? "" : "http/1.1");
    }
    tls_options trust = trusting(), self = showing(good_identity());
    trust.alpn = {"a"};
    self.alpn = {"b"};
    const both_outcomes none = co_await shake_both(trust, self, "good.test");
    EXPECT_EQ(none.client, "refused_by_peer");
    EXPECT_EQ(none.server, "protocol");
  };
  run(agree());
}

TEST_P(tls_handshake, versions_must_overlap) {
  auto agree = []() -> task<> {
    tls_options old = trusting(), self = showing(good_identity());
    old.max_version = tls_version::v1_2;
    {
      const tls_pair pair =
          co_await make_connected_pair(tls_context::client(old), tls_context::server(self));
      EXPECT_EQ(pair.client.version(), "TLSv1.2");
    }
    self.min_version = tls_version::v1_3;
    const both_outcomes none = co_await shake_both(old, self, "good.test");
    EXPECT_EQ(none.client, "refused_by_peer");
    EXPECT_EQ(none.server, "protocol");
  };
  run(agree());
}

TEST_P(tls_handshake, clients_show_a_certificate_when_asked) {
  auto show = []() -> task<> {
    tls_options self = showing(good_identity()), trust = trusting();
    self.client_certificates = client_proof::required;
    self.ca_pem = trusted().certificate();
    const both_outcomes none = co_await shake_both(trust, self, "good.test");
    EXPECT_TRUE(none.client == "refused_by_peer" || none.client == "io_error") << none.client;
    EXPECT_EQ(none.server, "certificate");
    const identity who = trusted().issue();
    trust.certificate_pem = who.certificate;
    trust.key_pem = who.key;
    const tls_pair pair =
        co_await make_connected_pair(tls_context::client(trust), tls_context::server(self));
    EXPECT_EQ(pair.server.peer_certificate().value().issuer, "CN=the authority");
  };
  run(show());
}

TEST_P(tls_handshake, clients_may_show_a_certificate_where_it_is_requested) {
  auto show = []() -> task<> {
    const authority unknown("nobody knows it");
    tls_options self = showing(good_identity());
    self.client_certificates = client_proof::requested;
    self.ca_pem = trusted().certificate();
    {
      const tls_pair none =
          co_await make_connected_pair(tls_context::client(trusting()), tls_context::server(self));
      EXPECT_FALSE(none.server.peer_certificate().has_value());
    }
    for (const bool known : {true, false}) {
      const identity who = known ? trusted().issue() : unknown.issue();
      tls_options trust = trusting();
      trust.certificate_pem = who.certificate;
      trust.key_pem = who.key;
      const both_outcomes both = co_await shake_both(trust, self, "good.test");
      EXPECT_EQ(both.server, known ? "ok" : "certificate");
    }
  };
  run(show());
}

TEST_P(tls_handshake, old_ciphers_are_refused_unless_they_are_named) {
  auto agree = []() -> task<> {
    tls_options old = trusting(), self = showing(good_identity());
    old.max_version = tls_version::v1_2;
    old.ciphers = "ECDHE-ECDSA-AES128-SHA";
    const both_outcomes none = co_await shake_both(old, self, "good.test");
    EXPECT_EQ(none.client, "refused_by_peer");
    EXPECT_EQ(none.server, "protocol");
    self.ciphers = old.ciphers;
    const both_outcomes both = co_await shake_both(old, self, "good.test");
    EXPECT_EQ(both.client, "ok");
    EXPECT_EQ(both.server, "ok");
  };
  run(agree());
}

// A client's first message that has so many bytes. Its session id, suites and compressions are
// right, and one extension, which no one knows, fills it.
std::string hello_of(std::size_t bytes) {
  const auto number = [](std::size_t value, int size) {
    std::string text;
    for (int i = size - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string body = std::string("\x03\x03", 2) + std::string(32, 'r') + '\0';
  body += number(2, 2) + std::string("\x13\x01", 2) + std::string("\x01\x00", 2);
  std::string extensions;
  for (std::size_t left = bytes - body.size() - 6; left > 0;) {
    const std::size_t size = std::min<std::size_t>(left, 16'000) - 4;
    extensions += number(0xf000 + extensions.size() / 16'000, 2) + number(size, 2);
    extensions += std::string(size, 'e');
    left -= size + 4;
  }
  body += number(extensions.size(), 2) + extensions;
  const std::string message = '\1' + number(body.size(), 3) + body;
  std::string records;
  for (std::size_t at = 0; at < message.size(); at += 16'000) {
    const std::string part = message.substr(at, 16'000);
    records += std::string("\x16\x03\x01", 3) + number(part.size(), 2) + part;
  }
  return records;
}

TEST_P(tls_handshake, has_no_more_bytes_than_the_limit) {
  auto meet = []() -> task<> {
    tls_options options = showing(good_identity());
    options.handshake_bytes = 8 * 1024;
    const tls_context self = tls_context::server(options);
    for (const std::size_t bytes : {std::size_t{7} * 1024, std::size_t{9} * 1024}) {
      stream_pair plain = co_await make_pair();
      tls_stream ours = tls_stream::server(self, std::move(plain.client));
      auto sends = [](tcp_stream& to, std::size_t count) -> task<> {
        co_await to.write_all(hello_of(count));
        to.shutdown_write();
      };
      auto shakes = [](tls_stream& of) -> task<std::string> {
        std::string text;
        try {
          co_await of.handshake();
        } catch (const tls_error& e) {
          text = e.what();
        }
        of.close();
        co_return text;
      };
      auto both = when_all(shakes(ours), outcome_of(sends(plain.server, bytes)));
      auto [got, sent] = co_await std::move(both);
      EXPECT_EQ(got.contains("handshake_bytes"), bytes > options.handshake_bytes) << got;
      EXPECT_NE(got, "");
    }
  };
  run(meet());
}

TEST_P(tls_handshake, a_second_connection_resumes_the_session) {
  auto resume = []() -> task<> {
    for (const tls_version most : {tls_version::v1_2, tls_version::v1_3}) {
      for (const bool tickets : {true, false}) {
        tls_options trust = trusting();
        trust.max_version = most;
        trust.tickets = tickets;
        const tls_context client = tls_context::client(trust),
                          server = tls_context::server(showing(good_identity()));
        for (int i = 0; i < 3; ++i) {
          tls_pair pair = co_await make_connected_pair(client, server);
          EXPECT_EQ(pair.client.resumed(), tickets && i > 0);
          auto both = when_all(read_to_the_end(pair.client), send_and_end(pair.server, "x"));
          co_await std::move(both);
        }
      }
    }
  };
  run(resume());
}

task<> read_all_of(tcp_stream& from) {
  std::array<char, 1000> buffer;
  while (co_await from.read(buffer) != 0) {
  }
}

TEST_P(tls_handshake, garbage_and_silence_and_early_ends) {
  auto meet = []() -> task<> {
    using peer = task<> (*)(tcp_stream&);
    struct row {
      const char* name;
      peer does;
      const char* client;
      const char* server;
    };
    const std::vector<row> table{
        {"another protocol",
         [](tcp_stream& to) -> task<> {
           co_await to.write_all("HTTP/1.1 400 Bad Request\r\n\r\n");
         },
         "protocol", "plain_http"},
        {"zeros", [](tcp_stream& to) -> task<> { co_await to.write_all(std::string(5000, '\0')); },
         "protocol", "protocol"},
        {"a record that is too long",
         [](tcp_stream& to) -> task<> {
           co_await to.write_all(std::string("\x16\x03\x03\xff\xff") + std::string(100, 'x'));
         },
         "protocol", "protocol"},
        {"an alert",
         [](tcp_stream& to) -> task<> {
           co_await to.write_all(std::string("\x15\x03\x03\x00\x02\x02\x28", 7));
         },
         "refused_by_peer", "protocol"},
        {"a goodbye",
         [](tcp_stream& to) -> task<> {
           co_await to.write_all(std::string("\x15\x03\x03\x00\x02\x01\x00", 7));
         },
         "truncated", "protocol"},
        {"an end",
         [](tcp_stream& to) -> task<> {
           to.shutdown_write();
           co_return;
         },
         "truncated", "truncated"},
        {"half a record",
         [](tcp_stream& to) -> task<> {
           co_await to.write_all(std::string("\x16\x03\x01\x01\x00\x01", 6));
           to.shutdown_write();
         },
         "truncated", "truncated"},
        {"silence", [](tcp_stream&) -> task<> { co_return; }, "timed_out", "timed_out"},
    };
    const tls_context trust = tls_context::client(trusting()),
                      self = tls_context::server(showing(good_identity()));
    for (const row& one : table) {
      for (const bool client : {true, false}) {
        stream_pair plain = co_await make_pair();
        tls_stream ours = client ? tls_stream::client(trust, std::move(plain.client), "good.test")
                                 : tls_stream::server(self, std::move(plain.client));
        auto limited = [](tls_stream& of) -> task<> { co_await of.handshake().timeout(50ms); };
        auto shakes = [limited](tls_stream& of) -> task<std::string> {
          std::string how = co_await outcome_of(limited(of));
          of.close();
          co_return how;
        };
        auto all = when_all(shakes(ours), outcome_of(one.does(plain.server)),
                            outcome_of(read_all_of(plain.server)));
        auto [got, wrote, read] = co_await std::move(all);
        EXPECT_EQ(got, client ? one.client : one.server) << one.name;
      }
    }
  };
  run(meet());
}

TEST_P(tls_handshake, http_without_tls_is_told_from_other_protocols) {
  auto meet = []() -> task<> {
    const tls_context self = tls_context::server(showing(good_identity()));
    for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "DELETE / HTTP/1.1\r\n\r\n",
                             "CONNECT a:443 HTTP/1.1\r\n\r\n", "get / HTTP/1.1\r\n\r\n"}) {
      stream_pair plain = co_await make_pair();
      tls_stream ours = tls_stream::server(self, std::move(plain.client));
      co_await plain.server.write_all(text);
      const std::string got = co_await outcome_of(shake(ours));
      EXPECT_EQ(got, std::string_view(text).starts_with("get") ? "protocol" : "plain_http") << text;
    }
  };
  run(meet());
}

TEST_P(tls_handshake, a_reset_is_an_error_of_the_stream) {
  auto meet = []() -> task<> {
    stream_pair plain = co_await make_pair();
    tls_stream ours =
        tls_stream::client(tls_context::client(trusting()), std::move(plain.client), "good.test");
    co_await plain.server.write_all("x");
    auto reset = [](tcp_stream& to) -> task<> {
      std::array<char, 1> byte;
      co_await to.read(byte);
      to.close();  // with bytes that the peer has not read
    };
    auto both = when_all(outcome_of(shake(ours)), reset(plain.server));
    auto [got, done] = co_await std::move(both);
    EXPECT_TRUE(got == "io_error" || got == "truncated" || got == "protocol") << got;
  };
  run(meet());
}

TEST_P(tls_handshake, misuse_is_told) {
  auto misuse = []() -> task<> {
    const tls_context trust = tls_context::client(trusting()),
                      self = tls_context::server(showing(good_identity()));
    EXPECT_THROW(static_cast<void>(tls_stream::client(self, tcp_stream(), "good.test")),
                 option_error);
    EXPECT_THROW(tls_stream::server(trust, tcp_stream()), option_error);
    for (const std::string& host :
         {std::string(), std::string(".test"), std::string("a b"), std::string("a\0b", 3),
          std::string("a\r\n"), std::string(300, 'a')}) {
      EXPECT_THROW(static_cast<void>(tls_stream::client(trust, tcp_stream(), host)), option_error)
          << host;
    }
    tls_stream none;
    EXPECT_THROW(static_cast<void>(none.handshake()), usage_error);
    EXPECT_FALSE(none.is_open());
    tls_pair pair = co_await make_tls_pair(trust, self);
    const std::string early = co_await outcome_of(send_bytes(pair.client, "x"));
    EXPECT_EQ(early, "usage_error");
    auto nothing = [](tls_stream& of) -> task<> { co_await read_to_the_end(of); };
    const std::string also = co_await outcome_of(nothing(pair.client));
    EXPECT_EQ(also, "usage_error");
  };
  run(misuse());
}

TEST(tls_context, options_that_make_no_sense_are_refused) {
  const identity& good = good_identity();
  const auto refused = [](const tls_options& options) {
    EXPECT_THROW(tls_context::server(options), option_error);
  };
  refused({});
  tls_options changed = showing(good);
  changed.key_pem = trusted().issue().key;
  refused(changed);
  changed = showing(good);
  changed.key_pem = "no key";
  refused(changed);
  changed = showing(good);
  changed.certificate_pem = "no certificate";
  refused(changed);
  changed = showing(good);
  changed.certificate_file = "/also";
  refused(changed);
  changed = showing(good);
  changed.certificate_pem.clear();
  changed.certificate_file = "/no/such/file";
  refused(changed);
  changed = showing(good);
  changed.client_certificates = client_proof::required;
  refused(changed);
  changed.ca_pem = "nothing";
  refused(changed);
  changed = showing(good);
  changed.handshake_bytes = 4095;
  refused(changed);
  changed = showing(good);
  changed.ticket_key_time = 0s;
  refused(changed);
  changed = showing(good);
  changed.ciphers = "nothing that is known";
  refused(changed);
  changed = showing(good);
  changed.alpn = {""};
  refused(changed);
  changed.alpn = {std::string(256, 'a')};
  refused(changed);
  changed = showing(good);
  changed.min_version = tls_version::v1_3;
  changed.max_version = tls_version::v1_2;
  refused(changed);
  tls_options client;
  client.certificate_pem = good.certificate;
  EXPECT_THROW(tls_context::client(client), option_error);
}

TROUPE_TLS_TEST_EACH(tls_handshake);

}  // namespace
}  // namespace troupe::test
