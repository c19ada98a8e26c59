// Our client and our server understand each other.
#include <array>
#include <optional>

#include "http/client/scripted.hpp"
#include "troupe/http/server.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_request;
using http::client_response;

http::router routes() {
  http::router made;
  made.get("/text", [] { return http::response::text("hello"); });
  made.get("/numbers", [] {
    return http::response::stream("text/plain", [](http::body_writer& to) -> task<> {
      for (int i = 0; i < 2'000; ++i) co_await to.write(std::to_string(i) + "\n");
    });
  });
  made.get("/away", [] { return http::response::redirect("/text"); });
  made.post("/echo", [](http::request& asked) -> task<http::response> {
    std::string all;
    for (;;) {
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      all += piece;
    }
    co_return http::response::owned(std::move(all), "application/octet-stream");
  });
  return made;
}

task<> talk(client web, std::string at) {
  const std::string text = co_await outcome_of(web.get(at + "/text"));
  EXPECT_EQ(text, "200 hello");
  const std::string none = co_await outcome_of(web.head(at + "/text"));
  EXPECT_EQ(none, "200 ");
  const std::string away = co_await outcome_of(web.get(at + "/away"));
  EXPECT_EQ(away, "200 hello");
  client_response missing = co_await web.get(at + "/nothing");
  EXPECT_EQ(missing.status(), 404);
  co_await missing.read_all();
  std::string wanted = "200 ";
  for (int i = 0; i < 2'000; ++i) wanted += std::to_string(i) + "\n";
  const std::string numbers = co_await outcome_of(web.get(at + "/numbers"));
  EXPECT_TRUE(numbers == wanted);
  const std::string big(500'000, 'b');
  const std::string echoed =
      co_await outcome_of(web.post(at + "/echo", big, "application/octet-stream"));
  EXPECT_TRUE(echoed == "200 " + big);
  client_request pieces("POST", at + "/echo");
  http::upload_function how = [](http::upload& to) -> task<> {
    for (int i = 0; i < 300; ++i) co_await to.write(std::string(static_cast<std::size_t>(i), 'x'));
  };
  pieces.body(std::move(how), "text/plain");
  const std::string back = co_await outcome_of(web.send(std::move(pieces)));
  EXPECT_EQ(back, "200 " + std::string(300 * 299 / 2, 'x'));
  EXPECT_EQ(web.idle(), 1u);
  std::vector<task<std::string>> all;
  for (int i = 0; i < 30; ++i) all.push_back(outcome_of(web.get(at + "/text")));
  const std::vector<std::string> got = co_await when_all(std::move(all));
  EXPECT_EQ(std::count(got.begin(), got.end(), "200 hello"), 30);
}

class http_client_and_server : public client_conformance {
 protected:
  // Runs over TLS if both sides have a context.
  void check(std::optional<tls_context> self, http::client_options trusting) {
    const int before = open_files();
    {
      runtime rt(options());
      auto both = [](runtime& runs, std::optional<tls_context> secret,
                     http::client_options chosen) -> task<> {
        http::server server(routes());
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const std::string at = (secret ? "https://127.0.0.1:" : "http://127.0.0.1:") +
                               std::to_string(listener.local().port());
        future<> serving = secret ? runs.spawn(server.serve(std::move(listener), *secret))
                                  : runs.spawn(server.serve(std::move(listener)));
        const client web(std::move(chosen));
        task<> talking = talk(web, at);
        co_await std::move(talking);
        web.close_idle();
        server.stop();
        co_await std::move(serving);
      };
      rt.spawn(both(rt, std::move(self), std::move(trusting)));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }
};

TEST_P(http_client_and_server, they_understand_each_other) { check({}, {}); }

TEST_P(http_client_and_server, they_understand_each_other_in_secret) {
  static const authority root("the authority");
  static const identity own = root.issue({.names = "IP:127.0.0.1"});
  http::client_options trusting;
  trusting.tls.ca_pem = root.certificate();
  check(tls_context::server(showing(own)), trusting);
}

TEST_P(http_client_and_server, peers_that_speak_no_tls_are_no_failure) {
  static const authority root("the authority");
  static const identity own = root.issue({.names = "IP:127.0.0.1"});
  runtime rt(options());
  auto both = [](runtime& runs, tls_context secret) -> task<> {
    http::server_options limits;
    limits.head_time = 50ms;
    http::server server(routes(), limits);
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = runs.spawn(server.serve(std::move(listener), std::move(secret)));
    for (const char* said : {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""}) {
      tcp_stream plain = co_await tcp_stream::connect(at);
      if (*said != '\0') co_await plain.write_all(said);
      std::array<char, 4096> buffer;
      bool open = true;
      while (open) {
        try {
          const std::size_t bytes = co_await plain.read(buffer);
          open = bytes != 0;
        } catch (const io_error&) {
          open = false;
        }
      }
    }
    server.stop();
    co_await std::move(serving);
  };
  rt.spawn(both(rt, tls_context::server(showing(own))));
  rt.run();
}

TEST_P(http_client_and_server, several_branches_may_send_over_tls) {
  static const authority root("the authority");
  static const identity own = root.issue({.names = "IP:127.0.0.1"});
  tls_options trust;
  trust.ca_pem = root.certificate();
  runtime rt(options());
  auto both = [](runtime& runs, tls_context secret, tls_context trusts) -> task<> {
    http::router made;
    made.get("/ws", [] {
      return http::response::websocket([](http::websocket& socket) -> task<> {
        const auto send_many = [](http::websocket& to, char letter) -> task<> {
          for (int i = 0; i < 50; ++i) co_await to.send(std::string(100, letter));
        };
        co_await when_all(send_many(socket, 'a'), send_many(socket, 'b'), send_many(socket, 'c'));
      });
    });
    http::server server(std::move(made));
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = runs.spawn(server.serve(std::move(listener), std::move(secret)));
    tcp_stream plain = co_await tcp_stream::connect(at);
    tls_stream peer = tls_stream::client(trusts, std::move(plain), "127.0.0.1");
    co_await peer.handshake();
    co_await peer.write_all(
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
        "websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    std::string all;
    std::array<char, 4096> buffer;
    const auto count = [&all](char letter) {
      return std::ranges::count(all.substr(all.find("\r\n\r\n")), letter);
    };
    while (all.find("\r\n\r\n") == std::string::npos ||
           count('a') + count('b') + count('c') < 15'000) {
      const std::size_t bytes = co_await peer.read(buffer);
      if (bytes == 0) break;
      all.append(buffer.data(), bytes);
    }
    EXPECT_EQ(count('a'), 5'000);
    EXPECT_EQ(count('b'), 5'000);
    EXPECT_EQ(count('c'), 5'000);
    peer.close();
    server.stop();
    co_await std::move(serving);
  };
  rt.spawn(both(rt, tls_context::server(showing(own)), tls_context::client(trust)));
  rt.run();
}

TROUPE_CLIENT_TEST_EACH(http_client_and_server);

}  // namespace
}  // namespace troupe::test
