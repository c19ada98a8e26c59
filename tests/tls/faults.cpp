// The fault table: each system call that moves bytes fails once with each error, at several calls.
// Each time both sides get a typed error or do not notice the fault, and no descriptor stays open.
#include <cstring>

#include "support/faulty_kernel.hpp"
#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_faults : public testing::TestWithParam<call> {};

task<> converse(tls_stream& own, std::string sends, std::size_t wants) {
  co_await own.handshake().timeout(20s);
  auto reads = [](tls_stream& from, std::size_t bytes) -> task<> {
    std::string room(bytes, '\0');
    co_await from.read_exact(std::span<char>(room)).timeout(20s);
    std::array<char, 1> none;
    const std::size_t more = co_await from.read(none).timeout(20s);
    EXPECT_EQ(more, 0u);
  };
  auto both = when_all(send_and_end(own, std::move(sends)), reads(own, wants));
  co_await std::move(both);
}

task<std::string> side(task<tls_stream> made, std::size_t bytes) {
  std::string how;
  try {
    tls_stream own = co_await std::move(made);
    how = co_await outcome_of(converse(own, std::string(bytes, 'x'), bytes));
  } catch (const io_error&) {
    how = "io_error";
  }
  co_return how;
}

task<tls_stream> connected(endpoint at, tls_context trust) {
  tcp_stream plain = co_await tcp_stream::connect(at);
  co_return tls_stream::client(trust, std::move(plain), "good.test");
}
task<tls_stream> accepted(tcp_listener& from, tls_context self) {
  tcp_stream plain = co_await from.accept();
  co_return tls_stream::server(self, std::move(plain));
}

TEST_P(tls_faults, each_is_a_typed_error_or_is_not_noticed) {
  static const tls_context trust = tls_context::client(trusting()),
                           self = tls_context::server(showing(good_identity()));
  for (const int fault : {EINTR, EAGAIN, ECONNRESET, EPIPE, ETIMEDOUT, ENOBUFS, ENOMEM,
                          static_cast<int>(short_transfer), static_cast<int>(one_byte_transfers)}) {
    for (const int nth : {0, 1, 2, 3, 5, 8}) {
      if (fault == one_byte_transfers && nth > 0) continue;
      const int before = open_files();
      std::string client, server;
      {
        faulty_kernel calls(GetParam(), nth, fault);
        io::replaced_kernel replaced(calls);
        runtime_options chosen;
        chosen.workers = 2;
        chosen.io = io_backend::epoll;
        runtime rt(chosen);
        auto both = [](std::string& one, std::string& two, std::size_t bytes) -> task<> {
          auto listener = tcp_listener::listen(endpoint::loopback(0));
          const endpoint at = listener.local();
          auto sides =
              when_all(side(connected(at, trust), bytes), side(accepted(listener, self), bytes));
          auto [a, b] = co_await std::move(sides);
          one = a;
          two = b;
        };
        rt.spawn(both(client, server, fault == one_byte_transfers ? 2'000 : 20'000));
        rt.run();
      }
      const std::string name = std::string(name_of(GetParam())) + " " +
                               (fault > 0 ? std::strerror(fault) : "short") + " " +
                               std::to_string(nth);
      const bool harmless = fault == EINTR || fault == EAGAIN || fault < 0;
      if (harmless) {
        EXPECT_EQ(client + server, "okok") << name;
      } else {
        for (const std::string& how : {client, server}) {
          EXPECT_TRUE(how == "ok" || how == "io_error" || how == "truncated" ||
                      how == "refused_by_peer")
              << name << ": " << how;
        }
      }
      EXPECT_EQ(open_files(), before) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(calls, tls_faults, ::testing::Values(call::receive, call::send),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
