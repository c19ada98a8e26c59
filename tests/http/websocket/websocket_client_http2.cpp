// The client's WebSockets over HTTP/2 (RFC 8441): the same call opens them.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/client/h2_server.hpp"
#include "http/secure/https.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::request;
using http::response;
using http::router;
using talking = std::function<task<>(client web, http::server server, std::string url)>;
using opened = std::unique_ptr<http::websocket>;

task<> echo_by_stream(http::websocket& peer) {
  while (const auto said = co_await peer.receive()) {
    if (said->data == "leave") co_await peer.close(4001, "as you wish");
    std::string text(said->data);
    if (peer.close_code() == 0 && text != "leave") co_await peer.send(std::move(text));
  }
}

router echo_routes() {
  router routes;
  http::websocket_options options;
  options.subprotocols = {"chat"};
  options.deflate.emplace();
  routes.get("/chat", [options](const request& asked) {
    if (asked.field("Origin") == "http://evil") return response::text("no\n").status(403);
    return response::websocket(echo_by_stream, options);
  });
  routes.get("/", [] { return response::text("hello"); });
  return routes;
}

client_options trusting_client() {
  client_options made;
  made.tls.ca_pem = the_authority().certificate();
  made.idle_time = 1h;
  return made;
}
tls_options shown_by_name() {
  static const identity own = the_authority().issue({.names = "DNS:localhost"});
  tls_options made = showing(own);
  made.alpn = tls_options::https().alpn;
  return made;
}

task<> say_and_close(http::websocket& to) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{900'000}}) {
    co_await to.send(std::string(bytes, 'x'));
    const auto said = co_await to.receive();
    EXPECT_TRUE(said && said->is_text && said->data == std::string(bytes, 'x')) << bytes;
  }
  co_await to.close(3000, "enough");
  const auto last = co_await to.receive();
  EXPECT_FALSE(last);
  EXPECT_EQ(to.close_code(), 3000);
}

std::string failure_text(const http::client_error& e) {
  return std::string(text_of(e.reason())) + " " + std::to_string(e.status());
}
task<std::string> failure_to_open(http::opening asked) {
  try {
    const opened made = co_await std::move(asked);
    co_return "opened";
  } catch (const http::client_error& e) {
    co_return failure_text(e);
  } catch (const timed_out&) {
    co_return "timed_out";
  }
}

class websocket_client_http2 : public https_conformance {
 protected:
  void ask(talking what, client_options chosen = trusting_client(),
           const http::server_options& limits = {}) {
    const int before = open_files();
    run_secretly(
        echo_routes(), tls_context::server(shown_by_name()),
        [&](http::server server, endpoint at) -> task<> {
          const client web(std::move(chosen));
          task<> asked = what(web, server, "wss://localhost:" + std::to_string(at.port()) + "/");
          co_await std::move(asked);
          web.close_idle();
        },
        limits);
    EXPECT_EQ(open_files(), before);
  }
};

TEST_P(websocket_client_http2, shares_the_connection_of_requests) {
  ask([](client web, http::server server, std::string url) -> task<> {
    http::websocket_options options;
    options.subprotocols = {"other", "chat"};
    options.deflate.emplace();
    const opened first = co_await web.websocket(url + "chat", options);
    EXPECT_EQ(first->subprotocol(), "chat");
    EXPECT_TRUE(first->deflate().has_value());
    const opened second = co_await web.websocket(url + "chat");
    const std::string beside = co_await fetch(web.get("https" + url.substr(3)));
    EXPECT_EQ(beside, "200 hello");
    co_await say_and_close(*first);
    co_await say_and_close(*second);
    EXPECT_EQ(server.http2().connections, 1u);
    EXPECT_EQ(server.http2().streams, 3u);
    EXPECT_EQ(server.connections(), 1u);
    EXPECT_EQ(server.http2().reset_streams, 0u);
  });
}

TEST_P(websocket_client_http2, is_opened_on_a_kept_connection) {
  ask([](client web, http::server server, std::string url) -> task<> {
    for (int i = 0; i < 2; ++i) {
      {
        const opened one = co_await web.websocket(url + "chat");
        co_await say_and_close(*one);
      }
      while (web.idle() == 0) co_await sleep_for(1ms);  // sleeps: until the driver has parked it
    }
    EXPECT_EQ(server.http2().connections, 1u);
  });
}

TEST_P(websocket_client_http2, is_closed_by_the_server_and_reset_by_the_client) {
  ask([](client web, http::server server, std::string url) -> task<> {
    opened one = co_await web.websocket(url + "chat");
    co_await one->send("leave");
    const auto last = co_await one->receive();
    EXPECT_FALSE(last);
    EXPECT_EQ(one->close_code(), 4001);
    EXPECT_EQ(one->close_reason(), "as you wish");
    opened other = co_await web.websocket(url + "chat");
    co_await other->send("x");
    other.reset();  // without a close: the stream is reset, and the connection goes on
    const std::string next = co_await fetch(web.get("https" + url.substr(3)));
    EXPECT_EQ(next, "200 hello");
    EXPECT_EQ(server.http2().connections, 1u);
  });
}

TEST_P(websocket_client_http2, is_refused) {
  ask([](client web, http::server server, std::string url) -> task<> {
    // Often, since an answer may begin while the one before it is being written.
    for (int i = 0; i < 8; ++i) {
      const std::string none = co_await failure_to_open(web.websocket(url + "none"));
      EXPECT_EQ(none, "not_upgraded 404");
      http::client_request evil("GET", url + "chat");
      evil.field("Origin", "http://evil");
      const std::string refused = co_await failure_to_open(web.websocket(std::move(evil)));
      EXPECT_EQ(refused, "not_upgraded 403");
      http::websocket_options options;
      options.subprotocols = {"other"};
      options.require_subprotocol = true;
      const std::string unfit = co_await failure_to_open(web.websocket(url + "chat", options));
      EXPECT_EQ(unfit, "bad_handshake 0");
    }
    EXPECT_EQ(server.http2().connections, 1u);
  });
}

TEST_P(websocket_client_http2, goes_by_http1_where_one_of_both_speaks_no_http2) {
  const talking by_1 = [](client web, http::server server, std::string url) -> task<> {
    const opened one = co_await web.websocket(url + "chat");
    const std::string beside = co_await fetch(web.get("https" + url.substr(3)));
    EXPECT_EQ(beside, "200 hello");
    const opened two = co_await web.websocket(url + "chat");
    EXPECT_EQ(server.http2().connections, 0u);
    EXPECT_EQ(server.connections(), 3u);
    co_await say_and_close(*one);
    co_await say_and_close(*two);
  };
  http::server_options not_its;
  not_its.http2.is_on = false;
  ask(by_1, trusting_client(), not_its);
  client_options not_mine = trusting_client();
  not_mine.http2.is_on = false;
  ask(by_1, not_mine);
}

TEST_P(websocket_client_http2, ends_with_the_server) {
  ask([](client web, http::server server, std::string url) -> task<> {
    const opened one = co_await web.websocket(url + "chat");
    server.stop();
    const auto last = co_await one->receive();
    EXPECT_FALSE(last);
    EXPECT_EQ(one->close_code(), 1001);
  });
}

TROUPE_HTTP_TEST_EACH(websocket_client_http2);

// ---- servers that follow a script ----

class websocket_client_http2_peers : public h2::peer_conformance {};

std::string ws_of(h2::scripted_peer& server) { return "ws" + server.url().substr(4); }
const std::string allows_connect = h2::settings_of({{8, 1}});

// The server speaks HTTP/2 and has no such setting. So the client opens a connection of HTTP/1.1.
TEST_P(websocket_client_http2_peers, without_the_setting_goes_by_http1) {
  std::string asked_by_1;
  run(
      [&](h2::told_peer& one) -> task<> {
        if (one.number == 1) {
          EXPECT_EQ(co_await one.next_request(), 0);
          co_return;
        }
        std::array<char, 512> part;
        while (asked_by_1.find("\r\n\r\n") == std::string::npos) {
          const std::size_t bytes = co_await one.frames().stream().read(part);
          if (bytes == 0) co_return;
          asked_by_1.append(part.data(), bytes);
        }
        co_await one.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
      },
      [&](h2::scripted_peer& server, client web) -> task<> {
        const std::string got = co_await failure_to_open(web.websocket(ws_of(server)));
        EXPECT_EQ(got, "not_upgraded 403");
        EXPECT_EQ(server.connections(), 2);
      });
  EXPECT_TRUE(asked_by_1.starts_with("GET / HTTP/1.1\r\n"));
}

TEST_P(websocket_client_http2_peers, asks_by_connect_after_the_settings) {
  h2::field_pairs asked;
  run(
      [&](h2::told_peer& one) -> task<> {
        std::array<char, 24> preface;
        co_await one.frames().stream().read_exact(preface);
        one.frames().replies = false;  // its first frame is to be SETTINGS
        const auto hello = co_await one.frames().next_of(h2::window_update);
        EXPECT_TRUE(hello);
        co_await one.send(allows_connect);
        one.frames().replies = true;
        const auto head = co_await one.frames().next_of(h2::headers);
        EXPECT_TRUE(head);
        if (!head) co_return;
        asked = one.frames().fields_in(*head);
        EXPECT_EQ(head->flags & h2::end_stream, 0);
        co_await one.send(h2::reset_of(head->stream, h2::refused_stream));
        const auto again = co_await one.frames().next_of(h2::headers);
        EXPECT_TRUE(again);
        if (!again) co_return;
        // The server's "hi", then its end without a close.
        co_await one.send(h2::ask(again->stream, h2::status_200, false) +
                          h2::frame_of(h2::data, 0, again->stream, "\x81\x02hi") +
                          h2::frame_of(h2::data, h2::end_stream, again->stream, ""));
        co_await one.frames().next_of(h2::rst_stream);
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const opened made = co_await web.websocket(ws_of(server));
        const auto said = co_await made->receive();
        EXPECT_TRUE(said && said->data == "hi");
        const auto last = co_await made->receive();
        EXPECT_FALSE(last);
        EXPECT_EQ(made->close_code(), 1006);
      });
  const auto has = [&](const char* name, const char* value) {
    return std::ranges::count(asked, h2::field_pair(name, value)) == 1;
  };
  EXPECT_TRUE(has(":method", "CONNECT"));
  EXPECT_TRUE(has(":protocol", "websocket"));
  EXPECT_TRUE(has(":scheme", "http"));
  EXPECT_TRUE(has(":path", "/"));
  EXPECT_TRUE(has("sec-websocket-version", "13"));
  EXPECT_FALSE(std::ranges::any_of(asked, [](const auto& one) {
    return one.first == "sec-websocket-key" || one.first == "connection" || one.first == "upgrade";
  }));
}

TEST_P(websocket_client_http2_peers, servers_that_fail_are_errors) {
  client_options hasty;
  hasty.head_time = 100ms;
  run(
      [](h2::told_peer& one) -> task<> {
        std::array<char, 24> preface;  // and never a SETTINGS frame
        co_await one.frames().stream().read_exact(preface);
        co_await one.frames().end();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const std::string got = co_await failure_to_open(web.websocket(ws_of(server)));
        EXPECT_EQ(got, "timed_out");
      },
      hasty);
  run(
      [](h2::told_peer& one) -> task<> {
        one.first = allows_connect;
        const std::int32_t stream = co_await one.next_request();
        co_await one.send(h2::ask(stream, h2::status_200, false) +
                          h2::reset_of(stream, h2::internal_error));
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        std::string why;
        try {
          const opened made = co_await web.websocket(ws_of(server));
          co_await made->receive();
        } catch (const io_error& e) {
          why = e.what();
        }
        EXPECT_NE(why.find("reset the stream"), std::string::npos) << why;
      });
}

// A sender waits for windows, and a slow reader stops the server.
TEST_P(websocket_client_http2_peers, keeps_to_windows_in_both_directions) {
  client_options narrow;
  narrow.http2.stream_window = 1024;
  bool sent_all = false;
  run(
      [&](h2::told_peer& one) -> task<> {
        one.first = h2::settings_of({{8, 1}, {4, 10}});
        const std::int32_t stream = co_await one.next_request();
        co_await one.send(h2::ask(stream, h2::status_200, false));
        std::size_t came = 0;
        while (came < 10) {
          const auto some = co_await one.frames().next_of(h2::data);
          if (!some) co_return;
          came += some->payload.size();
        }
        EXPECT_EQ(came, 10u);
        const bool is_alive = co_await one.frames().is_alive();
        EXPECT_TRUE(is_alive);
        EXPECT_FALSE(sent_all);
        co_await one.send(h2::frame_of(h2::window_update, 0, stream, h2::number(1000, 4)));
        while (came < 6 + 100) {
          const auto some = co_await one.frames().next_of(h2::data);
          if (!some) co_return;
          came += some->payload.size();
        }
        EXPECT_EQ(came, 106u);
        const std::string large = std::string("\x82\x7e\x04\x00", 4) + std::string(1024, 'y');
        co_await one.send(h2::frame_of(h2::data, 0, stream, large.substr(0, 1024)));
        const auto window = co_await one.frames().next_of(h2::window_update);
        EXPECT_TRUE(window && window->stream == stream);
        co_await one.send(h2::frame_of(h2::data, 0, stream, large.substr(1024)));
        co_await one.frames().next_of(h2::rst_stream);
      },
      [&](h2::scripted_peer& server, client web) -> task<> {
        const opened made = co_await web.websocket(ws_of(server));
        co_await made->send(std::string(100, 'x'));
        sent_all = true;
        const auto said = co_await made->receive();
        EXPECT_TRUE(said && said->data == std::string(1024, 'y'));
      },
      narrow);
}

TROUPE_IO_TEST_EACH(websocket_client_http2_peers);

}  // namespace
}  // namespace troupe::test

#endif
