// What a simulated connection sends is chosen by the seed, to the last byte: keys, signatures,
// random numbers. A connection over real sockets gets OpenSSL's own.
#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// Copies what one side sends to the other side, and keeps it.
task<> pass_on(tcp_stream& from, tcp_stream& to, std::string& seen) {
  std::array<char, 4096> piece;
  while (const std::size_t bytes = co_await from.read(piece)) {
    seen.append(piece.data(), bytes);
    co_await to.write_all(std::string_view(piece.data(), bytes));
  }
  to.shutdown_write();
}

task<> say_hello(tls_stream one) {
  co_await one.handshake();
  co_await one.write_all("hello");
  co_await one.shutdown();
  co_await read_to_the_end(one);
  one.close();
}
task<> hear_hello(tls_stream one) {
  co_await one.handshake();
  std::array<char, 5> said;
  co_await one.read_exact(said);
  EXPECT_EQ(std::string_view(said.data(), said.size()), "hello");
  co_await one.shutdown();
  co_await read_to_the_end(one);
  one.close();
}

// All bytes between a client and a server, with a relay between them.
task<> talk(std::string& seen) {
  auto outer = tcp_listener::listen(endpoint::loopback(0));
  auto inner = tcp_listener::listen(endpoint::loopback(0));
  auto client = co_await tcp_stream::connect(outer.local());
  auto relay_in = co_await outer.accept();
  auto relay_out = co_await tcp_stream::connect(inner.local());
  auto server = co_await inner.accept();
  static const identity elliptic = trusted().issue({.elliptic = true});
  tls_options trust = trusting(), self = showing(elliptic);
  trust.tickets = self.tickets = false;
  std::string there, back;
  auto says =
      say_hello(tls_stream::client(tls_context::client(trust), std::move(client), "good.test"));
  auto hears = hear_hello(tls_stream::server(tls_context::server(self), std::move(server)));
  auto to = pass_on(relay_in, relay_out, there), from = pass_on(relay_out, relay_in, back);
  co_await when_all(std::move(says), std::move(hears), std::move(to), std::move(from));
  seen = there + back;
}

std::string bytes_of(const runtime_options& options) {
  std::string seen;
  runtime rt(options);
  auto done = rt.spawn(talk(seen));
  rt.run();
  done.get();
  return seen;
}

class tls_repeated : public tls_conformance {};

TEST_P(tls_repeated, a_simulated_connection_sends_the_same_bytes_for_the_same_seed) {
  const std::string first = bytes_of(options()), second = bytes_of(options());
  EXPECT_GT(first.size(), 1000u);
  const bool simulated = options().policy == policy::simulated;
  EXPECT_EQ(first == second, simulated);
  if (!simulated) return;
  runtime_options other = options();
  other.seed += 1000;
  EXPECT_NE(first, bytes_of(other));
}

}  // namespace

TROUPE_TLS_TEST_EACH(tls_repeated);

}  // namespace troupe::test
