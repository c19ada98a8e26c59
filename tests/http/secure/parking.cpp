// Idle connections over TLS are parked like others: clients see no difference.
#include "http/secure/https.hpp"
#include "support/open_files.hpp"
#include "tls/wire_of.hpp"

namespace troupe::test {
namespace {

using http::server_options;
using namespace std::chrono_literals;

class https_parking : public https_conformance {};

// Only under the simulated policy, where long waits take no time.
class https_parking_times : public https_conformance {};

task<std::vector<tls_stream>> connect_and_ask(endpoint at, int connections, int requests) {
  const tls_context client = tls_context::client(trusting_it());
  std::vector<tls_stream> held;
  for (int i = 0; i < connections; ++i) {
    held.push_back(co_await connect_secretly(at, client));
    for (int j = 0; j < requests; ++j) {
      const std::string got = co_await ask_secretly(held.back(), get_hello, "hello");
      if (!got.ends_with("hello")) throw std::runtime_error("no answer");
    }
  }
  co_return held;
}

server_options little_memory() {
  server_options limits;
  limits.buffer_bytes = 40'000;  // the buffers of about eight connections
  return limits;
}

TEST_P(https_parking, of_idle_connections_takes_no_buffers_and_they_go_on) {
  int heard = 0;
  std::size_t most = 0;
  const http::handshake_counts counts = run_secretly(
      hello_routes(), tls_context::server(served()),
      [&](http::server web, endpoint at) -> task<> {
        std::vector<tls_stream> held = co_await connect_and_ask(at, 20, 1);
        most = web.connections();
        for (int round = 0; round < 3; ++round) {
          for (tls_stream& one : held) {
            const std::string got = co_await ask_secretly(one, get_hello, "hello");
            heard += got.ends_with("hello") ? 1 : 0;
          }
        }
      },
      little_memory());
  EXPECT_EQ(most, 20u);
  EXPECT_EQ(heard, 60);
  EXPECT_EQ(counts.done, 20u);
}

// In parts that are smaller than a request.
task<> pass_on(tcp_stream& from, tcp_stream& to) {
  std::array<char, 40> part;
  try {
    for (;;) {
      const std::size_t bytes = co_await from.read(part);
      if (bytes == 0) break;
      co_await to.write_all(std::string(part.data(), bytes));
      co_await yield();
    }
    to.shutdown_write();
  } catch (const io_error&) {  // one of the two has gone
  }
}

// Parts of a record wake a connection, and are no request yet.
TEST_P(https_parking, of_one_to_which_nothing_was_said_and_records_in_parts) {
  std::string got;
  run_secretly(
      hello_routes(), tls_context::server(served()), [&](http::server, endpoint at) -> task<> {
        // What the client encrypts goes into a pipe first.
        tcp_stream server = co_await tcp_stream::connect(at);
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const endpoint between = listener.local();
        future<tls_stream> secret = spawn([](endpoint to) -> task<tls_stream> {
          co_return co_await connect_secretly(to, tls_context::client(trusting_it()));
        }(between));
        tcp_stream client = co_await listener.accept();
        future<> back = spawn(pass_on(server, client)), there = spawn(pass_on(client, server));
        {
          tls_stream peer = co_await std::move(secret);
          for (int round = 0; round < 6; ++round) {
            co_await sleep_for(2ms);
            got += co_await ask_secretly(peer, get_hello, "hello");
          }
          co_await peer.shutdown();
        }
        co_await std::move(there);
        co_await std::move(back);
      });
  std::size_t answers = 0;
  for (std::size_t at = got.find("hello"); at != std::string::npos; at = got.find("hello", at + 1))
    ++answers;
  EXPECT_EQ(answers, 6u) << got;
}

TEST_P(https_parking, ends_with_the_peer) {
  const int before = open_files();
  const http::handshake_counts counts = run_secretly(
      hello_routes(), tls_context::server(served()), [&](http::server web, endpoint at) -> task<> {
        std::vector<tls_stream> held = co_await connect_and_ask(at, 6, 1);
        for (std::size_t i = 0; i < held.size(); ++i) {
          if (i % 2 == 0) co_await held[i].shutdown();
        }
        held.clear();
        while (web.connections() > 0) co_await sleep_for(1ms);
      });
  EXPECT_EQ(counts.unannounced_ends, 3u);
  EXPECT_EQ(open_files(), before);
}

TEST_P(https_parking, is_over_when_the_server_stops_and_the_end_is_announced) {
  const int before = open_files();
  for (const int requests : {0, 1, 8}) {
    int announced = 0;
    run_secretly(hello_routes(), tls_context::server(served()),
                 [&](http::server web, endpoint at) -> task<> {
                   std::vector<tls_stream> held = co_await connect_and_ask(at, 10, requests);
                   while (web.handshakes().done < held.size()) co_await sleep_for(1ms);
                   web.stop();
                   for (tls_stream& one : held) {
                     std::array<char, 10> part;
                     const std::size_t bytes = co_await one.read(part);
                     announced += bytes == 0 ? 1 : 0;
                     one.close();
                   }
                 });
    EXPECT_EQ(announced, 10);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_P(https_parking_times, of_idle_connections_ends_after_the_idle_time) {
  server_options limits;
  limits.idle_time = 60s;
  std::chrono::nanoseconds lasted{0};
  run_secretly(
      hello_routes(), tls_context::server(served()),
      [&](http::server web, endpoint at) -> task<> {
        std::vector<tls_stream> held = co_await connect_and_ask(at, 2, 1);
        const std::chrono::nanoseconds begun = now();
        while (web.connections() > 0) co_await sleep_for(100ms);
        lasted = now() - begun;
      },
      limits);
  EXPECT_GE(lasted, 59s);
  EXPECT_LE(lasted, 62s);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(https_parking);

INSTANTIATE_TEST_SUITE_P(simulated, https_parking_times,
                         ::testing::Values(io_setting{{policy::simulated, 1, 1},
                                                      io_backend::simulated}),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace troupe::test
