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

// The actor behind a server, which notes the trace of what it is told.
struct trace_log {
  std::vector<std::string> told;
  void note() { told.push_back(here()); }
  static std::string here() {
    const auto trace = this_call::trace();
    return trace ? trace->traceparent() : "none";
  }
};

http::router traced_routes(const ref<trace_log>& log) {
  http::router made;
  made.get("/plain", [log] {
    log.tell<&trace_log::note>();
    return http::response::owned(trace_log::here(), "text/plain");
  });
  // The answer is written within the trace, too.
  made.get("/streamed", [] {
    return http::response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write(trace_log::here());
      co_await sleep_for(1ms);
      co_await to.write(" " + trace_log::here());
    });
  });
  made.get("/streamed_later", [](const http::request&) -> task<http::response> {
    co_await sleep_for(1ms);
    co_return http::response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write(trace_log::here());
      co_await sleep_for(1ms);
      co_await to.write(" " + trace_log::here());
    });
  });
  made.get("/state", [](const http::request& asked) {
    return http::response::owned(std::to_string(asked.fields().count("tracestate")) + " " +
                                     asked.fields().list("tracestate"),
                                 "text/plain");
  });
  made.get("/state_later", [](const http::request& asked) -> task<http::response> {
    const client web;
    client_request inner("GET", "http://" + std::string(asked.host()) + "/state");
    if (asked.fields().has("own-state")) inner.field("TraceState", "own=1");
    client_response got = co_await web.send(std::move(inner));
    std::string text = co_await got.read_all();
    co_return http::response::owned(std::move(text), "text/plain");
  });
  // Waits, and asks this server again.
  made.get("/later", [](const http::request& asked) -> task<http::response> {
    const std::string at = "http://" + std::string(asked.host());
    std::string all = trace_log::here();
    co_await sleep_for(1ms);
    const client web;
    client_response inner = co_await web.get(at + "/plain");
    all += " " + co_await inner.read_all();
    co_return http::response::owned(std::move(all), "text/plain");
  });
  return made;
}

// What the server says, to a request with these fields.
task<std::string> traced(client web, std::string url, std::vector<std::string> parents) {
  client_request asked("GET", url);
  for (const std::string& one : parents) asked.field("traceparent", one);
  client_response got = co_await web.send(std::move(asked));
  const std::string text = co_await got.read_all();
  co_return text;
}

task<> check_traces(client web, std::string at, ref<trace_log> log) {
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto root = *trace_context::parse(parent);
  const std::vector<std::string> no_parent, malformed{parent + "x"}, one_parent{parent},
      two_parents{parent, parent};
  const std::string none = co_await traced(web, at + "/plain", no_parent);
  EXPECT_EQ(none, "none");
  const std::string broken = co_await traced(web, at + "/plain", malformed);
  EXPECT_EQ(broken, "none");
  const std::string two = co_await traced(web, at + "/plain", two_parents);
  EXPECT_EQ(two, "none");
  const std::string plain = co_await traced(web, at + "/plain", one_parent);
  const auto seen = trace_context::parse(plain);
  EXPECT_TRUE(seen) << plain;
  if (!seen) co_return;
  EXPECT_EQ(seen->trace_id, root.trace_id);
  EXPECT_NE(seen->span_id, root.span_id) << "a server is a span of its own";
  const std::vector<std::string> told =
      co_await log.ask([](trace_log& self) { return std::exchange(self.told, {}); });
  EXPECT_EQ(told.size(), 4u);
  EXPECT_EQ(std::count(told.begin(), told.end(), "none"), 3);
  EXPECT_EQ(told.back(), plain);

  // Our client sends the trace in which it runs: through two servers, one trace.
  std::string later;
  co_await with_trace(root,
                      [&]() -> task<> { later = co_await traced(web, at + "/later", no_parent); });
  const std::size_t space = later.find(' ');
  EXPECT_NE(space, std::string::npos) << later;
  const auto outer = trace_context::parse(later.substr(0, space)),
             inner = trace_context::parse(later.substr(space + 1));
  EXPECT_TRUE(outer && inner) << later;
  if (!outer || !inner) co_return;
  EXPECT_EQ(outer->trace_id, root.trace_id);
  EXPECT_EQ(inner->trace_id, root.trace_id);
  EXPECT_NE(outer->span_id, inner->span_id);
}

// Data of other tracing systems go through a server and its client, with the trace alone.
task<> check_states(client web, std::string at) {
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  using lines = std::vector<std::pair<std::string, std::string>>;
  const struct {
    lines fields;
    std::string sent;
  } cases[] = {
      {{{"traceparent", parent}}, "0 "},
      {{{"traceparent", parent}, {"tracestate", "a=1,b=x y"}}, "1 a=1,b=x y"},
      {{{"tracestate", "a=1"}, {"traceparent", parent}, {"tracestate", "b=2"}}, "1 a=1,b=2"},
      {{{"traceparent", parent}, {"tracestate", "a=1"}, {"own-state", "1"}}, "1 own=1"},
      {{{"traceparent", parent}, {"tracestate", "A=1"}}, "0 "},
      {{{"traceparent", parent + "x"}, {"tracestate", "a=1"}}, "0 "},
      {{{"tracestate", "a=1"}}, "0 "},
  };
  for (const auto& one : cases) {
    client_request asked("GET", at + "/state_later");
    for (const auto& [name, value] : one.fields) asked.field(name, value);
    client_response got = co_await web.send(std::move(asked));
    const std::string text = co_await got.read_all();
    EXPECT_EQ(text, one.sent);
  }
}

task<> check_streamed(client web, std::string at) {
  const std::vector<std::string> no_parent,
      one_parent{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"};
  for (const char* path : {"/streamed", "/streamed_later"}) {
    const std::string seen = co_await traced(web, at + path, one_parent);
    EXPECT_EQ(seen.size(), 2 * 55u + 1) << seen;
    if (seen.size() != 2 * 55u + 1) co_return;
    EXPECT_EQ(seen.substr(0, 55), seen.substr(56)) << path;
    EXPECT_EQ(seen.substr(0, 36), one_parent[0].substr(0, 36));
    EXPECT_NE(seen.substr(0, 55), one_parent[0]);
    // The next request of the connection is in no trace.
    const std::string none = co_await traced(web, at + path, no_parent);
    EXPECT_EQ(none, "none none");
  }
  EXPECT_EQ(web.idle(), 1u);
}

TEST_P(http_client_and_server, a_trace_goes_from_one_to_the_other) {
  runtime rt(options());
  const auto log = rt.spawn<trace_log>();
  rt.spawn([&]() -> task<> {
    http::server server(traced_routes(log));
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string at = "http://127.0.0.1:" + std::to_string(listener.local().port());
    future<> serving = rt.spawn(server.serve(std::move(listener)));
    const client web;
    task<> checking = check_traces(web, at, log);
    co_await std::move(checking);
    task<> stating = check_states(web, at);
    co_await std::move(stating);
    task<> streaming = check_streamed(web, at);
    co_await std::move(streaming);
    web.close_idle();
    server.stop();
    co_await std::move(serving);
  });
  rt.run();
}

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
    limits.handshake_time = 50ms;
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
