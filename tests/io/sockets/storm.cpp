// Thousands of peers that connect and reset: the server continues, and nothing is left behind.
#include <sys/socket.h>

#include <chrono>

#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_storm : public io_conformance {};

// With this option, closing a socket sends a reset.
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
    EXPECT_TRUE(e.code() == std::errc::connection_reset || e.code() == std::errc::broken_pipe)
        << e.what();
  }
  ++ended;
}

TEST_P(io_storm, thousands_of_connections_that_are_reset_leave_nothing) {
  // 20,000 connections with each real backend, and fewer with the other settings.
  const bool all = std::getenv("TROUPE_DEEP") != nullptr ||
                   (GetParam().on.policy == policy::work_stealing && GetParam().on.workers == 2);
  constexpr int clients = 10;
  const int rounds = fewer(all && threaded() ? 2'000 : threaded() ? 60 : 20);
  const int before = open_files();
  {
    std::atomic<int> left{clients}, ended{0};
    auto program = [&](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      for (int i = 0; i < clients; ++i)
        rt.spawn(storms(listener.local(), rounds, left, threaded()));
      // The system decides which of the connections are reset while they wait to be accepted.
      std::stop_source end;
      for (;;) {
        try {
          tcp_stream peer = co_await listener.accept().timeout(
              std::chrono::milliseconds(left.load() == 0 ? 1 : 50));
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

// A socket reports the reset once, to the next call: here that is a write that is tried without a
// wait.
TEST_P(io_storm, a_write_to_a_connection_that_was_reset_says_so) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a simulated peer does not reset";
  for (const bool limited : {false, true}) {
    std::error_code first, second;
    auto resets = [](tcp_stream peer) -> task<> {
      co_await peer.write_all("x");
      reset(peer);
    };
    auto program = [&](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      tcp_stream one = co_await tcp_stream::connect(at);
      tcp_stream peer = co_await listener.accept();
      rt.spawn(resets(std::move(peer)));
      std::array<char, 1> byte;
      co_await one.read_exact(byte);
      co_await sleep_for(20ms);  // sleeps: until the reset has come
      for (std::error_code* code : {&first, &second}) {
        try {
          if (limited) {
            co_await one.write_all("y").timeout(10s);
          } else {
            co_await one.write_all("y");
          }
        } catch (const io_error& e) {
          *code = e.code();
        }
      }
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_EQ(first, std::errc::connection_reset);
    EXPECT_EQ(second, std::errc::broken_pipe);
  }
}

// A write that is refused takes no time, but it counts against the turn's share. So a task that
// keeps writing lets others run, and sees the runtime's end.
TEST_P(io_storm, who_writes_on_to_a_peer_that_has_gone_lets_others_in) {
  constexpr int others_turns = 3, writes_max = 20'000;
  int writes = 0, turns = 0;
  auto other = [&]() -> task<> {
    for (; turns < others_turns; ++turns) co_await yield();
  };
  auto writer = [&](tcp_stream to) -> task<> {
    while (turns < others_turns && writes < writes_max) {
      try {
        co_await to.write_all("tick");
      } catch (const io_error&) {
        ++writes;
      }
    }
  };
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream one = co_await tcp_stream::connect(listener.local());
    { tcp_stream gone = co_await listener.accept(); }
    rt.spawn(other());
    rt.spawn(writer(std::move(one)));
  };
  runtime_options alone = options();
  alone.workers = 1;
  runtime rt(alone);
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(turns, others_turns);
  EXPECT_LT(writes, writes_max);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_storm);

}  // namespace troupe::test
