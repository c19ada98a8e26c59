// Peers that connect and reset, thousands of them: whoever serves goes on, and nothing is left.
#include <sys/socket.h>

#include <chrono>

#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

class io_storm : public io_conformance {};

// Closed so, a socket sends a reset.
void reset(tcp_stream& one) {
  const linger at_once{1, 0};
  ::setsockopt(one.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  one.close();
}

task<> storms(endpoint at, int rounds, std::atomic<int>& left, bool real) {
  for (int i = 0; i < rounds; ++i) {
    tcp_stream one = co_await tcp_stream::connect(at);
    if (i % 4 != 0) co_await one.write_all("some bytes, which come back or do not");
    if (i % 4 == 2) {
      std::array<char, 4> part;
      co_await one.read_exact(part);
    }
    if (i % 4 == 3) co_await yield();
    if (real) {
      reset(one);
    } else {
      one.close();
    }
  }
  --left;
}

task<> serves_one(tcp_stream peer, std::atomic<int>& ended) {
  try {
    co_await echo(std::move(peer));
  } catch (const io_error& e) {
    EXPECT_TRUE(e.code() == std::errc::connection_reset || e.code() == std::errc::broken_pipe) << e.what();
  }
  ++ended;
}

TEST_P(io_storm, thousands_of_connections_that_are_reset_leave_nothing) {
  // 20,000 of them on each of the system's backends; on the other settings fewer.
  const bool all = std::getenv("TROUPE_DEEP") != nullptr || (GetParam().on.policy == policy::work_stealing && GetParam().on.workers == 2);
  constexpr int clients = 10;
  const int rounds = fewer(all && threaded() ? 2'000 : threaded() ? 60 : 20);
  const int before = open_files();
  {
    std::atomic<int> left{clients}, ended{0};
    auto program = [&](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      for (int i = 0; i < clients; ++i) rt.spawn(storms(listener.local(), rounds, left, threaded()));
      // Which are reset in the queue of those that wait to be accepted is the system's affair.
      std::stop_source end;
      for (;;) {
        try {
          tcp_stream peer = co_await listener.accept().timeout(std::chrono::milliseconds(left.load() == 0 ? 1 : 50));
          rt.spawn(serves_one(std::move(peer), ended));
        } catch (const timed_out&) {
          if (left.load() == 0) break;
        }
      }
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_EQ(left.load(), 0);
    EXPECT_GT(ended.load(), 0);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_storm);

}  // namespace troupe::test
