// What the TLS tests share.
#pragma once

#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "tls/certificates.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {

// The number of workers makes no difference to most of these tests.
inline std::vector<io_setting> tls_settings() {
  std::vector<io_setting> all{{{policy::work_stealing, 2, 1}, io_backend::epoll},
                              {{policy::work_stealing, 2, 1}, io_backend::io_uring}};
  for (const std::uint64_t seed : {1u, 2u, 3u})
    all.push_back({{policy::simulated, 1, seed}, io_backend::simulated});
  return all;
}

inline authority& trusted() {
  static authority is("the authority");
  return is;
}
inline tls_options trusting() {
  tls_options options;
  options.ca_pem = trusted().certificate();
  return options;
}
inline const identity& good_identity() {
  static const identity is = trusted().issue();
  return is;
}

inline std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  unsigned state = 1;
  for (char& one : bytes) one = static_cast<char>((state = state * 1103515245 + 12345) >> 16);
  return bytes;
}

inline const char* text_of(tls_failure why) {
  constexpr const char* names[] = {"certificate", "refused_by_peer", "protocol", "truncated",
                                   "plain_http"};
  return names[static_cast<std::size_t>(why)];
}

// Returns how a task ended: "ok", or how it failed. OpenSSL's queue of errors must be empty then,
// on whatever thread the coroutine continues.
inline task<std::string> end_of(task<> one) {
  try {
    co_await std::move(one);
  } catch (const tls_error& e) {
    co_return text_of(e.reason());
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  } catch (const end_of_stream&) {
    co_return "end_of_stream";
  } catch (const io_error&) {
    co_return "io_error";
  } catch (const usage_error&) {
    co_return "usage_error";
  }
  co_return "ok";
}
inline task<std::string> outcome_of(task<> one) {
  std::string how = co_await end_of(std::move(one));
  EXPECT_EQ(ERR_peek_error(), 0u);
  co_return how;
}

// The two ends of a TCP connection.
struct stream_pair {
  tcp_stream client, server;
  stream_pair() {}
};
inline task<stream_pair> make_pair() {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  stream_pair made;
  const endpoint at = listener.local();
  auto connecting = [](endpoint to) -> task<tcp_stream> {
    co_return co_await tcp_stream::connect(to);
  };
  auto accepting = [](tcp_listener& from) -> task<tcp_stream> { co_return co_await from.accept(); };
  auto both = when_all(connecting(at), accepting(listener));
  auto [client, server] = co_await std::move(both);
  made.client = std::move(client);
  made.server = std::move(server);
  co_return made;
}

// The two ends of a TLS connection, before their handshakes.
struct tls_pair {
  tls_stream client, server;
  tls_pair() {}
};
inline task<tls_pair> make_tls_pair(tls_context trust, tls_context self,
                                    std::string host = "good.test") {
  stream_pair plain = co_await make_pair();
  tls_pair made;
  made.client = tls_stream::client(trust, std::move(plain.client), host);
  made.server = tls_stream::server(self, std::move(plain.server));
  co_return made;
}
inline task<> shake(tls_stream& one) { co_await one.handshake(); }
inline task<tls_pair> make_connected_pair(tls_context trust, tls_context self) {
  tls_pair made = co_await make_tls_pair(std::move(trust), std::move(self));
  co_await when_all(shake(made.client), shake(made.server));
  co_return made;
}
inline task<tls_pair> make_good_pair() {
  co_return co_await make_connected_pair(tls_context::client(trusting()),
                                         tls_context::server(showing(good_identity())));
}

inline task<> send_bytes(tls_stream& to, std::string bytes) {
  co_await to.write_all(std::move(bytes));
}
inline task<> send_and_end(tls_stream& to, std::string bytes) {
  co_await to.write_all(std::move(bytes));
  co_await to.shutdown();
}
inline task<std::string> read_to_the_end(tls_stream& from) {
  std::string all;
  std::array<char, 8192> buffer;
  for (;;) {
    const std::size_t bytes = co_await from.read(buffer);
    if (bytes == 0) break;
    all.append(buffer.data(), bytes);
  }
  co_return all;
}

class tls_conformance : public io_conformance {};

}  // namespace troupe::test

#define TROUPE_TLS_TEST_EACH(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(backends, suite, ::testing::ValuesIn(::troupe::test::tls_settings()), \
                           [](const auto& one) { return ::troupe::test::name_of(one.param); })
