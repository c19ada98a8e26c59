// Idle connections are parked: they have neither buffers nor a task, and clients see no difference.
#include "support/http.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

class http_parking : public http_conformance {};

// Only under the simulated policy, where long waits take no time.
class http_parking_times : public http_conformance {};

router some_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.post("/body",
              [](const request& asked) { return response::text(std::string(asked.body())); });
  return routes;
}

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

task<bool> ask(tcp_stream& peer) {
  co_await peer.write_all(std::string_view(get));
  const std::string answer = co_await read_until(peer, "hello");
  co_return answer.ends_with("hello");
}

// Makes this many connections, each of which gets this many answers.
task<std::vector<tcp_stream>> connect_and_ask(endpoint at, int connections, int requests) {
  std::vector<tcp_stream> held;
  for (int i = 0; i < connections; ++i) {
    held.push_back(co_await tcp_stream::connect(at));
    for (int j = 0; j < requests; ++j) {
      const bool heard = co_await ask(held.back());
      if (!heard) throw std::runtime_error("no answer");
    }
  }
  co_return held;
}

server_options little_memory() {
  server_options limits;
  limits.buffer_bytes = 20'000;  // the buffers of about four connections
  return limits;
}

TEST_P(http_parking, of_idle_connections_takes_no_buffers_and_they_go_on) {
  int heard = 0;
  std::size_t most = 0;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        auto held = co_await connect_and_ask(at, 20, 1);
        most = web.connections();
        // After more rounds they would be busy connections.
        for (int round = 0; round < 3; ++round) {
          for (tcp_stream& one : held) {
            const bool well = co_await ask(one);
            heard += well ? 1 : 0;
          }
        }
      },
      little_memory());
  EXPECT_EQ(most, 20u);
  EXPECT_EQ(heard, 60);
}

TEST_P(http_parking, of_one_to_which_nothing_was_said_and_requests_in_parts) {
  std::string got;
  run(some_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    const std::string_view text = "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    for (int round = 0; round < 6; ++round) {
      co_await sleep_for(1ms);
      for (std::size_t i = 0; i < text.size(); i += 13) {
        co_await peer.write_all(text.substr(i, 13));
        co_await yield();
      }
      co_await peer.write_all("12");
      co_await sleep_for(1ms);
      co_await peer.write_all("345");
      got += co_await read_until(peer, "12345");
    }
  });
  EXPECT_EQ(std::count(got.begin(), got.end(), '5') >= 6, true) << got;
}

TEST_P(http_parking, ends_with_the_peer_and_counts_for_its_address) {
  server_options limits;
  limits.connections_per_peer = 3;
  std::size_t left = 0;
  std::string got;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        auto held = co_await connect_and_ask(at, 3, 1);
        got = co_await exchange(at, get);
        held.clear();
        while (web.connections() > 0) co_await sleep_for(1ms);
        left = web.connections();
        auto again = co_await connect_and_ask(at, 3, 1);
      },
      limits);
  EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
  EXPECT_EQ(left, 0u);
}

TEST_P(http_parking, is_over_when_the_server_stops) {
  const int before = open_files();
  std::string rest = "?";
  for (const int requests : {0, 1, 8}) {
    run(some_routes(), [&](runtime&, http::server web, endpoint at) -> task<> {
      auto held = co_await connect_and_ask(at, 20, requests);
      while (web.connections() < 20) co_await sleep_for(1ms);
      web.stop();
      rest.clear();
      for (tcp_stream& one : held) rest += co_await read_to_end(one);
    });
    EXPECT_EQ(rest, "") << requests;
  }
  EXPECT_EQ(open_files(), before);
}

TEST_P(http_parking, is_over_when_the_runtime_ends) {
  const int before = open_files();
  {
    runtime rt(options());
    http::server web(some_routes());
    std::vector<tcp_stream> held;
    const auto hold = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      rt.spawn(web.serve(std::move(listener)));
      held = co_await connect_and_ask(at, 5, 1);
      rt.stop();
    };
    rt.spawn(hold());
    rt.run();
    EXPECT_EQ(held.size(), 5u);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_P(http_parking_times, of_busy_ones_when_nothing_has_come_for_a_second) {
  std::size_t most = 0;
  int heard = 0;
  run(
      some_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        std::vector<tcp_stream> all;
        for (int i = 0; i < 10; ++i) {
          auto held = co_await connect_and_ask(at, 2, 8);
          for (tcp_stream& one : held) all.push_back(std::move(one));
          co_await sleep_for(3s);
        }
        most = web.connections();
        for (int round = 0; round < 5; ++round) {
          for (tcp_stream& one : all) {
            const bool well = co_await ask(one);
            heard += well ? 1 : 0;
          }
          co_await sleep_for(10s);
        }
      },
      little_memory());
  EXPECT_EQ(most, 20u);
  EXPECT_EQ(heard, 100);
}

TEST_P(http_parking_times, ends_each_at_its_time) {
  server_options limits;
  limits.idle_time = 10s;
  std::vector<std::chrono::nanoseconds> ends;
  run(
      some_routes(),
      [&](runtime& rt, http::server, endpoint at) -> task<> {
        const std::chrono::nanoseconds begun = now();
        const auto wait = [](endpoint to, int requests) -> task<> {
          auto held = co_await connect_and_ask(to, 1, requests);
          const std::string rest = co_await read_to_end(held.front());
        };
        std::vector<future<>> all;
        for (const int requests : {0, 1, 8}) {
          all.push_back(rt.spawn(wait(at, requests)));
          co_await sleep_for(3s);
        }
        for (future<>& one : all) {
          co_await std::move(one);
          ends.push_back(now() - begun);
        }
      },
      limits);
  ASSERT_EQ(ends.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(ends[i], 10s + i * 3s);
    EXPECT_LE(ends[i], 11s + i * 3s);
  }
}

TROUPE_HTTP_TEST_EACH(http_parking);

INSTANTIATE_TEST_SUITE_P(
    seeds, http_parking_times,
    testing::Values(io_setting{{policy::simulated, 1, 1}, io_backend::simulated},
                    io_setting{{policy::simulated, 1, 2}, io_backend::simulated}),
    [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
