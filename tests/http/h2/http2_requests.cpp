// A server of HTTP/2 answers requests: the same handlers, limits and errors as by HTTP/1.1.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"
#include "troupe/http/around/limits.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;

class http2_requests : public http_conformance {
 protected:
  // The answer to one request, which is all of `frames`.
  h2::answer answer(router routes, std::string frames, const http::server_options& limits = {}) {
    h2::answer got;
    run(
        std::move(routes),
        [&](runtime&, http::server, endpoint at) -> task<> {
          got = co_await h2::answer_to(at, frames);
        },
        limits);
    return got;
  }
};

router some_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/users/{id}",
             [](const request&, int id) { return response::text("user " + std::to_string(id)); });
  routes.get("/head", [](const request& asked) {
    std::string all = std::string(asked.method_name()) + " " + std::string(asked.host()) + " " +
                      std::to_string(asked.head().major_version) + " " + std::string(asked.query());
    for (const http::field one : asked.fields())
      all += " " + std::string(one.name) + "=" + std::string(one.value);
    return response::text(std::move(all)).field("X-Mixed-Case", "Value");
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
    co_return response::text(std::move(all));
  });
  routes.post("/unread",
              [](const request&) -> task<response> { co_return response::text("unread"); });
  routes.get("/slow", []() -> task<response> {
    co_await sleep_for(5ms);
    co_return response::text("slow");
  });
  routes.get("/throws", []() -> response { throw std::runtime_error("thrown by a handler"); });
  routes.get("/counts", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      for (int i = 0; i < 3; ++i) co_await to.write(std::to_string(i));
    });
  });
  routes.get("/sum", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("body");
      to.trailer("Sum", "7");
      to.trailer("note", "a b");
    });
  });
  routes.get("/only-sum", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      to.trailer("sum", "7");
      co_return;
    });
  });
  routes.get("/big-sum", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      const std::string much(300'000, 'x');
      co_await to.write(much);
      to.trailer("sum", "8");
    });
  });
  routes.get("/big", [] { return response::text(std::string(300'000, 'x')); });
  return routes;
}

TEST_P(http2_requests, answers_a_get) {
  const h2::answer got = answer(some_routes(), h2::ask(1, h2::get("/")));
  EXPECT_EQ(got.status, "200");
  EXPECT_EQ(got.body, "hello");
  EXPECT_EQ(got.field("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(got.field("content-length"), "5");
  EXPECT_FALSE(got.field("date").empty());
  EXPECT_EQ(answer(some_routes(), h2::ask(1, h2::get("/users/7"))).body, "user 7");
  EXPECT_EQ(answer(some_routes(), h2::ask(1, h2::get("/none"))).status, "404");
  EXPECT_EQ(answer(some_routes(), h2::ask(1, h2::post("/"))).status, "405");
}

TEST_P(http2_requests, functions_in_front_of_all_routes_see_requests_without_one) {
  for (const bool waits : {false, true}) {
    const auto routes = [waits] {
      router made = some_routes();
      made.around([](const request& asked, response& changed) {
        changed.field("x-seen", std::string(asked.path()));
      });
      if (waits) made.around(http::overload_as_503());
      return made;
    };
    const h2::answer none = answer(routes(), h2::ask(1, h2::get("/none")));
    EXPECT_EQ(none.status, "404");
    EXPECT_EQ(none.field("x-seen"), "/none");
    const h2::answer other = answer(
        routes(), h2::ask(1, h2::post("/"), false) + h2::frame_of(h2::data, 0, 1, "not read"));
    EXPECT_EQ(other.status, "405");
    EXPECT_EQ(other.field("x-seen"), "/");
  }
}

TEST_P(http2_requests, gives_handlers_the_same_request) {
  const h2::answer got =
      answer(some_routes(),
             h2::ask(1, h2::get("/head?x=1", {{"x", "y"}, {"cookie", "a=1"}, {"cookie", "b=2"}})));
  EXPECT_EQ(got.body, "GET a 2 x=1 x=y cookie=a=1; b=2 host=a");
  EXPECT_EQ(got.field("x-mixed-case"), "Value");
}

TEST_P(http2_requests, answers_head_without_a_body) {
  h2::field_pairs asked = h2::get("/");
  asked.front().second = "HEAD";
  const h2::answer got = answer(some_routes(), h2::ask(1, asked));
  EXPECT_EQ(got.status, "200");
  EXPECT_EQ(got.field("content-length"), "5");
  EXPECT_EQ(got.body, "");
}

// RFC 9110, 15.3.6.
TEST_P(http2_requests, answers_a_reset_without_a_body) {
  router routes;
  routes.get("/", [] { return response::text("text").status(205); });
  const h2::answer got = answer(std::move(routes), h2::ask(1, h2::get("/")));
  EXPECT_EQ(got.status, "205");
  EXPECT_EQ(got.body, "");
  EXPECT_TRUE(got.is_complete);
}

TEST_P(http2_requests, reads_bodies) {
  const auto body = [](const std::string& path) {
    return h2::ask(1, h2::post(path), false) + h2::frame_of(h2::data, 0, 1, "one ") +
           h2::frame_of(h2::data, h2::end_stream, 1, "two");
  };
  EXPECT_EQ(answer(some_routes(), body("/body")).body, "plain one two");
  EXPECT_EQ(answer(some_routes(), body("/pieces")).body, "one two");
}

TEST_P(http2_requests, reads_trailers) {
  const std::string frames =
      h2::ask(1, h2::post("/pieces"), false) + h2::frame_of(h2::data, 0, 1, "body") +
      h2::frame_of(h2::headers, h2::end_headers | h2::end_stream, 1, h2::block_of({{"sum", "7"}}));
  EXPECT_EQ(answer(some_routes(), frames).body, "body sum=7");
}

TEST_P(http2_requests, sends_trailers_of_answers) {
  const h2::answer got = answer(some_routes(), h2::ask(1, h2::get("/sum")));
  EXPECT_EQ(got.body, "body");
  EXPECT_EQ(got.trailer, (h2::field_pairs{{"sum", "7"}, {"note", "a b"}}));
  EXPECT_TRUE(got.is_complete);
  EXPECT_FALSE(got.reset);
  const h2::answer empty = answer(some_routes(), h2::ask(1, h2::get("/only-sum")));
  EXPECT_EQ(empty.status, "200");
  EXPECT_EQ(empty.body, "");
  EXPECT_EQ(empty.trailer, (h2::field_pairs{{"sum", "7"}}));
  EXPECT_TRUE(empty.is_complete);
}

TEST_P(http2_requests, sends_trailers_behind_bodies_that_wait_for_a_window) {
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(h2::ask(1, h2::get("/big-sum")));
    std::size_t bytes = 0;
    h2::field_pairs last;
    bool ends = false;
    while (!ends) {
      const auto some = co_await one->next();
      EXPECT_TRUE(some.has_value());
      if (!some) co_return;
      if (some->type == h2::headers) last = one->fields_in(*some);
      if (some->type != h2::data && some->type != h2::headers) continue;
      ends = (some->flags & h2::end_stream) != 0;
      EXPECT_EQ(ends, !last.empty() && last.front().first == "sum");
      if (some->type == h2::data) bytes += some->payload.size();
      if (some->type == h2::data && bytes == 65'535)
        co_await one->send(h2::frame_of(h2::window_update, 0, 0, h2::number(1'000'000, 4)) +
                           h2::frame_of(h2::window_update, 0, 1, h2::number(1'000'000, 4)));
    }
    EXPECT_EQ(bytes, 300'000u);
    EXPECT_EQ(last, (h2::field_pairs{{"sum", "8"}}));
    co_await one->send(h2::ask(3, h2::get("/sum")));
    const h2::answer next = co_await one->answer_to(3);
    EXPECT_EQ(next.trailer.size(), 2u);
  });
}

TEST_P(http2_requests, answers_streams_in_any_order) {
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(h2::ask(1, h2::get("/slow")) + h2::ask(3, h2::get("/")));
    const h2::answer fast = co_await one->answer_to(3), slow = co_await one->answer_to(1);
    EXPECT_EQ(fast.body, "hello");
    EXPECT_EQ(slow.body, "slow");
  });
}

TEST_P(http2_requests, streams_answers_and_keeps_to_windows) {
  EXPECT_EQ(answer(some_routes(), h2::ask(1, h2::get("/counts"))).body, "012");
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(h2::ask(1, h2::get("/big")) + h2::ask(3, h2::get("/")));
    const std::string first_window(65'535, 'x');
    std::string got;
    while (got.size() < first_window.size()) {
      const auto some = co_await one->next_of(h2::data);
      EXPECT_TRUE(some.has_value());
      if (!some) co_return;
      if (some->stream == 1) got += some->payload;
    }
    EXPECT_EQ(got, first_window);
    co_await one->send(h2::frame_of(h2::window_update, 0, 0, h2::number(1'000'000, 4)) +
                       h2::frame_of(h2::window_update, 0, 1, h2::number(1'000'000, 4)));
    const h2::answer rest = co_await one->answer_to(1);
    EXPECT_TRUE(rest.is_complete);
    EXPECT_EQ(rest.body.size(), 300'000 - got.size());
  });
}

// A client that sends more than a handler reads has to wait.
TEST_P(http2_requests, gives_windows_as_handlers_read) {
  event may_read;
  router routes;
  routes.post("/", [may_read](request& asked) -> task<response> {
    co_await may_read.wait();
    std::size_t bytes = 0;
    for (;;) {
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      bytes += piece.size();
    }
    co_return response::text(std::to_string(bytes));
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    std::string frames = h2::ask(1, h2::post("/"), false);
    for (int i = 0; i < 3; ++i) frames += h2::frame_of(h2::data, 0, 1, std::string(16'384, 'x'));
    co_await one->send(frames);
    const bool is_alive = co_await one->is_alive();
    EXPECT_TRUE(is_alive);
    may_read.set();
    for (;;) {
      const auto update = co_await one->next_of(h2::window_update);
      EXPECT_TRUE(update.has_value());
      if (!update || update->stream == 1) break;
    }
    co_await one->send(h2::frame_of(h2::data, h2::end_stream, 1, "more"));
    const h2::answer got = co_await one->answer_to(1);
    EXPECT_EQ(got.body, "49156");
  });
}

TEST_P(http2_requests, tells_a_client_to_stop_a_body_that_nobody_reads) {
  const h2::answer got = answer(some_routes(), h2::ask(1, h2::post("/unread"), false));
  EXPECT_EQ(got.status, "200");
  EXPECT_EQ(got.body, "unread");
}

// Some clients take the answer for lost if the reset comes together with it.
TEST_P(http2_requests, a_client_has_the_answer_before_it_is_told_to_stop) {
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    one->replies = false;
    for (const std::int32_t stream : {1, 3}) {
      co_await one->send(h2::ask(stream, h2::post("/unread"), false));
      const h2::answer got = co_await one->answer_to(stream);
      EXPECT_EQ(got.body, "unread");
      EXPECT_FALSE(got.reset.has_value());
      const auto asked = co_await one->next();
      EXPECT_TRUE(asked && asked->type == h2::ping && asked->flags == 0);
      if (!asked) break;
      const std::string pong = h2::frame_of(h2::ping, h2::ack, 0, asked->payload);
      if (stream == 1) {
        co_await one->send(pong);
        const auto stop = co_await one->next();
        EXPECT_TRUE(stop && stop->type == h2::rst_stream && stop->stream == stream);
        continue;
      }
      // This one ends its body itself, and needs no reset.
      co_await one->send(h2::frame_of(h2::data, h2::end_stream, stream, "more") + pong);
      for (int i = 0; i < 2; ++i) {
        co_await one->send(h2::frame_of(h2::ping, 0, 0, "and now?"));
        const auto next = co_await one->next();
        EXPECT_TRUE(next && next->type == h2::ping);
      }
    }
  });
}

// Requests that wait for their client hold memory: beyond eight they are reset at once.
TEST_P(http2_requests, few_answers_wait_for_their_client_to_stop) {
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    one->replies = false;
    for (std::int32_t stream = 1; stream < 2 * 10; stream += 2) {
      co_await one->send(h2::ask(stream, h2::post("/unread"), false));
      const h2::answer got = co_await one->answer_to(stream);
      EXPECT_EQ(got.body, "unread");
      const auto next = co_await one->next();
      const int wanted = stream < 2 * 8 ? h2::ping : h2::rst_stream;
      EXPECT_TRUE(next && next->type == wanted) << stream;
    }
  });
}

TEST_P(http2_requests, a_client_that_does_not_stop_loses_that_stream_alone) {
  http::server_options limits;
  limits.write_time = std::chrono::milliseconds(50);
  run(
      some_routes(),
      [&](runtime&, http::server, endpoint at) -> task<> {
        const auto one = co_await h2::peer::connect(at);
        one->replies = false;
        co_await one->send(h2::ask(1, h2::post("/unread"), false));
        const auto reset = co_await one->next_of(h2::rst_stream);
        EXPECT_EQ(reset ? h2::number_in(reset->payload) : 0u, h2::enhance_your_calm);
        EXPECT_TRUE(co_await one->is_alive());
      },
      limits);
}

TEST_P(http2_requests, limits_bodies_and_heads) {
  http::server_options limits;
  limits.body_bytes = 10;
  limits.head_bytes = 400;
  limits.fields = 4;
  limits.target_bytes = 20;
  const auto status = [&](const std::string& frames) {
    return answer(some_routes(), frames, limits).status;
  };
  EXPECT_EQ(status(h2::ask(1, h2::post("/body", {{"content-length", "11"}}), false)), "413");
  EXPECT_EQ(status(h2::ask(1, h2::post("/body"), false) +
                   h2::frame_of(h2::data, h2::end_stream, 1, std::string(10, 'x'))),
            "200");
  EXPECT_EQ(status(h2::ask(1, h2::post("/body"), false) +
                   h2::frame_of(h2::data, h2::end_stream, 1, std::string(11, 'x'))),
            "413");
  EXPECT_EQ(status(h2::ask(1, h2::post("/pieces"), false) +
                   h2::frame_of(h2::data, h2::end_stream, 1, std::string(11, 'x'))),
            "413");
  EXPECT_EQ(status(h2::ask(1, h2::get("/", {{"a", std::string(300, 'x')}}))), "431");
  EXPECT_EQ(status(h2::ask(1, h2::get("/", {{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}}))), "200");
  EXPECT_EQ(
      status(h2::ask(1, h2::get("/", {{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}))),
      "431");
  EXPECT_EQ(status(h2::ask(1, h2::get("/3456789012345678901"))), "404");
  EXPECT_EQ(status(h2::ask(1, h2::get("/34567890123456789012"))), "414");
}

TEST_P(http2_requests, answers_an_exception_and_serves_the_other_streams) {
  EXPECT_THROW(run(some_routes(),
                   [&](runtime&, http::server, endpoint at) -> task<> {
                     const auto one = co_await h2::peer::connect(at);
                     co_await one->send(h2::ask(1, h2::get("/throws")));
                     const h2::answer first = co_await one->answer_to(1);
                     EXPECT_EQ(first.status, "500");
                     co_await one->send(h2::ask(3, h2::get("/")));
                     const h2::answer second = co_await one->answer_to(3);
                     EXPECT_EQ(second.body, "hello");
                   }),
               std::runtime_error);
}

TEST_P(http2_requests, continues_when_a_body_is_read) {
  const std::pair<std::string, std::string> expects("expect", "100-continue");
  const std::string asked = h2::ask(1, h2::post("/pieces", {expects, expects}), false);
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(asked);
    const auto first = co_await one->next_of(h2::headers);
    EXPECT_TRUE(first.has_value());
    if (!first) co_return;
    EXPECT_EQ(one->fields_in(*first).front().second, "100");
    co_await one->send(h2::frame_of(h2::data, h2::end_stream, 1, "now"));
    const h2::answer got = co_await one->answer_to(1);
    EXPECT_EQ(got.body, "now");
  });
}

TEST_P(http2_requests, tells_handlers_that_their_stream_was_reset) {
  event begun, never;
  bool is_told = false;
  router routes;
  routes.get("/", [begun, never, &is_told](const request& asked) -> task<response> {
    const std::stop_token gone = asked.client_gone();
    begun.set();
    try {
      co_await never.wait().stop(gone);
    } catch (const cancelled&) {
      is_told = true;
    }
    co_return response::text("too late");
  });
  routes.get("/other", [] { return response::text("other"); });
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(h2::ask(1, h2::get("/")));
    co_await begun.wait();
    co_await one->send(h2::frame_of(h2::rst_stream, 0, 1, h2::number(h2::cancel, 4)) +
                       h2::ask(3, h2::get("/other")));
    const h2::answer got = co_await one->answer_to(3);
    EXPECT_EQ(got.body, "other");
    EXPECT_EQ(web.http2().reset_streams, 1u);
  });
  EXPECT_TRUE(is_told);
}

TEST_P(http2_requests, tells_handlers_that_their_client_has_gone) {
  event begun, never;
  bool is_told = false;
  router routes;
  routes.get("/", [begun, never, &is_told](const request& asked) -> task<response> {
    const std::stop_token gone = asked.client_gone();
    begun.set();
    try {
      co_await never.wait().stop(gone);
    } catch (const cancelled&) {
      is_told = true;
    }
    co_return response::text("too late");
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    co_await one->send(h2::ask(1, h2::get("/")));
    co_await begun.wait();
  });
  EXPECT_TRUE(is_told);
}

// After stop() the client hears that the end comes, and the last answers are sent.
TEST_P(http2_requests, drains_with_goaway) {
  event begun, may_end;
  router routes;
  routes.get("/", [begun, may_end]() -> task<response> {
    begun.set();
    co_await may_end.wait();
    co_return response::text("last");
  });
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    const auto idle = co_await h2::peer::connect(at), busy = co_await h2::peer::connect(at);
    co_await busy->send(h2::ask(1, h2::get("/")));
    co_await begun.wait();
    web.stop();
    const auto code = co_await idle->end();
    EXPECT_EQ(code, h2::no_error);
    const auto first = co_await busy->next_of(h2::goaway);
    EXPECT_TRUE(first.has_value());
    may_end.set();
    const h2::answer got = co_await busy->answer_to(1);
    EXPECT_EQ(got.body, "last");
    const auto last = co_await busy->end();
    EXPECT_EQ(last, h2::no_error);
  });
}

TEST_P(http2_requests, refuses_one_stream_too_many) {
  event may_end;
  router routes;
  routes.get("/", [may_end]() -> task<response> {
    co_await may_end.wait();
    co_return response::text("one");
  });
  http::server_options limits;
  limits.http2.streams = 2;
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        const auto one = co_await h2::peer::connect(at);
        co_await one->send(h2::ask(1, h2::get("/")) + h2::ask(3, h2::get("/")) +
                           h2::ask(5, h2::get("/")));
        const h2::answer refused = co_await one->answer_to(5);
        EXPECT_EQ(refused.reset, h2::refused_stream);
        may_end.set();
        const h2::answer first = co_await one->answer_to(1);
        EXPECT_EQ(first.body, "one");
      },
      limits);
}

TEST_P(http2_requests, is_off_by_option) {
  http::server_options limits;
  limits.http2.is_on = false;
  EXPECT_TRUE(answer_to(some_routes(), h2::hello + h2::ask(1, h2::get("/")), limits)
                  .starts_with("HTTP/1.1 505"));
}

// What only begins like the preface is HTTP/1.1.
TEST_P(http2_requests, tells_the_preface_from_requests_of_http_1) {
  EXPECT_TRUE(answer_to(some_routes(),
                        "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                        "Connection: close\r\n\r\nhi")
                  .ends_with("plain hi"));
  EXPECT_TRUE(
      answer_to(some_routes(), "PRI * HTTP/2.0\r\n\r\nXM\r\n\r\n").starts_with("HTTP/1.1 4"));
}

TROUPE_HTTP_TEST_EACH(http2_requests);

}  // namespace
}  // namespace troupe::test

#endif
