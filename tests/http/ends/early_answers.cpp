// A client that sends a long body, and reads the answer only when it has sent all of it, sees an
// answer that was there early: the server reads on for a while (docs/protocols/http_ends.md).
#include <string>
#include <utility>

#include "http/secure/https.hpp"
#include "support/http.hpp"
#include "troupe/http/values/status_error.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

constexpr std::uint64_t mebibyte = 1024 * 1024;

// Two ways to refuse a body before it was read.
router early_routes() {
  router routes;
  routes.post("/handler", [](http::request&) -> task<response> {
    co_return response::text("too much\n").status(413);
  });
  routes.post("/limit", [](http::request& asked) -> task<response> {
    static_cast<void>(co_await asked.read_all());
    co_return response::text("read\n");
  });
  return routes;
}

std::string head_for(const char* path, std::uint64_t bytes) {
  return std::string("POST ") + path +
         " HTTP/1.1\r\nHost: good.test\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

template <class Stream>
task<> send_body(Stream& to, std::string head, std::uint64_t bytes) {
  const std::string piece(64 * 1024, 'x');
  co_await to.write_all(std::string_view(head));
  for (std::uint64_t left = bytes; left > 0;) {
    const std::string_view part = std::string_view(piece).substr(0, left);
    co_await to.write_all(part);
    left -= part.size();
  }
}
template <class Stream>
task<> read_answer(Stream& from, std::string& to) {
  std::array<char, 4096> room;
  for (;;) {
    const std::size_t bytes = co_await from.read(std::span<char>(room));
    if (bytes == 0) break;
    to.append(room.data(), bytes);
  }
}

// Sends everything before it reads; but the simulated network may have no room for an answer that
// is not read. Returns the status line, or why there is none.
template <class Stream>
task<std::string> send_then_read(Stream& peer, std::string head, std::uint64_t bytes,
                                 bool reads_beside) {
  std::string got;
  try {
    task<> sending = send_body(peer, std::move(head), bytes), reading = read_answer(peer, got);
    if (reads_beside) {
      co_await when_all(std::move(sending), std::move(reading));
    } else {
      co_await std::move(sending);
      co_await std::move(reading);
    }
  } catch (const error& e) {
    got = e.what();
  }
  co_return got.substr(0, got.find("\r\n"));
}

class http_early_answers : public https_conformance {
 protected:
  // The simulated network is slow: there it is some more than what was read before.
  std::uint64_t body_bytes() const { return threaded() ? 100 * mebibyte : 2 * mebibyte; }
};

TEST_P(http_early_answers, are_seen_by_clients_that_send_first) {
  for (const char* path : {"/handler", "/limit"}) {
    std::string got;
    run(early_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(at);
      got = co_await send_then_read(peer, head_for(path, body_bytes()), body_bytes(), !threaded());
    });
    EXPECT_EQ(got, "HTTP/1.1 413 Content Too Large") << path;
  }
}

TEST_P(http_early_answers, are_seen_by_clients_that_send_first_over_tls) {
  const tls_context self = tls_context::server(served()),
                    trust = tls_context::client(trusting_it());
  for (const char* path : {"/handler", "/limit"}) {
    std::string got;
    run_secretly(early_routes(), self, [&](http::server, endpoint at) -> task<> {
      tls_stream peer = co_await connect_secretly(at, trust);
      got = co_await send_then_read(peer, head_for(path, body_bytes()), body_bytes(), !threaded());
    });
    EXPECT_EQ(got, "HTTP/1.1 413 Content Too Large") << path;
  }
}

// The client's time until the server has ended the connection. Sends `bytes` each `every`.
task<std::chrono::nanoseconds> held_for(endpoint at, std::size_t bytes,
                                        std::chrono::nanoseconds every) {
  tcp_stream made = co_await tcp_stream::connect(at);
  const auto peer = std::make_shared<tcp_stream>(std::move(made));
  future<std::string> answer = spawn(read_to_end(peer));
  const std::string head = head_for("/handler", 1000 * mebibyte), piece(bytes, 'x');
  const std::chrono::nanoseconds begun = now();
  try {
    co_await peer->write_all(std::string_view(head));
    while (now() - begun < 200s) {
      co_await sleep_for(every);
      co_await peer->write_all(std::string_view(piece));
    }
  } catch (const io_error&) {  // the server has ended it
  }
  const std::chrono::nanoseconds held = now() - begun;
  static_cast<void>(co_await std::move(answer));
  co_return held;
}

TEST_P(http_early_answers, hold_no_connection_for_long) {
  if (threaded()) GTEST_SKIP() << "needs the simulated policy: it takes a minute";
  const auto hold = [&](std::size_t bytes, std::chrono::nanoseconds every) {
    std::chrono::nanoseconds held{0};
    run(early_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      held = co_await held_for(at, bytes, every);
    });
    return held;
  };
  EXPECT_LT(hold(10'000, 2s), 5s);  // silent for longer than a second
  EXPECT_LT(hold(90, 500ms), 10s);  // slower than body_rate
  const std::chrono::nanoseconds most = hold(1000, 500ms);
  EXPECT_GT(most, 50s);
  EXPECT_LT(most, 65s);
}

// As many bytes as it will: the client is cut off.
TEST_P(http_early_answers, take_no_more_than_a_budget) {
  if (!threaded()) GTEST_SKIP() << "needs threads: the simulated network is slow";
  std::uint64_t sent = 0;
  run(early_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    const std::string head = head_for("/handler", 1000 * mebibyte), piece(mebibyte, 'x');
    co_await peer.write_all(std::string_view(head));
    try {
      for (; sent < 1000 * mebibyte; sent += piece.size())
        co_await peer.write_all(std::string_view(piece));
    } catch (const io_error&) {
    }
  });
  EXPECT_GE(sent, 250 * mebibyte);
  EXPECT_LT(sent, 300 * mebibyte);
}

TEST_P(http_early_answers, make_room_for_others) {
  server_options limits;
  limits.connections = 1;
  std::string got;
  std::chrono::nanoseconds waited{0};
  run(
      early_routes(),
      [&](runtime& rt, http::server web, endpoint at) -> task<> {
        future<std::chrono::nanoseconds> holding = rt.spawn(held_for(at, 1000, 300ms));
        while (web.connections() == 0) co_await sleep_for(1ms);
        co_await sleep_for(1ms);
        const std::chrono::nanoseconds begun = now();
        got = co_await exchange(at,
                                "POST /handler HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                                "Connection: close\r\n\r\nx");
        waited = now() - begun;
        static_cast<void>(co_await std::move(holding));
      },
      limits);
  EXPECT_EQ(got.substr(0, 12), "HTTP/1.1 413");
  EXPECT_LT(waited, 20s);
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_early_answers);

}  // namespace troupe::test
