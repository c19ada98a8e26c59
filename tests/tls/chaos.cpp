// TLS over a bad network: a reader gets what was written, or its beginning and then a typed error.
// An end that the peer did not announce is such an error, and so is a byte that was changed on the
// way.
#include "support/chaos_proxy.hpp"
#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_chaos : public tls_conformance {};

constexpr std::size_t bytes_each_way = 20'000;

struct received {
  std::string bytes, how;
  received() {}
};

task<> reads(tls_stream& from, std::string& to, std::chrono::nanoseconds patience) {
  std::array<char, 1000> buffer;
  for (;;) {
    const std::size_t bytes = co_await from.read(buffer).timeout(patience);
    if (bytes == 0) break;
    to.append(buffer.data(), bytes);
  }
}
task<> writes(tls_stream& to, std::string bytes, std::chrono::nanoseconds patience) {
  co_await to.write_all(std::move(bytes)).timeout(patience);
  co_await to.shutdown().timeout(patience);
}

task<received> converse(tls_stream own, std::string sends, std::chrono::nanoseconds patience) {
  const counted alive;
  received made;
  auto shakes = [](tls_stream& one, std::chrono::nanoseconds most) -> task<> {
    co_await one.handshake().timeout(most);
  };
  made.how = co_await outcome_of(shakes(own, patience));
  if (made.how != "ok") co_return made;
  auto both = when_all(end_of(writes(own, std::move(sends), patience)),
                       end_of(reads(own, made.bytes, patience)));
  const auto [wrote, read] = co_await std::move(both);
  made.how = read == "ok" ? wrote : read;
  co_return made;
}

bool is_typed(const std::string& how) {
  return how == "io_error" || how == "timed_out" || how == "truncated" || how == "protocol" ||
         how == "refused_by_peer";
}

task<> connect_through(runtime& rt, chaos does, std::uint64_t seed, std::atomic<int>& right,
                       std::atomic<int>& failed) {
  static const tls_context trust = tls_context::client(trusting()),
                           self = tls_context::server(showing(good_identity()));
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  chaos_proxy proxy(listener.local(), does, seed, 4'000);
  proxy.start(rt);
  const bool harmless = proxy.harmless(0);
  const std::chrono::nanoseconds patience = harmless ? 60s : 80ms;
  tcp_stream near = co_await tcp_stream::connect(proxy.at());
  tcp_stream distant = co_await listener.accept();
  const std::string there = some_bytes(bytes_each_way), back = some_bytes(bytes_each_way + 1);
  future<received> serving =
      rt.spawn(converse(tls_stream::server(self, std::move(distant)), back, patience));
  const received client =
      co_await converse(tls_stream::client(trust, std::move(near), "good.test"), there, patience);
  const received server = co_await std::move(serving);
  co_await proxy.join();
  EXPECT_EQ(server.bytes, there.substr(0, server.bytes.size()));
  EXPECT_EQ(client.bytes, back.substr(0, client.bytes.size()));
  const std::string name = std::string(name_of(does)) + " " + std::to_string(seed) + ": " +
                           client.how + ", " + server.how;
  const bool whole = client.how == "ok" && server.how == "ok";
  if (whole) {
    EXPECT_TRUE(client.bytes == back && server.bytes == there) << name;
  }
  if (harmless) {
    EXPECT_TRUE(whole) << name;
  } else {
    EXPECT_TRUE(is_typed(client.how) || is_typed(server.how)) << name;
    EXPECT_TRUE(client.how == "ok" || is_typed(client.how)) << name;
    EXPECT_TRUE(server.how == "ok" || is_typed(server.how)) << name;
  }
  ++(whole ? right : failed);
}

TEST_P(tls_chaos, what_is_read_is_what_was_written) {
  constexpr chaos with_damage[] = {chaos::none,  chaos::delays,     chaos::single_bytes,
                                   chaos::reset, chaos::half_close, chaos::black_hole,
                                   chaos::mixed, chaos::damage};
  for (const chaos does : with_damage) {
    std::atomic<int> right{0}, failed{0};
    const int seeds = does == chaos::mixed ? fewer(8) : fewer(4);
    const int before = open_files();
    {
      runtime rt(options());
      for (int i = 0; i < seeds; ++i)
        rt.spawn(connect_through(rt, does, GetParam().on.seed * 100 + static_cast<unsigned>(i),
                                 right, failed));
      rt.run();
    }
    EXPECT_EQ(open_files(), before) << name_of(does);
    EXPECT_EQ(right.load() + failed.load(), seeds);
    EXPECT_EQ(live.load(), 0) << name_of(does);
  }
}

}  // namespace

TROUPE_TLS_TEST_EACH(tls_chaos);

}  // namespace troupe::test
