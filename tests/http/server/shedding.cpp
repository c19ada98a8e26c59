// A full server ends the connection that has been idle for the longest time.
#include "support/http.hpp"
#include "tls/certificates.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http_shedding : public http_conformance {};

task<bool> is_answered(tls_stream& peer) {
  std::string got;
  std::array<char, 256> part;
  try {
    co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!got.ends_with("hello")) {
      const std::size_t came = co_await peer.read(part);
      if (came == 0) co_return false;
      got.append(part.data(), came);
    }
  } catch (const error&) {
    co_return false;
  }
  co_return true;
}

task<bool> is_ended(tls_stream& peer) {
  std::array<char, 256> part;
  try {
    co_return co_await peer.read(part).timeout(30s) == 0;
  } catch (const timed_out&) {
    co_return false;
  } catch (const error&) {
    co_return true;
  }
}

// A connection in its handshake is new. To its server it looks like a peer that has not sent
// anything yet.
TEST_P(http_shedding, who_has_just_begun_a_handshake_stays_and_who_is_idle_goes) {
  static const authority root("the authority");
  static const identity own = root.issue();
  tls_options trust;
  trust.ca_pem = root.certificate();
  const tls_context server = tls_context::server(showing(own)), client = tls_context::client(trust);
  http::server_options limits;
  limits.connections = 3;
  const auto all = [&](runtime& runs) -> task<> {
    router routes;
    routes.get("/", [] { return response::text("hello"); });
    http::server web(std::move(routes), limits);
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = runs.spawn(web.serve(std::move(listener), server));
    tls_stream idle = tls_stream::client(client, co_await tcp_stream::connect(at), "good.test");
    co_await idle.handshake();
    const bool heard = co_await is_answered(idle);
    EXPECT_TRUE(heard);
    // sleeps: a connection without a request may be ended after a second; if the server had noted
    // no time for the new one, that would now seem older
    co_await sleep_for(1100ms);
    tls_stream fresh = tls_stream::client(client, co_await tcp_stream::connect(at), "good.test");
    while (web.connections() < 2) co_await sleep_for(1ms);
    co_await sleep_for(10ms);  // sleeps: until the connection's task waits for the handshake
    // This connection takes the last place: the server is full, and one connection has to go.
    tcp_stream last = co_await tcp_stream::connect(at);
    const bool has_ended = co_await is_ended(idle);
    EXPECT_TRUE(has_ended);
    for (int i = 0; i < 3'000 && web.connections() != 2; ++i) co_await sleep_for(10ms);
    EXPECT_EQ(web.connections(), 2u);
    bool heard_too = false;
    try {
      co_await fresh.handshake().timeout(10s);
      heard_too = co_await is_answered(fresh);
    } catch (const error&) {
    }
    EXPECT_TRUE(heard_too);
    web.stop();
    co_await std::move(serving);
  };
  runtime rt(options());
  rt.spawn(all(rt));
  rt.run();
}

TROUPE_HTTP_TEST_EACH(http_shedding);

}  // namespace
}  // namespace troupe::test
