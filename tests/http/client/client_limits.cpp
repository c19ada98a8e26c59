// A client uses few connections to an origin at a time, and few requests wait for one.
#include "http/client/scripted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::client_response;
using http::origin_full;

class http_client_limits : public client_conformance {};

scripted_answer says_x(const std::string&) { return with_length("x"); }

client_options limited(std::size_t connections, std::size_t waiting,
                       std::chrono::nanoseconds time) {
  client_options chosen;
  chosen.connections_per_origin = connections;
  chosen.requests_waiting = waiting;
  chosen.waiting_time = time;
  return chosen;
}

task<std::string> limited_outcome(http::sending asked) {
  try {
    co_return co_await outcome_of(std::move(asked));
  } catch (const origin_full& e) {
    EXPECT_GT(e.retry_after(), 0s);
    co_return e.which() == origin_full::limit::waiting_time ? "waiting_time" : "requests_waiting";
  }
}

TEST_P(http_client_limits, connections_are_shared_by_those_that_wait) {
  run(
      says_x,
      [](scripted_server& server, client web) -> task<> {
        std::vector<task<std::string>> all;
        for (int i = 0; i < 20; ++i) all.push_back(fetch(web.get(server.url())));
        auto every = when_all(std::move(all));
        const std::vector<std::string> got = co_await std::move(every);
        for (const std::string& one : got) EXPECT_EQ(one, "200 x");
        EXPECT_EQ(got.size(), 20u);
        EXPECT_LE(server.connections(), 2);
        EXPECT_LE(web.idle(), 2u);
      },
      limited(2, 18, 60s));
}

TEST_P(http_client_limits, one_more_does_not_wait) {
  run(
      says_x,
      [](scripted_server& server, client web) -> task<> {
        client_response held = co_await web.get(server.url());
        event full;
        const auto ask = [&]() -> task<std::string> {
          std::string how = co_await limited_outcome(web.get(server.url()));
          if (how == "requests_waiting") full.set();
          co_return how;
        };
        future<std::string> one = spawn(ask()), two = spawn(ask());
        co_await full.wait();
        co_await held.read_all();
        const std::string first = co_await std::move(one), second = co_await std::move(two);
        EXPECT_EQ(std::min(first, second) + std::max(first, second), "200 xrequests_waiting");
        EXPECT_EQ(server.connections(), 1);
      },
      limited(1, 1, 60s));
}

TEST_P(http_client_limits, none_waits_where_none_may) {
  run(
      says_x,
      [](scripted_server& server, client web) -> task<> {
        client_response held = co_await web.get(server.url());
        const std::string refused = co_await limited_outcome(web.get(server.url()));
        EXPECT_EQ(refused, "requests_waiting");
        // Another name is another origin.
        const std::string other = co_await limited_outcome(
            web.get("http://localhost:" + std::to_string(server.port()) + "/"));
        EXPECT_EQ(other, "200 x");
        { const client_response dropped = std::move(held); }
        const std::string now = co_await limited_outcome(web.get(server.url()));
        EXPECT_EQ(now, "200 x");
      },
      limited(1, 0, 60s));
}

TEST_P(http_client_limits, waiting_has_its_time_and_that_of_the_call) {
  run(
      says_x,
      [](scripted_server& server, client web) -> task<> {
        const client_response held = co_await web.get(server.url());
        const std::string late = co_await limited_outcome(web.get(server.url()));
        EXPECT_EQ(late, "waiting_time");
        const std::string own = co_await limited_outcome(web.get(server.url()).timeout(1ms));
        EXPECT_EQ(own, "timed_out");
        std::stop_source stop;
        stop.request_stop();
        const std::string stopped =
            co_await limited_outcome(web.get(server.url()).stop(stop.get_token()));
        EXPECT_EQ(stopped, "cancelled");
        const auto ask = [&]() -> task<> { co_await fetch(web.get(server.url())); };
        std::string how;
        try {
          co_await with_deadline(1ms, ask());
        } catch (const timed_out&) {
          how = "timed_out";
        }
        EXPECT_EQ(how, "timed_out");
        EXPECT_EQ(server.connections(), 1);
      },
      limited(1, 1, 2s));
}

TEST_P(http_client_limits, a_websocket_is_a_connection_too) {
  // This server answers 200, so no WebSocket begins, and the connection is free again.
  run(
      says_x,
      [](scripted_server& server, client web) -> task<> {
        co_await fetch(web.get(server.url()));
        EXPECT_EQ(web.idle(), 1u);
        for (int i = 0; i < 3; ++i) {
          http::client_failure why{};
          try {
            co_await web.websocket(server.url());
          } catch (const http::client_error& e) {
            why = e.reason();
          }
          EXPECT_EQ(why, http::client_failure::not_upgraded);
          EXPECT_EQ(web.idle(), 0u);  // a second connection would be one too many
        }
        const std::string got = co_await limited_outcome(web.get(server.url()));
        EXPECT_EQ(got, "200 x");
      },
      limited(1, 0, 60s));
}

TEST(http_client_limit_options, are_checked) {
  EXPECT_THROW(client(limited(0, 1, 1s)), option_error);
  EXPECT_NO_THROW(client(limited(1, 0, 0s)));
}

TROUPE_CLIENT_TEST_EACH(http_client_limits);

}  // namespace
}  // namespace troupe::test
