// The spans of our server and our client.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/http.hpp"
#include "support/recorded_spans.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using tasks::span_kind;
using tasks::span_record;

http::router routes() {
  http::router made;
  made.get("/text", [] { return http::response::text("hello"); });
  made.get("/items/{id}", [](int) -> task<http::response> {
    co_await sleep_for(1ms);
    co_return http::response(404);
  });
  made.get("/fails", []() -> http::response { throw std::runtime_error("a secret"); });
  made.post("/text", [](const http::request& asked) {
    return http::response::owned(std::string(asked.body()), "text/plain");
  });
  made.get("/streamed", [] {
    return http::response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("a");
      co_await with_span("in the stream", []() -> task<> { co_await sleep_for(1ms); });
      co_await to.write("b");
    });
  });
  return made;
}

class http_spans : public http_conformance {
 protected:
  // Runs a server, sends these bytes on one connection, and returns what came.
  std::string send(const std::string& bytes) {
    std::string got;
    runtime rt(options_of_failures());
    rt.spawn(
        serve_while(rt, http::server(routes()), [&](runtime&, http::server, endpoint at) -> task<> {
          got = co_await exchange(at, bytes);
        }));
    try {
      rt.run();
    } catch (const std::runtime_error&) {
    }
    return got;
  }
  runtime_options options_of_failures() {
    runtime_options chosen = options();
    chosen.failure_lines = 0;
    return chosen;
  }
};

std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const trace_context caller = *trace_context::parse(parent);

TEST_P(http_spans, one_for_each_request) {
  recording seen;
  send(get("/text?key=secret") + get("/items/7") + get("/nothing/secret") +
       "POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsecret" +
       "PUT /text HTTP/1.1\r\nHost: a\r\n\r\n" + get("/streamed", "Connection: close\r\n"));
  const struct {
    const char *name, *route, *status;
  } expected[] = {{"GET /text", "/text", "200"}, {"GET /items/{id}", "/items/{id}", "404"},
                  {"GET", "none", "404"},        {"POST /text", "/text", "200"},
                  {"PUT", "none", "405"},        {"GET /streamed", "/streamed", "200"}};
  for (const auto& one : expected) {
    const span_record& span = seen.only(one.name);
    EXPECT_EQ(text_of(span, "http.route"), one.route);
    EXPECT_EQ(text_of(span, "http.response.status_code"), one.status) << one.name;
    EXPECT_EQ(span.kind, span_kind::server);
    EXPECT_FALSE(span.failed);
    EXPECT_EQ(span.parent, (std::array<std::uint8_t, 8>{}));
    for (const tasks::span_attribute& each : span.attributes)
      EXPECT_EQ(text_of(span, each.key).find("secret"), std::string::npos) << each.key;
  }
  EXPECT_EQ(seen.only("in the stream").parent, seen.only("GET /streamed").at.span_id);
  EXPECT_EQ(seen.take().size(), 7u);
}

TEST_P(http_spans, failures_of_handlers) {
  recording seen;
  send(get("/fails"));
  const span_record& span = seen.only("GET /fails");
  EXPECT_TRUE(span.failed);
  EXPECT_EQ(text_of(span, "error.type"), "std::runtime_error");
  EXPECT_EQ(text_of(span, "http.response.status_code"), "500");
}

TEST_P(http_spans, belong_to_the_caller_s_trace) {
  recording seen(0);  // what comes without a trace is not recorded
  const std::string unsampled = parent.substr(0, parent.size() - 1) + "0";
  const std::vector<std::string> malformed{
      parent + "x",
      parent.substr(1),
      "",
      "00-0-0-01",
      std::string(5000, '0'),
      "ff" + parent.substr(2),
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01"};
  std::string all = get("/text") + get("/text", "traceparent: " + unsampled + "\r\n") +
                    get("/text", "traceparent: " + parent + "\r\ntraceparent: " + parent + "\r\n");
  for (const std::string& one : malformed) all += get("/text", "traceparent: " + one + "\r\n");
  all += get("/text", "TraceParent: " + parent + "\r\nConnection: close\r\n");
  const std::string got = send(all);
  std::size_t answers = 0;
  for (std::size_t at = got.find("200 OK"); at != std::string::npos;
       at = got.find("200 OK", at + 1))
    ++answers;
  EXPECT_EQ(answers, malformed.size() + 4);
  EXPECT_EQ(seen.take().size(), 1u);
  const span_record& span = seen.only("GET /text");
  EXPECT_EQ(span.at.trace_id, caller.trace_id);
  EXPECT_EQ(span.parent, caller.span_id);
}

TEST_P(http_spans, have_the_caller_s_tracestate) {
  recording seen;
  send(get("/streamed", "traceparent: " + parent +
                            "\r\ntracestate: a=1\r\ntracestate: b=2\r\nConnection: close\r\n"));
  EXPECT_EQ(seen.only("GET /streamed").at.tracestate(), "a=1,b=2");
  EXPECT_EQ(seen.only("in the stream").at.tracestate(), "a=1,b=2");
}

// The caller has the trace's number, and could choose one that is always recorded.
TEST_P(http_spans, are_recorded_without_asking_the_caller) {
  const std::string unsampled = parent.substr(0, parent.size() - 1) + "0";
  const std::string chosen = "00-4bf92f3577b34da60000000000000000-00f067aa0ba902b7-01";
  const auto fields = [](const std::string& one) {
    return "traceparent: " + one + "\r\nConnection: close\r\n";
  };
  {
    recording none(0, 100, false);
    send(get("/text", fields(parent)));
    send(get("/text", fields(chosen)));
    EXPECT_TRUE(none.take().empty());
  }
  recording all(1, 100, false);
  send(get("/text", fields(unsampled)));
  EXPECT_EQ(all.only("GET /text").at.trace_id, caller.trace_id);
  EXPECT_EQ(all.only("GET /text").parent, caller.span_id);
}

TEST_P(http_spans, requests_that_are_refused_or_cut_off_end_theirs) {
  recording seen;
  send(get("/%zz"));
  send("POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n");
  {
    runtime rt(options());
    rt.spawn(
        serve_while(rt, http::server(routes()), [](runtime&, http::server, endpoint at) -> task<> {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(
              "POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nfew");
          peer.shutdown_write();
          co_await read_to_end(peer);
        }));
    rt.run();
  }
  const auto all = seen.take();
  EXPECT_EQ(all.count("GET"), 1u);
  EXPECT_EQ(all.count("POST /text"), 2u);
  EXPECT_EQ(text_of(seen.only("GET"), "http.response.status_code"), "400");
}

TEST_P(http_spans, of_the_client_and_of_the_server_are_one_tree) {
  recording seen;
  {
    runtime rt(options());
    rt.spawn(
        serve_while(rt, http::server(routes()), [&](runtime&, http::server, endpoint at) -> task<> {
          const http::client web;
          const std::string base = "http://127.0.0.1:" + std::to_string(at.port());
          co_await with_span("all", [&]() -> task<> {
            http::client_response found = co_await web.get(base + "/text?key=secret");
            co_await found.read_all();
            http::client_response missing = co_await web.head(base + "/items/5");
            co_await missing.read_all();
          });
          http::client_response outside = co_await web.get(base + "/text");
          co_await outside.read_all();
          try {
            http::client_response none =
                co_await web.post("http://127.0.0.1:1/", "secret", "text/plain");
          } catch (const io_error&) {
          }
          web.close_idle();
        }));
    rt.run();
  }
  const span_record &all = seen.only("all"), &missing = seen.only("HEAD"),
                    &nobody = seen.only("POST");
  EXPECT_EQ(missing.parent, all.at.span_id);
  EXPECT_TRUE(missing.failed);
  EXPECT_EQ(text_of(missing, "http.response.status_code"), "404");
  EXPECT_EQ(seen.only("HEAD /items/{id}").parent, missing.at.span_id);
  EXPECT_EQ(nobody.parent, (std::array<std::uint8_t, 8>{}));
  EXPECT_EQ(text_of(nobody, "server.address"), "127.0.0.1");
  EXPECT_EQ(text_of(nobody, "server.port"), "1");
  EXPECT_EQ(text_of(nobody, "error.type"), "troupe::io_error");
  int matched = 0;
  for (const auto& [name, span] : seen.take()) {
    if (name == "GET /text") {
      for (auto [at, end] = seen.take().equal_range("GET"); at != end; ++at)
        matched += at->second->at.span_id == span->parent ? 1 : 0;
    }
    for (const tasks::span_attribute& each : span->attributes)
      EXPECT_EQ(text_of(*span, each.key).find("secret"), std::string::npos) << each.key;
  }
  EXPECT_EQ(matched, 2);
  EXPECT_EQ(seen.take().size(), 8u);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_spans);

}  // namespace troupe::test
