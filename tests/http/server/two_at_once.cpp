// Two reads of the same body or WebSocket at once are an error of the program. They harm nothing
// else.
#include "support/http.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;

class http_two_at_once : public http_conformance {};

task<std::string> all_of(request& asked) {
  std::string all;
  for (;;) {
    const std::string_view piece = co_await asked.read();
    if (piece.empty()) co_return all;
    all += piece;
  }
}
task<std::string> whole_of(request& asked) { co_return std::string(co_await asked.read_all()); }
task<std::string> outcome_of(task<std::string> one) {
  try {
    co_return co_await std::move(one);
  } catch (const usage_error&) {
    co_return "usage_error";
  }
}

TEST_P(http_two_at_once, reads_of_a_body) {
  router routes;
  routes.post("/pieces", [](request& asked) -> task<response> {
    auto both = when_all(outcome_of(all_of(asked)), outcome_of(all_of(asked)));
    auto [first, second] = co_await std::move(both);
    co_return response::text(first + " " + second);
  });
  routes.post("/whole", [](request& asked) -> task<response> {
    auto both = when_all(outcome_of(whole_of(asked)), outcome_of(whole_of(asked)));
    auto [first, second] = co_await std::move(both);
    co_return response::text(first + " " + second);
  });
  const std::string body(50'000, 'x');
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    for (const std::string path : {"/pieces", "/whole"}) {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(
          "POST " + path +
          " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 50000\r\n\r\n");
      for (std::string_view left = body; !left.empty(); left.remove_prefix(5'000)) {
        co_await peer.write_all(left.substr(0, 5'000));
        co_await sleep_for(std::chrono::milliseconds(1));
      }
      task<std::string> reading = read_to_end(peer);
      const std::string got = co_await std::move(reading);
      EXPECT_TRUE(got.ends_with("\r\n\r\n" + body + " usage_error")) << got.substr(0, 300);
    }
  });
}

task<std::string> next_of(http::websocket& peer) {
  const auto said = co_await peer.receive();
  co_return said ? std::string(said->data) : "nothing";
}

TEST_P(http_two_at_once, receives_of_a_websocket) {
  router routes;
  routes.get("/", [] {
    return response::websocket([](http::websocket& peer) -> task<> {
      auto all = when_all(outcome_of(next_of(peer)), outcome_of(next_of(peer)), peer.send("go"));
      auto [first, second, sent] = co_await std::move(all);
      const std::string third = co_await next_of(peer);
      co_await peer.send(first + " " + second + " " + third);
    });
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
        "websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    task<std::string> begin = read_until(peer, "go");
    static_cast<void>(co_await std::move(begin));
    // The messages a and b, masked with zeros.
    co_await peer.write_all(std::string("\x81\x81\0\0\0\0a", 7));
    co_await peer.write_all(std::string("\x81\x81\0\0\0\0b", 7));
    task<std::string> reading = read_until(peer, " b");
    const std::string got = co_await std::move(reading);
    EXPECT_TRUE(got.ends_with("a usage_error b")) << got;
  });
}

TROUPE_HTTP_TEST_EACH(http_two_at_once);

}  // namespace
}  // namespace troupe::test
