// The PROXY protocol: a header of a trusted proxy says who the client is; all else ends the
// connection without an answer.
#include "http/secure/https.hpp"
#include "support/scratch.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;
using namespace std::string_literals;

class http_proxy_protocol : public http_conformance {};
class https_proxy_protocol : public https_conformance {};

const std::string v1 = "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n";
const std::string get = "GET / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n";

// A header of version 2 for a client at 192.0.2.1:56324.
std::string v2(char command = 0x21) {
  return "\r\n\r\n\0\r\nQUIT\n"s + command + "\x11\x00\x0c"s + "\xc0\x00\x02\x01\x0a\x00\x00\x01"s +
         "\xdc\x04\x01\xbb"s;
}

router who_routes() {
  router routes;
  routes.get("/", [](const request& asked) {
    return response::text(asked.has_peer() ? asked.peer().to_string() : "no address");
  });
  routes.post("/", [](request& asked) -> task<response> {
    const std::string_view body = co_await asked.read_all();
    co_return response::text(asked.peer().to_string() + std::string(body));
  });
  return routes;
}

server_options trusting(std::vector<http::network> from = {"127.0.0.0/8", "unix"}) {
  server_options options;
  options.proxy_protocol.from = std::move(from);
  return options;
}

// The answers to these bytes, and what was counted.
struct outcome {
  std::string got;
  http::proxy_header_counts counts;
};
std::string body_of(const std::string& got) {
  return got.substr(std::min(got.size(), got.find("\r\n\r\n") + 4));
}

#define EXPECT_COUNTS(counts, a, u, m, t, l)       \
  EXPECT_EQ((counts).accepted, std::uint64_t{a});  \
  EXPECT_EQ((counts).untrusted, std::uint64_t{u}); \
  EXPECT_EQ((counts).malformed, std::uint64_t{m}); \
  EXPECT_EQ((counts).timed_out, std::uint64_t{t}); \
  EXPECT_EQ((counts).lost, std::uint64_t{l})

TEST_P(http_proxy_protocol, says_who_the_client_is) {
  for (const std::string& header : {v1, v2()}) {
    http::proxy_header_counts counts;
    std::string got;
    run(
        who_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          got = co_await exchange(at, header + get);
          counts = web.proxy_headers();
        },
        trusting());
    EXPECT_EQ(body_of(got), "192.0.2.1:56324") << got;
    EXPECT_COUNTS(counts, 1, 0, 0, 0, 0);
  }
}

TEST_P(http_proxy_protocol, may_come_byte_by_byte_and_holds_for_all_requests) {
  std::string got;
  run(
      who_routes(),
      [&](runtime&, http::server, endpoint at) -> task<> {
        tcp_stream peer = co_await tcp_stream::connect(at);
        const std::string first = v1 + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        for (const char& one : first) co_await peer.write_all(std::string_view(&one, 1));
        got = body_of(co_await read_until(peer, "abc"));
        // The second one comes when the connection was parked.
        co_await sleep_for(10ms);
        co_await peer.write_all(get);
        got += "|" + body_of(co_await read_to_end(peer));
      },
      trusting());
  EXPECT_EQ(got, "192.0.2.1:56324abc|192.0.2.1:56324");
}

TEST_P(http_proxy_protocol, of_the_proxy_itself_gives_the_address_of_the_connection) {
  for (const std::string& header : {"PROXY UNKNOWN\r\n"s, v2(0x20)}) {
    const std::string got = body_of(answer_to(who_routes(), header + get, trusting()));
    EXPECT_TRUE(got.starts_with("127.0.0.1:")) << got;
  }
}

TEST_P(http_proxy_protocol, of_a_client_without_an_address) {
  const std::string header = "\r\n\r\n\0\r\nQUIT\n"s + "\x21\x31\x00\xd8"s + std::string(216, 'p');
  EXPECT_EQ(body_of(answer_to(who_routes(), header + get, trusting())), "no address");
}

TEST_P(http_proxy_protocol, that_is_malformed_or_missing_ends_the_connection) {
  const std::string cases[] = {get, "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443 \r\n" + get,
                               "\r\n\r\n" + get, v2(0x22) + get};
  for (const std::string& bytes : cases) {
    http::proxy_header_counts counts;
    std::string got;
    run(
        who_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          got = co_await exchange(at, bytes);
          while (web.connections() > 0) co_await sleep_for(1ms);
          counts = web.proxy_headers();
        },
        trusting());
    EXPECT_EQ(got.find("HTTP"), std::string::npos) << got;
    EXPECT_COUNTS(counts, 0, 0, 1, 0, 0);
  }
}

TEST_P(http_proxy_protocol, of_others_ends_the_connection) {
  http::proxy_header_counts counts;
  std::string got;
  run(
      who_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        got = co_await exchange(at, v1 + get);
        counts = web.proxy_headers();
      },
      trusting({"10.0.0.0/8", "unix"}));
  EXPECT_EQ(got.find("HTTP"), std::string::npos) << got;
  EXPECT_COUNTS(counts, 0, 1, 0, 0, 0);
}

TEST_P(http_proxy_protocol, is_not_read_where_it_is_not_expected) {
  const std::string got = answer_to(who_routes(), v1 + get);
  EXPECT_TRUE(got.starts_with("HTTP/1.1 501")) << got;
}

TEST_P(http_proxy_protocol, has_a_limit_of_bytes) {
  server_options options = trusting();
  for (const std::size_t too_many : {0u, 1u}) {
    const std::size_t bytes = options.proxy_protocol.header_bytes - 16 - 12 - 3 + too_many;
    std::string header = v2() + "\x04"s + static_cast<char>(bytes >> 8) +
                         static_cast<char>(bytes & 255) + std::string(bytes, '\0');
    header[14] = static_cast<char>((header.size() - 16) >> 8);
    header[15] = static_cast<char>((header.size() - 16) & 255);
    const std::string got = answer_to(who_routes(), header + get, options);
    EXPECT_EQ(body_of(got) == "192.0.2.1:56324", too_many == 0) << got;
  }
}

TEST_P(http_proxy_protocol, has_a_limit_of_time) {
  if (threaded()) GTEST_SKIP() << "needs the simulated policy: the limit is passed in virtual time";
  for (const bool in_time : {true, false}) {
    http::proxy_header_counts counts;
    std::string got;
    run(
        who_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(v1.substr(0, 20));
          const std::chrono::nanoseconds wait = in_time ? 4'990ms : 5'010ms;
          co_await sleep_for(wait);
          try {
            co_await peer.write_all(v1.substr(20) + get);
            got = co_await read_to_end(peer);
          } catch (const io_error&) {
          }
          counts = web.proxy_headers();
        },
        trusting());
    EXPECT_EQ(body_of(got) == "192.0.2.1:56324", in_time) << got;
    EXPECT_EQ(counts.timed_out, in_time ? 0u : 1u);
  }
}

TEST_P(http_proxy_protocol, counts_a_proxy_that_leaves) {
  http::proxy_header_counts counts;
  run(
      who_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all("PROXY TCP4");
        }
        while (web.proxy_headers().lost == 0) co_await sleep_for(1ms);
        counts = web.proxy_headers();
      },
      trusting());
  EXPECT_COUNTS(counts, 0, 0, 0, 0, 1);
}

// A header that never comes does not hold off the end of the server.
TEST_P(http_proxy_protocol, is_not_waited_for_when_the_server_stops) {
  server_options options = trusting();
  options.proxy_protocol.header_time = 1h;
  http::proxy_header_counts counts;
  std::string late;
  run(
      who_routes(),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        tcp_stream silent = co_await tcp_stream::connect(at),
                   one = co_await tcp_stream::connect(at);
        while (web.connections() < 2) co_await sleep_for(1ms);
        web.stop();
        co_await one.write_all(v1 + get);
        late = co_await read_to_end(one);
        EXPECT_EQ(co_await read_to_end(silent), "");
        counts = web.proxy_headers();
      },
      options);
  EXPECT_EQ(body_of(late), "192.0.2.1:56324") << late;
  EXPECT_COUNTS(counts, 1, 0, 0, 0, 1);
}

// The limit of connections holds for the client, not for the proxy.
TEST_P(http_proxy_protocol, makes_connections_count_for_the_client) {
  server_options options = trusting();
  options.connections_per_peer = 1;
  std::string of_one, of_same, of_other;
  run(
      who_routes(),
      [&](runtime&, http::server, endpoint at) -> task<> {
        tcp_stream one = co_await tcp_stream::connect(at);
        co_await one.write_all(v1 + "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        of_one = co_await read_until(one, "56324");
        of_same = co_await exchange(at, v1 + get);
        of_other = co_await exchange(at, "PROXY TCP4 192.0.2.2 10.0.0.1 1 443\r\n" + get);
      },
      options);
  EXPECT_TRUE(of_one.starts_with("HTTP/1.1 200")) << of_one;
  EXPECT_TRUE(of_same.starts_with("HTTP/1.1 503")) << of_same;
  EXPECT_TRUE(of_other.starts_with("HTTP/1.1 200")) << of_other;
}

TEST_P(http_proxy_protocol, comes_over_unix_sockets) {
  if (!threaded()) GTEST_SKIP() << "needs threads: Unix sockets are the system's";
  const scratch folder;
  const std::string path = folder / "socket";
  for (const bool is_trusted : {true, false}) {
    http::server web(who_routes(), is_trusted ? trusting() : trusting({"127.0.0.0/8"}));
    std::string got;
    runtime rt(options());
    rt.spawn(web.serve(unix_listener::listen(path)));
    auto ask = [](std::string to, http::server from, std::string& into) -> task<> {
      unix_stream peer = unix_stream::connect(to);
      try {
        co_await peer.write_all(v2() + get);
        std::array<char, 1000> part;
        for (;;) {
          const std::size_t bytes = co_await peer.read(part);
          if (bytes == 0) break;
          into.append(part.data(), bytes);
        }
      } catch (const io_error&) {
      }
      from.stop();
    };
    rt.spawn(ask(path, web, got));
    rt.run();
    EXPECT_EQ(body_of(got) == "192.0.2.1:56324", is_trusted) << got;
    EXPECT_EQ(web.proxy_headers().untrusted, is_trusted ? 0u : 1u);
  }
}

TEST_P(https_proxy_protocol, comes_before_tls) {
  std::string got;
  run_secretly(
      who_routes(), tls_context::server(served()),
      [&](http::server, endpoint at) -> task<> {
        for (const std::string& header : {v1, v2()}) {
          tcp_stream plain = co_await tcp_stream::connect(at);
          co_await plain.write_all(header);
          tls_stream peer = tls_stream::client(tls_context::client(trusting_it()), std::move(plain),
                                               std::string("good.test"));
          co_await peer.handshake();
          task<std::string> asked = ask_secretly(peer, get, "56324");
          got += body_of(co_await std::move(asked)) + "|";
        }
      },
      trusting());
  EXPECT_EQ(got, "192.0.2.1:56324|192.0.2.1:56324|");
}

TEST(http_proxy_protocol_options, are_checked) {
  server_options options;
  options.proxy_protocol.header_bytes = 106;
  EXPECT_THROW(http::server(router(), options), option_error);
  options.proxy_protocol.header_bytes = 107;
  EXPECT_NO_THROW(http::server(router(), options));
  options.proxy_protocol.header_time = 0s;
  EXPECT_THROW(http::server(router(), options), option_error);
}

TROUPE_HTTP_TEST_EACH(http_proxy_protocol);
TROUPE_HTTP_TEST_EACH(https_proxy_protocol);

}  // namespace
}  // namespace troupe::test
