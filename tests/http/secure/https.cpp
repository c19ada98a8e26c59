// HTTPS: what becomes of handshakes and connections, and what handlers see of them.
#include "http/secure/https.hpp"

#include <atomic>
#include <vector>

#include "tls/wire_of.hpp"
#include "troupe/http/client.hpp"

namespace troupe::test {
namespace {

using http::handshake_counts;
using http::request;
using http::response;
using http::server_options;
using namespace std::chrono_literals;

class https : public https_conformance {};

task<> wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 10'000 && !holds(); ++i) co_await sleep_for(1ms);
  EXPECT_TRUE(holds());
}

const std::string get_hello_and_close =
    "GET / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n";

TEST_P(https, is_served_and_counted) {
  const tls_context self = tls_context::server(served());
  const handshake_counts counts =
      run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
        tls_options offers = trusting_it();
        offers.alpn = {"spdy/3", "http/1.1"};
        const tls_context client = tls_context::client(offers);
        for (int i = 0; i < 3; ++i) {
          tls_stream peer = co_await connect_secretly(at, client);
          EXPECT_EQ(peer.alpn(), "http/1.1");
          EXPECT_EQ(peer.resumed(), i > 0);
          for (int j = 0; j < 10; ++j) {
            const std::string got = co_await ask_secretly(peer, get_hello, "hello");
            EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n")) << got;
          }
          co_await peer.shutdown();
        }
        co_await wait_until([&] { return web.connections() == 0; });
      });
  EXPECT_EQ(counts.done, 3u);
  EXPECT_EQ(counts.resumed, 2u);
  EXPECT_EQ(counts.under_way, 0u);
  EXPECT_EQ(counts.unannounced_ends, 0u);
}

TEST_P(https, answers_400_to_http_without_tls) {
  const tls_context self = tls_context::server(served());
  std::string all;
  const handshake_counts counts =
      run_secretly(hello_routes(), self, [&](http::server, endpoint at) -> task<> {
        for (const char* method : {"GET", "POST", "DELETE", "OPTIONS"}) {
          const std::string got = co_await exchange(
              at, std::string(method) + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
          EXPECT_TRUE(got.starts_with("HTTP/1.1 400 ")) << got;
          EXPECT_TRUE(got.ends_with("https instead of http://\n")) << got;
          const std::size_t body = got.find("\r\n\r\n") + 4;
          EXPECT_TRUE(got.contains("Content-Length: " + std::to_string(got.size() - body))) << got;
        }
      });
  EXPECT_EQ(counts.plain_http, 4u);
  EXPECT_EQ(counts.done, 0u);
}

TEST_P(https, counts_each_way_in_which_a_handshake_fails) {
  tls_options options = served();
  options.client_certificates = client_proof::required;
  options.ca_pem = the_authority().certificate();
  const tls_context self = tls_context::server(options);
  const handshake_counts counts =
      run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
        const auto fails = [&](tls_options by) -> task<> {
          try {
            tls_stream peer = co_await connect_secretly(at, tls_context::client(by));
            // Under TLS 1.3 a client's handshake ends before the server has seen its certificate.
            co_await ask_secretly(peer, get_hello, "hello");
            ADD_FAILURE() << "it was answered";
          } catch (const tls_error&) {
          } catch (const io_error&) {
          }
        };
        co_await fails(trusting_it());  // has no certificate
        tls_options other = trusting_it();
        other.alpn = {"spdy/3"};
        co_await fails(other);  // another protocol
        co_await fails({});     // does not trust the server
        const std::string garbage = co_await exchange(at, std::string(100, 'x'));
        EXPECT_EQ(garbage, "");
        {
          tcp_stream ends = co_await tcp_stream::connect(at);
          ends.shutdown_write();
          co_await read_to_end(ends);
        }
        co_await wait_until([&] {  // before the server stops, which ends the others
          return web.connections() == 0;
        });
      });
  EXPECT_EQ(counts.bad_certificate, 1u);
  EXPECT_EQ(counts.bad_protocol, 2u);
  EXPECT_EQ(counts.refused_by_peer + counts.lost, 1u);  // the alert, or the reset behind it
  EXPECT_EQ(counts.truncated, 1u);
  EXPECT_EQ(counts.timed_out, 0u);
  EXPECT_EQ(counts.done, 0u);
}

TEST_P(https, ends_handshakes_that_take_too_long) {
  server_options limits;
  limits.handshake_time = 20ms;
  const handshake_counts counts = run_secretly(
      hello_routes(), tls_context::server(served()),
      [&](http::server, endpoint at) -> task<> {
        for (const char* begun : {"", "\x16\x03\x01\x01"}) {
          const std::string got = co_await [](endpoint to, std::string said) -> task<std::string> {
            tcp_stream slow = co_await tcp_stream::connect(to);
            if (!said.empty()) co_await slow.write_all(std::move(said));
            co_return co_await read_to_end(slow);
          }(at, begun);
          EXPECT_EQ(got, "");
        }
      },
      limits);
  EXPECT_EQ(counts.timed_out, 2u);
  EXPECT_EQ(counts.done, 0u);
}

TEST_P(https, counts_ends_without_an_announcement_and_damaged_records) {
  const tls_context self = tls_context::server(served());
  const handshake_counts counts =
      run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
        const tls_context client = tls_context::client(trusting_it());
        {
          tls_stream peer = co_await connect_secretly(at, client);
          co_await ask_secretly(peer, get_hello, "hello");
        }  // closed without shutdown()
        co_await wait_until([&] { return web.handshakes().unannounced_ends == 1; });
        tls_stream peer = co_await connect_secretly(at, client);
        co_await ask_secretly(peer, get_hello, "hello");
        stream& wire = tls::wire_of::in(peer);
        co_await wire.write_all(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
        co_await wait_until([&] { return web.handshakes().damaged == 1; });
      });
  EXPECT_EQ(counts.done, 2u);
}

// RFC 9112, 9.8: kept connections, and those that an answer has ended.
TEST_P(https, clients_announce_their_end) {
  http::router routes = hello_routes();
  routes.get("/last", [] { return http::response::text("bye").closing(); });
  tls_options self = served();
  self.alpn = {"http/1.1"};
  const handshake_counts counts = run_secretly(
      std::move(routes), tls_context::server(self), [&](http::server web, endpoint at) -> task<> {
        http::client_options chosen;
        chosen.tls = trusting_it();
        chosen.tls.verify = false;  // the certificate names another host
        const http::client asks(chosen);
        for (const char* path : {"/last", "/"}) {
          auto answer = co_await asks.get("https://" + at.to_string() + path);
          static_cast<void>(co_await answer.read_all());
        }
        // the last one may become idle a little later
        co_await wait_until([&] {
          asks.close_idle();
          return web.connections() == 0;
        });
      });
  EXPECT_EQ(counts.done, 2u);
  EXPECT_EQ(counts.unannounced_ends, 0u);
}

TEST_P(https, shows_handlers_the_certificate_of_the_client) {
  http::router routes;
  routes.get("/", [](const request& asked) {
    EXPECT_TRUE(asked.secure());
    const auto shown = asked.client_certificate();
    return response::text(shown ? "<" + shown->subject + ">" : "<none>");
  });
  tls_options options = served();
  options.client_certificates = client_proof::requested;
  options.ca_pem = the_authority().certificate();
  run_secretly(std::move(routes), tls_context::server(options),
               [&](http::server, endpoint at) -> task<> {
                 for (const bool known : {true, false}) {
                   tls_options by = trusting_it();
                   if (known) {
                     const identity who = the_authority().issue();
                     by.certificate_pem = who.certificate;
                     by.key_pem = who.key;
                   }
                   const tls_context client = tls_context::client(by);
                   for (int i = 0; i < 2; ++i) {  // a resumed session still has it
                     tls_stream peer = co_await connect_secretly(at, client);
                     EXPECT_EQ(peer.resumed(), i == 1);
                     const std::string got = co_await ask_secretly(peer, get_hello, ">");
                     EXPECT_TRUE(got.ends_with(known ? "<CN=server>" : "<none>")) << got;
                   }
                 }
               });
}

TEST_P(https, says_to_browsers_that_they_use_it_from_now_on) {
  server_options limits;
  limits.strict_transport = 24h;
  limits.strict_transport_of_subdomains = true;
  const std::string field = "Strict-Transport-Security: max-age=86400; includeSubDomains\r\n";
  run_secretly(
      hello_routes(), tls_context::server(served()),
      [&](http::server, endpoint at) -> task<> {
        tls_stream peer = co_await connect_secretly(at, tls_context::client(trusting_it()));
        const std::string well = co_await ask_secretly(peer, get_hello, "hello");
        EXPECT_TRUE(well.contains(field)) << well;
        const std::string missing = co_await ask_secretly(
            peer, "GET /missing HTTP/1.1\r\nHost: good.test\r\n\r\n", "Not Found\n");
        EXPECT_TRUE(missing.contains(field)) << missing;
        const std::string bad = co_await ask_secretly(peer, "GET / HTTP/1.1\r\n\r\n", "?");
        EXPECT_TRUE(bad.contains(field)) << bad;
      },
      limits);
  const std::string plain = answer_to(hello_routes(), get_hello_and_close, limits);
  EXPECT_FALSE(plain.contains("Strict")) << plain;
}

TEST_P(https, says_so_once_when_a_handler_says_it_too) {
  server_options limits;
  limits.strict_transport = 24h;
  http::router routes;
  routes.get(
      "/", [] { return response::text("hello").field("strict-transport-security", "max-age=7"); });
  run_secretly(
      std::move(routes), tls_context::server(served()),
      [&](http::server, endpoint at) -> task<> {
        tls_stream peer = co_await connect_secretly(at, tls_context::client(trusting_it()));
        const std::string got = co_await ask_secretly(peer, get_hello, "hello");
        EXPECT_TRUE(got.contains("strict-transport-security: max-age=7\r\n")) << got;
        EXPECT_FALSE(got.contains("max-age=86400")) << got;
      },
      limits);
}

TEST_P(https, is_where_the_port_without_tls_sends_clients) {
  struct row {
    const char *asked, *answer;
  };
  for (const row& one :
       {row{"GET /a%20b?x=1&y HTTP/1.1\r\nHost: good.test:80\r\nConnection: close\r\n\r\n",
            "https://good.test/a%20b?x=1&y"},
        row{"DELETE / HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n", "https://[::1]/"},
        row{"GET http://other.test/b HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
            "https://other.test/b"}}) {
    const std::string got = answer_to(http::redirect_to_https(), one.asked);
    EXPECT_TRUE(got.starts_with("HTTP/1.1 308 ")) << got;
    EXPECT_TRUE(got.contains(std::string("Location: ") + one.answer + "\r\n")) << got;
  }
  const std::string port = answer_to(http::redirect_to_https(8443), get_hello_and_close);
  EXPECT_TRUE(port.contains("Location: https://good.test:8443/\r\n")) << port;
  const std::string nowhere = answer_to(http::redirect_to_https(), "GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(nowhere.starts_with("HTTP/1.1 400 ")) << nowhere;
}

TEST_P(https, of_two_listeners_resumes_sessions_of_either) {
  const tls_context self = tls_context::server(served());
  const handshake_counts counts =
      run_secretly(hello_routes(), self, [&](http::server web, endpoint at) -> task<> {
        auto second = tcp_listener::listen(endpoint::loopback(0));
        const endpoint also_at = second.local();
        future<> serving = spawn(web.serve(std::move(second), self));
        const tls_context client = tls_context::client(trusting_it());
        for (int i = 0; i < 2; ++i) {
          for (const endpoint& there : {at, also_at}) {
            tls_stream peer = co_await connect_secretly(there, client);
            co_await ask_secretly(peer, get_hello, "hello");
            self.rotate_ticket_keys();
          }
        }
        web.stop();
        co_await std::move(serving);
      });
  EXPECT_EQ(counts.done, 4u);
  EXPECT_EQ(counts.resumed, 3u);
}

// Clients ask without a pause, on connections that they keep and on new ones, while the certificate
// and the keys of tickets change.
TEST_P(https, loses_no_request_while_certificates_are_reloaded) {
  constexpr int clients = 4, requests = 25;
  const tls_context self = tls_context::server(served());
  int answered = 0, reloads = 0;
  run_secretly(hello_routes(), self, [&](http::server, endpoint at) -> task<> {
    const tls_context client = tls_context::client(trusting_it());
    std::atomic<int> well{0}, finished{0};
    const auto asks = [&](bool keeps) -> task<> {
      std::optional<tls_stream> peer;
      for (int i = 0; i < requests; ++i) {
        if (!peer) peer.emplace(co_await connect_secretly(at, client));
        const std::string got = co_await ask_secretly(*peer, get_hello, "hello");
        if (got.ends_with("hello")) ++well;
        if (!keeps) {
          co_await peer->shutdown();
          peer.reset();
        }
      }
      ++finished;
    };
    std::vector<future<>> all;
    for (int i = 0; i < clients; ++i) all.push_back(spawn(asks(i % 2 == 0)));
    while (finished < clients) {
      const identity renewed = the_authority().issue();
      tls_options options = served();
      options.certificate_pem = renewed.certificate;
      options.key_pem = renewed.key;
      self.reload(options);
      self.rotate_ticket_keys();
      ++reloads;
      co_await sleep_for(1ms);
    }
    for (future<>& one : all) co_await std::move(one);
    answered = well;
  });
  EXPECT_EQ(answered, clients * requests);
  EXPECT_GT(reloads, 0);
}

// Two clients that say nothing take all handshakes that may be under way. The longest one has to
// go after a second; a listener without TLS of the same server does not wait for that.
TEST_P(https, limits_the_handshakes_at_a_time) {
  server_options limits;
  limits.handshakes = 2;
  limits.handshake_time = 1h;
  const tls_context self = tls_context::server(served());
  const handshake_counts counts = run_secretly(
      hello_routes(), self,
      [&](http::server web, endpoint at) -> task<> {
        std::array<tcp_stream, 2> silent;
        for (tcp_stream& one : silent) one = co_await tcp_stream::connect(at);
        co_await wait_until([&] { return web.handshakes().under_way == 2; });
        auto plain = tcp_listener::listen(endpoint::loopback(0));
        const endpoint plain_at = plain.local();
        future<> serving = spawn(web.serve(std::move(plain)));
        const std::string in_clear =
            co_await exchange(plain_at, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        EXPECT_TRUE(in_clear.ends_with("hello")) << in_clear;
        EXPECT_EQ(web.handshakes().under_way, 2u);
        tls_stream peer = co_await connect_secretly(at, tls_context::client(trusting_it()));
        const std::string got = co_await ask_secretly(peer, get_hello, "hello");
        EXPECT_TRUE(got.ends_with("hello")) << got;
        web.stop();
        co_await std::move(serving);
      },
      limits);
  EXPECT_EQ(counts.done, 1u);
  EXPECT_GE(counts.ended_by_server, 1u);
}

// One client may make 16 of 20 handshakes at a time. The others of it wait in line; none is lost,
// and the server accepts further connections.
TEST_P(https, lets_the_handshakes_of_one_client_wait_in_line) {
  constexpr int clients = 40;
  server_options limits;
  limits.handshakes = 20;
  const tls_context self = tls_context::server(served());
  std::size_t most = 0;
  const handshake_counts counts = run_secretly(
      hello_routes(), self,
      [&](http::server web, endpoint at) -> task<> {
        std::array<tcp_stream, 16> silent;
        for (tcp_stream& peer : silent) peer = co_await tcp_stream::connect(at);
        co_await wait_until([&] { return web.handshakes().under_way == 16; });
        const tls_context client = tls_context::client(trusting_it());
        const auto asks = [&]() -> task<> {
          tls_stream peer = co_await connect_secretly(at, client);
          const std::string got = co_await ask_secretly(peer, get_hello, "hello");
          EXPECT_TRUE(got.ends_with("hello")) << got;
        };
        std::vector<future<>> all;
        for (int i = 0; i < clients; ++i) all.push_back(spawn(asks()));
        co_await wait_until([&] { return web.connections() == 16 + clients; });
        most = web.handshakes().under_way;
        for (tcp_stream& peer : silent) peer.close();
        for (future<>& client_done : all) co_await std::move(client_done);
      },
      limits);
  EXPECT_EQ(most, 16u);
  EXPECT_EQ(counts.done, static_cast<std::uint64_t>(clients));
  EXPECT_EQ(counts.lost + counts.truncated, 16u);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(https);

}  // namespace troupe::test
