// The client speaks HTTP/2: requests share connections, and each is answered, limited and given up
// on its own.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/client/http2_client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::client_request;
using http::client_response;
using http::response;
using http::router;

class client_http2 : public http2_client_conformance {};

task<> fetch_into(client web, std::string url, std::vector<std::string>& all) {
  all.push_back(co_await outcome_of(web.get(url)));
}

TEST_P(client_http2, requests_share_a_connection) {
  gate all_came(50);
  router routes;
  routes.get("/", [&]() -> task<response> {
    co_await all_came.pass();
    co_return response::text("hello");
  });
  ask(std::move(routes), [](client web, http::server server, std::string url) -> task<> {
    std::vector<std::string> got;
    const auto body = [&](task_scope& in) -> task<> {
      for (int i = 0; i < 50; ++i) in.spawn(fetch_into(web, url + "/", got));
      co_return;
    };
    co_await scope(body);
    EXPECT_EQ(got, std::vector<std::string>(50, "200 hello"));
    EXPECT_EQ(server.http2().connections, 1u);
    EXPECT_EQ(server.http2().streams, 50u);
  });
}

TEST_P(client_http2, a_connection_that_is_kept_serves_later_requests) {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  ask(std::move(routes), [](client web, http::server server, std::string url) -> task<> {
    for (int i = 0; i < 20; ++i) {
      const std::string got = co_await outcome_of(web.get(url + "/"));
      EXPECT_EQ(got, "200 hello");
    }
    EXPECT_EQ(server.http2().connections, 1u);
    EXPECT_EQ(server.http2().streams, 20u);
  });
}

// A further connection is opened when all are full.
TEST_P(client_http2, keeps_to_the_limits_of_both_ends) {
  for (const bool by_server : {false, true}) {
    gate all_came(10);
    router routes;
    routes.get("/", [&]() -> task<response> {
      co_await all_came.pass();
      co_return response::text("hello");
    });
    client_options chosen = by_http2();
    http::server_options limits;
    (by_server ? limits.http2 : chosen.http2).streams = 4;
    ask(
        std::move(routes),
        [](client web, http::server server, std::string url) -> task<> {
          std::vector<std::string> got;
          const auto body = [&](task_scope& in) -> task<> {
            for (int i = 0; i < 10; ++i) in.spawn(fetch_into(web, url + "/", got));
            co_return;
          };
          co_await scope(body);
          EXPECT_EQ(got, std::vector<std::string>(10, "200 hello"));
          EXPECT_EQ(server.http2().connections, 3u);
          EXPECT_EQ(server.http2().streams, 10u);
        },
        std::move(chosen), limits);
  }
}

TEST_P(client_http2, requests_wait_for_a_stream_when_no_connection_is_left) {
  router routes;
  routes.get("/", []() -> task<response> {
    co_await sleep_for(1ms);
    co_return response::text("hello");
  });
  client_options chosen = by_http2();
  chosen.http2.streams = 2;
  chosen.connections_per_origin = 1;
  ask(
      std::move(routes),
      [](client web, http::server server, std::string url) -> task<> {
        std::vector<std::string> got;
        const auto body = [&](task_scope& in) -> task<> {
          for (int i = 0; i < 20; ++i) in.spawn(fetch_into(web, url + "/", got));
          co_return;
        };
        co_await scope(body);
        EXPECT_EQ(got, std::vector<std::string>(20, "200 hello"));
        EXPECT_EQ(server.http2().connections, 1u);
        EXPECT_EQ(server.http2().refused_streams, 0u);
      },
      std::move(chosen));
}

TEST_P(client_http2, bodies_go_both_ways) {
  router routes;
  routes.post("/", [](http::request& asked) -> task<response> {
    const std::string_view all = co_await asked.read_all();
    co_return response::text(std::string(all));
  });
  http::server_options limits;
  limits.body_bytes = 8'000'000;
  ask(
      std::move(routes),
      [](client web, http::server server, std::string url) -> task<> {
        for (const std::size_t bytes : {0uz, 1uz, 16'384uz, 16'385uz, 65'536uz, 3'000'000uz}) {
          std::string sent(bytes, 'x');
          client_response whole = co_await web.post(url + "/", sent, "text/plain");
          const std::string got = co_await whole.read_all();
          EXPECT_EQ(got.size(), bytes);
          EXPECT_EQ(whole.length(), bytes);
          client_request pieces("POST", url + "/");
          auto how = [bytes](http::upload& to) -> task<> {
            for (std::size_t sent_bytes = 0; sent_bytes < bytes;) {
              const std::size_t piece = std::min<std::size_t>(bytes - sent_bytes, 100'000);
              co_await to.write(std::string(piece, 'y'));
              sent_bytes += piece;
            }
          };
          pieces.body(std::move(how), "text/plain");
          client_response second = co_await web.send(std::move(pieces));
          const std::string echoed = co_await second.read_all();
          EXPECT_EQ(echoed, std::string(bytes, 'y'));
        }
        EXPECT_EQ(server.http2().connections, 1u);
      },
      by_http2(), limits);
}

// Fields, status, methods, HEAD.
TEST_P(client_http2, answers_are_those_of_the_server) {
  router routes;
  routes.get("/fields", [](const http::request& asked) {
    std::string all;
    for (const http::field one : asked.fields())
      if (one.name != "host") all += std::string(one.name) + "=" + std::string(one.value) + " ";
    return response::text(all).field("X-One", "1").field("X-One", "2");
  });
  routes.get("/none", [] { return response(204); });
  routes.get("/there", [] { return response(302).field("Location", "/none"); });
  ask(std::move(routes), [](client web, http::server, std::string url) -> task<> {
    client_request asked("GET", url + "/fields?a=b");
    asked.field("X-Mine", "yes").field("Keep-Alive", "5");
    client_response answer = co_await web.send(std::move(asked));
    const std::string fields = co_await answer.read_all();
    EXPECT_EQ(fields, "user-agent=troupe x-mine=yes ");
    EXPECT_EQ(answer.fields().count("x-one"), 2u);
    EXPECT_EQ(answer.reason(), "");
    client_response head = co_await web.head(url + "/fields");
    EXPECT_EQ(head.status(), 200);
    EXPECT_GT(head.length().value_or(0), 0u);
    const std::string nothing = co_await head.read_all();
    EXPECT_EQ(nothing, "");
    for (const auto& [target, wanted] : {std::pair("/none", "204 "), {"/there", "204 "}}) {
      const std::string got = co_await outcome_of(web.get(url + target));
      EXPECT_EQ(got, wanted);
    }
  });
}

// A caller that does not read holds up its own stream only, and the server sends no more than the
// window.
TEST_P(client_http2, a_slow_reader_holds_up_nobody_else) {
  std::size_t written = 0;
  router routes;
  routes.get("/long", [&] {
    auto endless = [&](http::body_writer& to) -> task<> {
      const std::string piece(10'000, 'x');
      for (int i = 0; i < 1'000; ++i) {
        co_await to.write(piece);
        written += piece.size();
      }
    };
    return response::stream("text/plain", std::move(endless));
  });
  routes.get("/short", [] { return response::text("short"); });
  client_options chosen = by_http2();
  chosen.http2.stream_window = 64 * 1024;
  ask(
      std::move(routes),
      [&](client web, http::server server, std::string url) -> task<> {
        client_response slow = co_await web.get(url + "/long");
        for (int i = 0; i < 50; ++i) {
          const std::string got = co_await outcome_of(web.get(url + "/short"));
          EXPECT_EQ(got, "200 short");
        }
        EXPECT_LE(written, 64u * 1024);
        const std::string all = co_await slow.read_all();
        EXPECT_EQ(all.size(), 10'000'000u);
        EXPECT_EQ(server.http2().connections, 1u);
      },
      std::move(chosen));
}

// A request that is given up is reset, and so is an answer that is destroyed; others go on.
TEST_P(client_http2, giving_up_ends_one_stream) {
  event never;
  std::atomic<int> asked{0};
  router routes;
  routes.get("/never", [&]() -> task<response> {
    ++asked;
    co_await never.wait();
    co_return response::text("late");
  });
  routes.get("/long", [&] {
    auto forever = [&](http::body_writer& to) -> task<> {
      for (;;) co_await to.write(std::string(10'000, 'x'));
    };
    return response::stream("text/plain", std::move(forever));
  });
  routes.get("/slow", []() -> task<response> {
    co_await sleep_for(100ms);
    co_return response::text("slow");
  });
  ask(std::move(routes), [&](client web, http::server server, std::string url) -> task<> {
    future<std::string> other = spawn(outcome_of(web.get(url + "/slow")));
    // On a busy machine the time may be over before the request was sent.
    for (auto limit = 20ms; asked == 0; limit *= 2) {
      const std::string late = co_await outcome_of(web.get(url + "/never").timeout(limit));
      EXPECT_EQ(late, "timed_out");
    }
    std::stop_source end;
    const auto stop_soon = [&, before = asked.load()]() -> task<> {
      while (asked == before) co_await sleep_for(1ms);
      end.request_stop();
    };
    future<> stopping = spawn(stop_soon());
    const std::string stopped = co_await outcome_of(web.get(url + "/never").stop(end.get_token()));
    EXPECT_EQ(stopped, "cancelled");
    co_await std::move(stopping);
    {
      client_response dropped = co_await web.get(url + "/long");
      const std::string_view piece = co_await dropped.read();
      EXPECT_FALSE(piece.empty());
    }
    const std::string got = co_await std::move(other);
    EXPECT_EQ(got, "200 slow");
    while (server.http2().reset_streams < 3) co_await sleep_for(1ms);
    EXPECT_EQ(server.http2().connections, 1u);
    never.set();
  });
}

TEST_P(client_http2, a_deadline_of_the_call_ends_a_request) {
  event never;
  std::atomic<int> asked{0};
  router routes;
  routes.get("/never", [&]() -> task<response> {
    ++asked;
    co_await never.wait();
    co_return response::text("late");
  });
  ask(std::move(routes), [&](client web, http::server server, std::string url) -> task<> {
    for (auto limit = 20ms; asked == 0; limit *= 2) {  // as above
      bool is_late = false;
      try {
        auto limited = with_deadline(limit, [&] { return fetch(web.get(url + "/never")); });
        co_await std::move(limited);
      } catch (const timed_out&) {
        is_late = true;
      }
      EXPECT_TRUE(is_late);
    }
    while (server.http2().reset_streams < 1) co_await sleep_for(1ms);
    never.set();
  });
}

TROUPE_HTTP_TEST_EACH(client_http2);

}  // namespace
}  // namespace troupe::test

#endif
