// The server answers requests: methods, paths, bodies, pipelines, and the ends of connections.
#include "support/counted.hpp"
#include "support/http.hpp"
#include "support/scratch.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;

class http_requests : public http_conformance {};

router some_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/users/{id}",
             [](const request&, int id) { return response::text("user " + std::to_string(id)); });
  routes.get("/users/me", [] { return response::text("me"); });
  routes.get("/files/{path...}", [](std::string path) { return response::text("[" + path + "]"); });
  routes.get("/names/{name}/of/{whom}", [](const request& asked, std::string name,
                                           std::string_view whom) {
    return response::text("<" + name + "><" + std::string(whom) + ">" + std::string(asked.path()));
  });
  routes.get("/echo", [](const request& asked) {
    return response::text(asked.query_value("x").value_or("none"));
  });
  routes.post("/body", [](const request& asked) {
    return response::text("plain " + std::string(asked.body()));
  });
  routes.post("/pieces", [](request& asked) -> task<response> {
    std::string all;
    for (;;) {
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      all += piece;
    }
    for (const http::field one : asked.trailer())
      all += " " + std::string(one.name) + "=" + std::string(one.value);
    all += " " + std::string(asked.field("x")) + std::string(asked.field("t"));
    co_return response::text(std::move(all));
  });
  routes.post("/unread",
              [](const request&) -> task<response> { co_return response::text("unread"); });
  routes.get("/slow", []() -> task<response> {
    co_await sleep_for(5ms);
    co_return response::text("slow");
  });
  routes.get("/throws", []() -> response { throw std::runtime_error("thrown by a handler"); });
  routes.get("/throws_later", []() -> task<response> {
    co_await sleep_for(1ms);
    throw std::runtime_error("thrown by a handler");
  });
  routes.get("/counts", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      for (int i = 0; i < 3; ++i) co_await to.write(std::to_string(i));
    });
  });
  routes.get("/refuses", []() -> response { throw http::refused(http::fault::body_too_large); });
  return routes;
}

const std::string plain =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ";
std::string ok(const std::string& body, const std::string& fields = "") {
  return plain + std::to_string(body.size()) + "\r\n" + fields + "\r\n" + body;
}
const std::string last = "Connection: close\r\n";
std::string get(const std::string& path, const std::string& fields = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string get_last(const std::string& path) { return get(path, last); }
std::string plainly(const std::string& status, const std::string& words,
                    const std::string& fields) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(words.size() + 1) +
         "\r\n" + fields + "\r\n" + words + "\n";
}

TEST_P(http_requests, an_error_has_a_body_unless_it_is_to_have_none) {
  const auto routes = [] {
    router made;
    made.get("/bare", [] { return response(404); });
    made.get("/later", []() -> task<response> {
      co_await sleep_for(1ms);
      co_return response(503).field("Retry-After", "1");
    });
    made.get("/waits/{id}", [](int) -> task<response> { co_return response(); });
    made.get("/empty", [] { return response::text("").status(404); });
    made.get("/own", [] { return response::text("mine").status(410); });
    made.get("/typed", [] { return response(404).type("text/html"); });
    made.get("/moved", [] { return response::redirect("/"); });
    return made;
  };
  EXPECT_EQ(answer_to(routes(), get_last("/bare")), plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(routes(), get_last("/later")),
            plainly("503 Service Unavailable", "Service Unavailable", "Retry-After: 1\r\n" + last));
  EXPECT_EQ(answer_to(routes(), get_last("/waits/x")), plainly("404 Not Found", "Not Found", last));
  const std::string head =
      answer_to(routes(), "HEAD /bare HTTP/1.1\r\nHost: a\r\n" + last + "\r\n");
  EXPECT_EQ(head + "Not Found\n", plainly("404 Not Found", "Not Found", last));
  EXPECT_TRUE(
      answer_to(routes(), get_last("/empty")).ends_with("Content-Length: 0\r\n" + last + "\r\n"));
  EXPECT_TRUE(answer_to(routes(), get_last("/own")).ends_with("\r\n\r\nmine"));
  EXPECT_TRUE(answer_to(routes(), get_last("/typed")).find("Content-Length: 0\r\n") !=
              std::string::npos);
  EXPECT_TRUE(answer_to(routes(), get_last("/moved")).find("Content-Length: 0\r\n") !=
              std::string::npos);
}

TEST_P(http_requests, routes_and_their_parameters) {
  EXPECT_EQ(answer_to(some_routes(), get_last("/")), ok("hello", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users/7")), ok("user 7", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users/me")), ok("me", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users/seven")),
            plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users/7/x")),
            plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users/")),
            plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/files/a/b%20c")), ok("[a/b c]", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/files/")), ok("[]", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/files/a%2Fb/c%252f%2f")), ok("[a/b/c%2f/]", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/names/a%2Fb%2f/of/c%20d")),
            ok("<a/b/><c d>/names/a/b//of/c d", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/names/a%2Fof/b")),
            plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/users%2F7")),
            plainly("404 Not Found", "Not Found", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/names/%2F%2")),
            plainly("400 Bad Request", "Bad Request", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/echo?y=1&x=a+b%21")), ok("a b!", last));
  EXPECT_EQ(answer_to(some_routes(), get_last("/%zz")),
            plainly("400 Bad Request", "Bad Request", last));
}

TEST_P(http_requests, methods_that_a_path_does_not_have) {
  EXPECT_EQ(answer_to(some_routes(), "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            plainly("405 Method Not Allowed", "Method Not Allowed",
                    "Allow: GET, HEAD, OPTIONS\r\n" + last));
  EXPECT_EQ(answer_to(some_routes(), "OPTIONS / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, OPTIONS\r\n" + last + "\r\n");
  EXPECT_EQ(answer_to(some_routes(), "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, POST, OPTIONS\r\n" + last + "\r\n");
  EXPECT_EQ(answer_to(some_routes(), "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            plain + "5\r\n" + last + "\r\n");
}

TEST_P(http_requests, pipelined_ones_are_answered_in_order) {
  EXPECT_EQ(answer_to(some_routes(),
                      get("/") + get("/slow") + get("/users/1") + get("/none") + get_last("/slow")),
            ok("hello") + ok("slow") + ok("user 1") + plainly("404 Not Found", "Not Found", "") +
                ok("slow", last));
  std::string many, answers;
  for (int i = 0; i < 500; ++i) {
    many += get("/users/" + std::to_string(i));
    answers += ok("user " + std::to_string(i));
  }
  EXPECT_EQ(answer_to(some_routes(), many + get_last("/")), answers + ok("hello", last));
}

TEST_P(http_requests, bodies_of_all_kinds) {
  const std::string sized = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  const std::string chunked =
      "POST /pieces HTTP/1.1\r\nHost: a\r\nX: y\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: "
      "1\r\n\r\n";
  const std::string chunked_plain =
      "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  EXPECT_EQ(answer_to(some_routes(), sized + chunked + chunked_plain + get_last("/")),
            ok("plain hello") + ok("hello T=1 y") + ok("plain hello") + ok("hello", last));
  const std::string large(300'000, 'x');
  const std::string length = "Content-Length: 300000\r\n\r\n";
  EXPECT_EQ(answer_to(some_routes(), "POST /body HTTP/1.1\r\nHost: a\r\n" + length + large +
                                         "POST /pieces HTTP/1.1\r\nHost: a\r\nX: y\r\n" + length +
                                         large + get_last("/")),
            ok("plain " + large) + ok(large + " y") + ok("hello", last));
}

TEST_P(http_requests, a_body_that_is_not_read_is_skipped_if_it_is_small) {
  const std::string small =
      "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x');
  EXPECT_EQ(answer_to(some_routes(), small + get_last("/")), ok("unread") + ok("hello", last));
  const std::string large = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" +
                            std::string(100'000, 'x');
  EXPECT_EQ(answer_to(some_routes(), large + get_last("/")), ok("unread", last));
}

TEST_P(http_requests, a_body_that_is_waited_for_is_asked_for) {
  std::string got;
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    for (const std::string path : {"/body", "/pieces"}) {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all("POST " + path +
                              " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
                              "2\r\nConnection: close\r\n\r\n");
      got += co_await read_until(peer, "\r\n\r\n");
      co_await peer.write_all("hi");
      got += undated(co_await read_to_end(peer));
    }
    // The handler does not want the body: then the server does not ask for it.
    got += undated(co_await exchange(
        at,
        "POST /unread HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  });
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(got, go_on + ok("plain hi", last) + go_on + ok("hi ", last) + ok("unread", last));
}

TEST_P(http_requests, streams_are_chunked) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
  EXPECT_EQ(answer_to(some_routes(), get("/counts") + get_last("/")),
            head + "Transfer-Encoding: chunked\r\n\r\n1\r\n0\r\n1\r\n1\r\n1\r\n2\r\n0\r\n\r\n" +
                ok("hello", last));
  EXPECT_EQ(answer_to(some_routes(), "GET /counts HTTP/1.0\r\n\r\n"), head + last + "\r\n012");
  EXPECT_EQ(answer_to(some_routes(), "HEAD /counts HTTP/1.1\r\nHost: a\r\n\r\n" + get_last("/")),
            head + "Transfer-Encoding: chunked\r\n\r\n" + ok("hello", last));
}

TEST_P(http_requests, the_old_version) {
  EXPECT_EQ(answer_to(some_routes(), "GET / HTTP/1.0\r\n\r\n"), ok("hello", last));
  EXPECT_EQ(answer_to(some_routes(),
                      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n"),
            ok("hello", "Connection: keep-alive\r\n") + ok("hello", last));
}

// RFC 9110, 10.1.1 and 15.2: it knows no interim answers.
TEST_P(http_requests, the_old_version_is_told_nothing_in_between) {
  std::string got;
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    for (const std::string path : {"/body", "/pieces"}) {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all("POST " + path +
                              " HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
      co_await sleep_for(5ms);
      co_await peer.write_all("hi");
      got += undated(co_await read_to_end(peer));
    }
  });
  EXPECT_EQ(got, ok("plain hi", last) + ok("hi ", last));
}

TEST_P(http_requests, what_is_malformed_is_refused_and_ends_the_connection) {
  EXPECT_EQ(answer_to(some_routes(), get("/") + "GET / HTTP/1.1\r\n\r\n" + get("/")),
            ok("hello") + plainly("400 Bad Request", "Bad Request", last));
  // The same behind a request that a coroutine answered.
  EXPECT_EQ(answer_to(some_routes(), get("/slow") + "GET / HTTP/1.1\r\n\r\n" + get("/")),
            ok("slow") + plainly("400 Bad Request", "Bad Request", last));
  EXPECT_EQ(answer_to(some_routes(), "GET / HTTP/2.0\r\n\r\n"),
            plainly("505 HTTP Version Not Supported", "HTTP Version Not Supported", last));
  EXPECT_EQ(answer_to(some_routes(),
                      "POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx"),
            plainly("400 Bad Request", "Bad Request", last));
}

TEST_P(http_requests, a_handler_that_throws_is_a_failure_and_ends_its_connection) {
  for (const std::string path : {"/throws", "/throws_later"}) {
    std::string got, thrown;
    try {
      got = answer_to(some_routes(), get("/") + get(path) + get("/"));
    } catch (const std::runtime_error& e) {
      thrown = e.what();
    }
    EXPECT_EQ(thrown, "thrown by a handler");
  }
}

TEST_P(http_requests, a_handler_that_throws_is_answered_500) {
  std::string got;
  runtime rt(options());
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    got = undated(co_await exchange(at, get("/") + get("/throws") + get("/")));
    got += undated(co_await exchange(at, get("/throws_later")));
    got += undated(co_await exchange(at, get("/refuses")));
  };
  rt.spawn(serve_while(rt, http::server(some_routes()), talk));
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(rt.errors().size(), 1u);
  rt.clear_errors();
  const std::string failed = plainly("500 Internal Server Error", "Internal Server Error", last);
  EXPECT_EQ(got, ok("hello") + failed + failed +
                     plainly("413 Content Too Large", "the body is too large", last));
}

TEST_P(http_requests, a_stream_that_throws_is_cut_short) {
  router routes;
  routes.get("/", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("begun");
      throw std::runtime_error("thrown by a stream");
    });
  });
  std::string got;
  runtime rt(options());
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    got = co_await exchange(at, get("/"));
  };
  rt.spawn(serve_while(rt, http::server(std::move(routes)), talk));
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_TRUE(got.ends_with("5\r\nbegun\r\n")) << got;  // without the last chunk
}

TEST_P(http_requests, a_peer_that_goes_is_no_failure) {
  router routes;
  std::atomic<int> ended{0};
  routes.get("/", [&ended] {
    return response::stream("text/plain", [&ended](http::body_writer& to) -> task<> {
      const counted here;
      try {
        for (;;) {
          co_await to.write(std::string(1000, 'x'));
          co_await sleep_for(1ms);
        }
      } catch (const error&) {  // io_error by a write, or else cancelled
        ++ended;
        throw;
      }
    });
  });
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(get("/"));
      co_await read_until(peer, "xxx");
    }
    while (web.connections() > 0) co_await sleep_for(1ms);
  });
  EXPECT_EQ(ended.load(), 1);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(http_requests, an_answer_may_be_the_last) {
  router routes;
  routes.get("/", [] { return response::text("bye").field("X-Last", "1").closing(); });
  EXPECT_EQ(answer_to(std::move(routes), get("/") + get("/")), ok("bye", "X-Last: 1\r\n" + last));
}

TEST_P(http_requests, on_two_listeners) {
  std::string got;
  run(some_routes(), [&](runtime& rt, http::server web, endpoint at) -> task<> {
    auto second = tcp_listener::listen(endpoint::loopback(0));
    const endpoint other = second.local();
    auto serving = rt.spawn(web.serve(std::move(second)));
    got = co_await exchange(at, get_last("/")) + co_await exchange(other, get_last("/"));
    web.stop();
    co_await std::move(serving);
  });
  EXPECT_EQ(undated(got), ok("hello", last) + ok("hello", last));
}

TEST_P(http_requests, many_connections) {
  std::atomic<int> good{0};
  run(some_routes(), [&](runtime& rt, http::server, endpoint at) -> task<> {
    std::vector<future<>> all;
    const auto one = [](endpoint to, std::atomic<int>& count) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(to);
      for (int i = 0; i < 10; ++i) {
        co_await peer.write_all(get("/users/" + std::to_string(i)));
        const std::string answer = co_await read_until(peer, "user " + std::to_string(i));
        if (undated(answer) == ok("user " + std::to_string(i))) ++count;
      }
    };
    for (int i = 0; i < 50; ++i) all.push_back(rt.spawn(one(at, good)));
    for (auto& each : all) co_await std::move(each);
  });
  EXPECT_EQ(good.load(), 500);
}

}  // namespace

TEST_P(http_requests, a_handler_that_gives_a_read_up_may_fail_and_is_heard) {
  router routes;
  routes.post("/", [](request& asked) -> task<response> {
    const auto read = [](request& from) -> task<> { co_await from.read_all(); };
    const auto nap = []() -> task<> { co_await sleep_for(1ms); };
    co_await when_any(read(asked), nap());
    throw std::runtime_error("given up");
  });
  runtime rt(options());
  std::string got;
  rt.spawn(serve_while(
      rt, http::server(std::move(routes)), [&](runtime&, http::server, endpoint at) -> task<> {
        got = co_await exchange(
            at, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf of it");
      }));
  EXPECT_THROW(rt.run(), std::runtime_error);
  rt.run();
  EXPECT_TRUE(got.starts_with("HTTP/1.1 500")) << got;
}

TEST_P(http_requests, answers_that_have_no_body_have_none) {
  const scratch folder;
  const std::string path = folder.put("large", std::string(100'000, 'x'));
  router routes;
  routes.get("/{status}", [path](std::string_view how) -> task<response> {
    const int status = how.ends_with("204") ? 204 : 304;
    if (how.starts_with("file")) {
      const file from = co_await file::open(path);
      co_return response::file(from, 0, 100'000, "text/plain").status(status);
    }
    co_return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("words");
    }).status(status);
  });
  routes.get("/", [] { return response::text("next"); });
  std::string asked;
  for (const char* one : {"/file204", "/file304", "/stream204", "/stream304"}) asked += get(one);
  const std::string got = answer_to(
      std::move(routes), asked + "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string no_content = "HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\n";
  const std::string not_modified = "HTTP/1.1 304 Not Modified\r\nContent-Type: text/plain\r\n\r\n";
  EXPECT_TRUE(
      got.starts_with(no_content + not_modified + no_content + not_modified + "HTTP/1.1 200 OK"))
      << got.substr(0, 500);
  EXPECT_TRUE(got.ends_with("next"));
}

// RFC 9110, 15.3.6, and RFC 9112, 4: the space behind a status that has no words.
TEST_P(http_requests, a_reset_has_no_content_and_an_odd_status_no_words) {
  router routes;
  routes.get("/text", [] { return response::text("text").status(205); });
  routes.get("/stream", [] {
    return response::stream("text/plain",
                            [](http::body_writer& to) -> task<> { co_await to.write("words"); })
        .status(205);
  });
  routes.get("/odd", [] { return response::text("odd").status(299); });
  const std::string head = "HTTP/1.1 205 Reset Content\r\nContent-Type: text/plain",
                    empty = "\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(
      answer_to(std::move(routes), get("/text") + get("/stream") + get_last("/odd")),
      head + "; charset=utf-8" + empty + head + empty +
          "HTTP/1.1 299 \r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n" +
          last + "\r\nodd");
}

TEST_P(http_requests, fields_behind_a_streamed_body_are_its_trailer) {
  router routes;
  routes.get("/", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("body");
      to.trailer("Sum", "7");
      to.trailer("Note", "a b");
    });
  });
  const std::string got =
      answer_to(std::move(routes), "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n");
  const std::size_t second = got.find("HTTP/1.1 200", 1);
  EXPECT_TRUE(got.substr(0, second).ends_with("4\r\nbody\r\n0\r\nSum: 7\r\nNote: a b\r\n\r\n"))
      << got;
  ASSERT_NE(second, std::string::npos);
  EXPECT_TRUE(got.ends_with("\r\n\r\nbody")) << got;
}

TEST_P(http_requests, a_trailer_refuses_what_belongs_before_the_body) {
  std::vector<std::string> refused;
  router routes;
  routes.get("/", [&] {
    return response::stream("text/plain", [&](http::body_writer& to) -> task<> {
      for (const char* name : {"Content-Length", "transfer-encoding", "Trailer", "Set-Cookie",
                               "Host", "a b", "", "fine"}) {
        try {
          to.trailer(name, "1");
        } catch (const usage_error&) {
          refused.emplace_back(name);
        }
      }
      try {
        to.trailer("split", "1\r\nSum: 7");
      } catch (const usage_error&) {
        refused.emplace_back("split");
      }
      co_return;
    });
  });
  const std::string got =
      answer_to(std::move(routes), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(refused, (std::vector<std::string>{"Content-Length", "transfer-encoding", "Trailer",
                                               "Set-Cookie", "Host", "a b", "", "split"}));
  EXPECT_TRUE(got.ends_with("\r\n\r\n0\r\nfine: 1\r\n\r\n")) << got;
}

// Otherwise the peer would take the end of the body for the rest of the piece.
TEST_P(http_requests, a_piece_that_is_given_up_in_the_middle_is_the_end) {
  constexpr std::size_t bytes = 30'000'000;
  event over;
  router routes;
  routes.get("/", [&] {
    return response::stream("text/plain", [&](http::body_writer& to) -> task<> {
      const std::string much(bytes, 'x');
      const auto all = [](http::body_writer& into, std::string_view text) -> task<> {
        co_await into.write(text);
      };
      const auto nap = []() -> task<> { co_await sleep_for(20ms); };
      auto either = when_any(all(to, much), nap());
      const auto how = co_await std::move(either);
      EXPECT_EQ(how.index(), 1u);
      over.set();
    });
  });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(get("/"));
    got = co_await read_until(peer, "\r\n\r\n");
    co_await over.wait();
    got += co_await read_to_end(peer);
  });
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(got.ends_with("xxxx"))
      << got.substr(got.size() - std::min<std::size_t>(got.size(), 20));
}

// Bytes that come while a read is given up belong to the next read.
TEST_P(http_requests, a_read_that_is_given_up_loses_nothing) {
  router routes;
  routes.post("/", [](request& asked) -> task<response> {
    const auto at_once = []() -> task<> { co_return; };
    std::string all;
    for (;;) {
      auto either = when_any(at_once(), asked.read());
      const auto how = co_await std::move(either);
      EXPECT_EQ(how.index(), 0u);
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      all += piece;
    }
    co_return response::text(std::move(all));
  });
  const std::string fields = " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  const std::string chunks = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
  std::string got, asked_for_it;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    got = co_await exchange(at, "POST /" + fields + chunks);
    // The client waits until the server asks for the body.
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all("POST /" + fields +
                            "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    std::array<char, 25> proceed;
    co_await peer.read_exact(proceed).timeout(5s);
    asked_for_it.assign(proceed.data(), proceed.size());
    co_await peer.write_all("hello");
    asked_for_it += co_await read_to_end(peer);
  });
  EXPECT_TRUE(got.ends_with("\r\n\r\nabcdefg")) << got;
  EXPECT_TRUE(asked_for_it.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"))
      << asked_for_it;
  EXPECT_TRUE(asked_for_it.ends_with("\r\n\r\nhello")) << asked_for_it;
}

// A peer may send a request's body only after it has the answer to the request before.
TEST_P(http_requests, an_answer_does_not_wait_for_the_next_ones_body) {
  router routes;
  routes.get("/", [] { return response::text("first"); });
  routes.post("/", [](const request& asked) { return response::text(std::string(asked.body())); });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(
        get("/") + "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 6\r\n\r\n");
    task<std::string> first = read_until(peer, "first");
    got = co_await std::move(first);
    co_await peer.write_all("second");
    got += co_await read_to_end(peer);
  });
  EXPECT_TRUE(got.ends_with("\r\n\r\nsecond")) << got;
}

// Each piece is sent whole, as a chunk of its own.
TEST_P(http_requests, branches_may_write_side_by_side) {
  const std::size_t bytes = GetParam().on.policy == policy::simulated ? 300'000 : 12'000'000;
  router routes;
  routes.get("/", [bytes] {
    return response::stream("text/plain", [bytes](http::body_writer& to) -> task<> {
      const auto some = [](http::body_writer& into, std::string piece) -> task<> {
        for (int i = 0; i < 2; ++i) co_await into.write(piece);
      };
      auto both = when_all(some(to, std::string(bytes, 'a')), some(to, std::string(bytes, 'b')));
      co_await std::move(both);
    });
  });
  std::string got;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    co_await read_until(peer, "\r\n\r\n");
    co_await sleep_for(20ms);
    got = co_await read_to_end(peer);
  });
  int pieces = 0;
  std::string_view left = got;
  for (; left.size() > bytes; ++pieces) {
    left.remove_prefix(left.find('\n') + 1);
    const std::string_view piece = left.substr(0, bytes);
    ASSERT_EQ(piece.find_first_not_of(piece.front()), std::string_view::npos) << pieces;
    left.remove_prefix(std::min(bytes + 2, left.size()));
  }
  EXPECT_EQ(pieces, 4);
  EXPECT_EQ(left, "0\r\n\r\n");
}

TEST_P(http_requests, an_upgrade_with_a_body_is_refused) {
  router routes;
  routes.get("/ws",
             [] { return response::websocket([](http::websocket&) -> task<> { co_return; }); });
  const std::string asked =
      get("/ws",
          "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 4\r\n");
  EXPECT_TRUE(answer_to(std::move(routes), asked + "body").starts_with("HTTP/1.1 400"));
}

TROUPE_HTTP_TEST_EACH(http_requests);

}  // namespace troupe::test
