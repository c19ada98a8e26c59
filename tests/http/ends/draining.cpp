// stop(): a request that has begun is finished, no other one is begun, and a deadline ends it all.
#include <unistd.h>

#include "support/http.hpp"
#include "support/open_files.hpp"
#include "troupe/http/around/compress.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

class http_draining : public http_conformance {};
class http_sockets : public http_conformance {};

TEST_P(http_draining, a_request_that_has_begun_is_finished) {
  troupe::event begun, door;
  router routes;
  routes.get("/", [begun, door]() -> task<response> {
    begun.set();
    co_await door.wait();
    co_return response::text("finished");
  });
  std::string got;
  bool refused_now = false;
  run(std::move(routes), [&](runtime& rt, http::server web, endpoint at) -> task<> {
    auto answer = rt.spawn(exchange(at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    co_await begun.wait();
    web.stop();
    co_await sleep_for(50ms);
    try {
      tcp_stream late = co_await tcp_stream::connect(at);
    } catch (const io_error&) {
      refused_now = true;
    }
    door.set();
    got = co_await std::move(answer);
  });
  EXPECT_TRUE(got.ends_with("finished")) << got;
  EXPECT_NE(got.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(refused_now);
}

TEST_P(http_draining, idle_connections_end_at_once) {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  std::chrono::nanoseconds took{};
  std::string got;
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream used = co_await tcp_stream::connect(at), fresh = co_await tcp_stream::connect(at);
    co_await used.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await read_until(used, "hello");
    while (web.connections() < 2) co_await sleep_for(1ms);
    const auto begun = now();
    web.stop();
    got = co_await read_to_end(used);
    got += co_await read_to_end(fresh);
    took = now() - begun;
  });
  EXPECT_EQ(got, "");
  EXPECT_LT(took, 3s);
}

// When the connection is idle, the system still has a part of the answer. It would drop that part
// if the peer sent to a connection that is closed.
TEST_P(http_draining, an_answer_that_was_sent_arrives_though_the_peer_asks_again) {
  constexpr std::size_t bytes = 1'000'000;
  for (const auto idle_for : {5ms, 2'000ms}) {  // after 2 s the connection is parked
    // One run of the long case is enough.
    if (idle_for > 1s && GetParam().on.workers == 2) continue;
    troupe::event begun;
    router routes;
    routes.get("/", [begun] {
      begun.set();
      return response::text(std::string(bytes, 'x'));
    });
    std::string got;
    run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      co_await begun.wait();
      co_await sleep_for(idle_for);
      web.stop();
      co_await sleep_for(20ms);
      try {
        co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        co_await sleep_for(20ms);
      } catch (const io_error&) {  // any ending is right: what counts is what it has read
      }
      got = co_await read_to_end(peer);
    });
    EXPECT_TRUE(got.ends_with("\r\n\r\n" + std::string(bytes, 'x')))
        << got.size() << got.substr(got.size() - std::min<std::size_t>(got.size(), 60));
  }
}

TEST_P(http_draining, a_request_that_waits_in_its_connection_is_answered) {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    while (web.connections() < 1) co_await sleep_for(1ms);
    co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    web.stop();
    got = co_await read_to_end(peer);
  });
  EXPECT_TRUE(got.ends_with("hello")) << got;
}

TEST_P(http_draining, the_deadline_ends_what_does_not_end) {
  router routes;
  routes.get("/", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      for (;;) {
        co_await to.write("again and again");
        co_await sleep_for(1ms);
      }
    });
  });
  server_options limits;
  limits.drain_time = 50ms;
  std::string got;
  run(
      std::move(routes),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        tcp_stream peer = co_await tcp_stream::connect(at);
        co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        co_await read_until(peer, "again");
        web.stop();
        got = co_await read_to_end(peer);
      },
      limits);
  EXPECT_FALSE(got.ends_with("0\r\n\r\n"));  // the peer sees that the end is missing
}

TEST_P(http_draining, the_deadline_comes_though_a_handler_waits_for_something_else) {
  troupe::event begun, door;
  router routes;
  routes.get("/", [begun, door]() -> task<response> {
    begun.set();
    co_await door.wait();
    co_return response::text("too late");
  });
  server_options limits;
  limits.drain_time = 10ms;
  std::string got;
  run(
      std::move(routes),
      [&](runtime& rt, http::server web, endpoint) -> task<> {
        auto second = tcp_listener::listen(endpoint::loopback(0));
        const endpoint other = second.local();
        auto serving = rt.spawn(web.serve(std::move(second)));
        auto answer = rt.spawn(exchange(other, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        co_await begun.wait();
        web.stop();
        co_await std::move(serving);
        door.set();
        got = co_await std::move(answer);
      },
      limits);
  EXPECT_EQ(got, "");
}

TEST_P(http_draining, handlers_hear_of_it) {
  troupe::event begun;
  router routes;
  routes.get("/", [begun](http::request& asked) -> task<response> {
    begun.set();
    while (!asked.stopping().stop_requested()) co_await sleep_for(1ms);
    co_return response::text("heard");
  });
  std::string got;
  run(std::move(routes), [&](runtime& rt, http::server web, endpoint at) -> task<> {
    auto answer = rt.spawn(exchange(at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    co_await begun.wait();
    web.stop();
    got = co_await std::move(answer);
  });
  EXPECT_TRUE(got.ends_with("heard")) << got;
}

TEST_P(http_draining, a_websocket_is_told_that_the_server_goes) {
  router routes;
  int code = 0;
  event begun;
  routes.get("/", [&code, begun] {
    return response::websocket([&code, begun](http::websocket& peer) -> task<> {
      begun.set();
      const auto came = co_await peer.receive();
      if (!came) code = peer.close_code();
    });
  });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
        "websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    co_await read_until(peer, "\r\n\r\n");
    co_await begun.wait();
    co_await sleep_for(2ms);
    web.stop();
    got = co_await read_to_end(peer);
  });
  EXPECT_EQ(got, std::string("\x88\x02\x03\xe9", 4));  // a close frame with the code 1001
  EXPECT_EQ(code, 1001);
}

// Its writer is cancelled while the client reads nothing; what the encoder has kept is not sent
// then.
TEST_P(http_draining, a_compressed_stream_that_is_not_read_ends_with_the_server) {
  router routes;
  routes.get("/", [] {
    return response::events([](http::event_writer& to) -> task<> {
      unsigned state = 1;
      for (;;) {
        std::string text;
        for (int i = 0; i < 20'000; ++i) {
          state = state * 1103515245 + 12345;
          text += static_cast<char>('a' + (state >> 16) % 26);
        }
        co_await to.send(text);
      }
    });
  });
  routes.around(http::compress());
  bool ended = false;
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    co_await read_until(peer, "\r\n\r\n");
    co_await sleep_for(100ms);
    web.stop();
    try {
      const std::string rest = co_await read_to_end(peer);
    } catch (const io_error&) {  // it was cut
    }
    ended = true;
  });
  EXPECT_TRUE(ended);
}

TEST_P(http_sockets, of_the_unix_domain_serve_as_well) {
  const std::string path = "/tmp/troupe_http_" + std::to_string(::getpid());
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  http::server web(std::move(routes));
  std::string got;
  const int before = open_files();
  {
    runtime rt(options());
    const auto talk = [](runtime& runs, http::server by, std::string at,
                         std::string& to) -> task<> {
      auto serving = runs.spawn(by.serve(unix_listener::listen(at)));
      unix_stream peer = unix_stream::connect(at);
      co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      std::array<char, 4096> buffer;
      for (;;) {
        const std::size_t bytes = co_await peer.read(buffer);
        if (bytes == 0) break;
        to.append(buffer.data(), bytes);
      }
      by.stop();
      co_await std::move(serving);
    };
    rt.spawn(talk(rt, web, path, got));
    rt.run();
  }
  EXPECT_TRUE(got.ends_with("hello")) << got;
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_draining);
TROUPE_HTTP_TEST_EACH(http_sockets);

}  // namespace troupe::test
