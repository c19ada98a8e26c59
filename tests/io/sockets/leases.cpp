// Leased buffers: a connection that waits holds none, no buffer is lost or held without end, and no
// bytes are lost.
#include "io/reactor/make_reactor.hpp"
#include "io/reactor/reactor.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// When many buffers are leased, reads wait for their turns: in these settings all reads do, or
// none.
struct lease_setting : io_setting {
  unsigned ahead = io::leases_ahead_most;
};
std::string name_of(const lease_setting& one) {
  return test::name_of(static_cast<const io_setting&>(one)) + (one.ahead == 0 ? "_in_turn" : "");
}
std::ostream& operator<<(std::ostream& out, const lease_setting& one) {
  return out << name_of(one);
}
std::vector<lease_setting> lease_settings() {
  std::vector<lease_setting> all;
  for (const io_setting& one : all_io_settings()) {
    all.push_back({one});
    if (one.by != io_backend::io_uring) all.push_back({one, 0});
  }
  return all;
}

class io_leases : public testing::TestWithParam<lease_setting> {
 protected:
  void SetUp() override {
    skip_other_policies(GetParam().on.policy);
    io::set_leases_ahead(GetParam().ahead);
  }
  void TearDown() override { io::set_leases_ahead(io::leases_ahead_most); }
  runtime_options options() const { return options_for(GetParam()); }
};

std::size_t leased() { return io::reactor::current()->buffers->leased(); }

task<> echo_leased(tcp_stream peer) {
  for (;;) {
    const io_buffer came = co_await peer.read_some();
    if (came.empty()) break;
    co_await peer.write_all(came.text());
  }
}

task<> send(tcp_stream& to, std::string_view all) {
  co_await to.write_all(all);
  to.shutdown_write();
}

std::string many_bytes(std::size_t count) {
  std::string all(count, '\0');
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return all;
}

TEST_P(io_leases, bytes_come_in_order_and_the_end_is_empty) {
  const std::string all = many_bytes(100'000);
  std::string back;
  std::size_t left = 1;
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    rt.spawn(echo_leased(std::move(served)));
    auto sending = [&]() -> task<> { return send(peer, all); };
    auto reading = [&]() -> task<> {
      for (;;) {
        const io_buffer came = co_await peer.read_some();
        EXPECT_LE(came.size(), io_buffer::bytes_max);
        if (came.empty()) break;
        back += came.text();
      }
    };
    co_await when_all(sending(), reading());
    left = leased();
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(back, all);
  EXPECT_EQ(left, 0u);
}

TEST_P(io_leases, a_pipe_leases_as_a_socket_does) {
  std::string back;
  auto program = [&]() -> task<> {
    auto ends = pipe_stream::make();
    auto writing = [&]() -> task<> {
      co_await sleep_for(1ms);
      co_await ends.second.write_all("through a pipe");
      ends.second.close();
    };
    auto reading = [&]() -> task<> {
      for (;;) {
        const io_buffer came = co_await ends.first.read_some();
        if (came.empty()) break;
        back += came.text();
      }
    };
    co_await when_all(writing(), reading());
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  EXPECT_EQ(back, "through a pipe");
}

// Both kinds of reads may take turns on one stream.
TEST_P(io_leases, reads_with_and_without_a_lease_share_a_stream) {
  std::string back;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    const std::string all = many_bytes(20'000);
    auto sending = [&]() -> task<> { return send(served, all); };
    auto reading = [&]() -> task<> {
      for (bool leases = true;; leases = !leases) {
        std::array<char, 100> few;
        if (leases) {
          const io_buffer came = co_await peer.read_some();
          if (came.empty()) break;
          back += came.text();
        } else {
          const std::size_t bytes = co_await peer.read(few);
          if (bytes == 0) break;
          back.append(few.data(), bytes);
        }
      }
    };
    co_await when_all(sending(), reading());
    EXPECT_EQ(back, all);
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
}

TEST_P(io_leases, connections_that_wait_hold_no_buffer) {
  constexpr std::size_t count = 40;
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    std::vector<tcp_stream> peers;
    for (std::size_t i = 0; i < count; ++i) {
      peers.push_back(co_await tcp_stream::connect(listener.local()));
      tcp_stream served = co_await listener.accept();
      rt.spawn(echo_leased(std::move(served)));
    }
    std::array<char, 4> back;
    for (tcp_stream& one : peers) {
      co_await one.write_all("ping");
      co_await one.read_exact(back);
    }
    // Each answer was written before its buffer was given back.
    for (int i = 0; leased() != 0 && i < 10'000; ++i) co_await sleep_for(100us);
    EXPECT_EQ(leased(), 0u);
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
}

TEST_P(io_leases, what_meets_a_timeout_is_given_or_still_to_be_read) {
  constexpr std::size_t pieces = 60;
  std::size_t came = 0, left = 1;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    auto writing = [&]() -> task<> {
      for (std::size_t i = 0; i < pieces; ++i) {
        co_await served.write_all("0123456789");
        co_await sleep_for(std::chrono::microseconds(100 + 37 * (i % 7)));
      }
      served.shutdown_write();
    };
    auto reading = [&]() -> task<> {
      for (;;) {
        try {
          const io_buffer part = co_await peer.read_some().timeout(std::chrono::microseconds(150));
          if (part.empty()) break;
          came += part.size();
        } catch (const timed_out&) {
        }
      }
    };
    co_await when_all(writing(), reading());
    left = leased();
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  EXPECT_EQ(came, pieces * 10);
  EXPECT_EQ(left, 0u);
}

// The read of the whole meets its time limit when only a part comes, and the part is not lost.
TEST_P(io_leases, a_whole_read_of_which_a_part_came_times_out) {
  bool ended = false;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    co_await served.write_all("a part");
    std::array<char, 100> all{};
    try {
      co_await peer.read_exact(all).timeout(10ms);
    } catch (const timed_out&) {
      ended = true;
    }
    EXPECT_EQ(std::string_view(all.data(), 6), "a part");
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  EXPECT_TRUE(ended);
}

TEST_P(io_leases, a_lease_outlives_its_stream_and_its_runtime) {
  const int before = open_files();
  io_buffer kept;
  {
    auto program = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      tcp_stream peer = co_await tcp_stream::connect(listener.local());
      tcp_stream served = co_await listener.accept();
      co_await peer.write_all("kept");
      kept = co_await served.read_some();
    };
    runtime rt(options());
    rt.spawn(program());
    rt.run();
  }
  EXPECT_EQ(kept.text(), std::string_view("kept").substr(0, kept.size()));
  EXPECT_FALSE(kept.empty());
  kept.reset();
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(open_files(), before);
}

// The stop comes at any moment: before the bytes, with them, or after them.
TEST_P(io_leases, nothing_is_leased_for_ever_when_readers_are_stopped) {
  std::size_t left = 1;
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < 30; ++i) {
      tcp_stream peer = co_await tcp_stream::connect(listener.local());
      tcp_stream served = co_await listener.accept();
      std::stop_source end;
      auto reads = [](tcp_stream from, std::stop_token stop) -> task<> {
        try {
          for (;;) {
            const io_buffer came = co_await from.read_some().stop(stop);
            if (came.empty()) break;
          }
        } catch (const cancelled&) {
        }
      };
      rt.spawn(reads(std::move(served), end.get_token()));
      co_await peer.write_all("x");
      if (i % 3 == 0) co_await yield();
      if (i % 3 == 1) co_await sleep_for(std::chrono::microseconds(20 * i));
      end.request_stop();
    }
    for (int i = 0; leased() != 0 && i < 10'000; ++i) co_await sleep_for(100us);
    left = leased();
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(left, 0u);
}

// A task that holds many buffers gets more: no read waits for a buffer of another task.
TEST_P(io_leases, who_holds_many_is_given_more) {
  constexpr std::size_t most = 400;
  std::vector<io_buffer> held;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    for (std::size_t i = 0; i < most; ++i) {
      co_await peer.write_all(std::string(1, static_cast<char>('a' + i % 26)));
      held.push_back(co_await served.read_some());
    }
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  ASSERT_EQ(held.size(), most);
  for (std::size_t i = 0; i < most; ++i)
    EXPECT_EQ(held[i].text(), std::string(1, static_cast<char>('a' + i % 26)));
}

// Bytes that come for many connections at once are not leased faster than the connections have
// turns.
TEST_P(io_leases, few_are_leased_when_much_comes_at_once) {
  if (GetParam().by == io_backend::io_uring)
    GTEST_SKIP() << "needs epoll: a ring leases buffers as bytes arrive";
  constexpr std::size_t count = 300;
  std::size_t most = 0, answered = 0;
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    std::vector<tcp_stream> peers, served;
    for (std::size_t i = 0; i < count; ++i) {
      peers.push_back(co_await tcp_stream::connect(listener.local()));
      served.push_back(co_await listener.accept());
    }
    std::atomic<std::size_t> seen{0};
    auto reads = [&seen](tcp_stream from) -> task<> {
      const io_buffer came = co_await from.read_some();
      std::size_t now = leased(), before = seen.load();
      while (before < now && !seen.compare_exchange_weak(before, now)) {
      }
      co_await from.write_all(came.text());
    };
    std::vector<future<>> ends;
    for (tcp_stream& one : served) ends.push_back(rt.spawn(reads(std::move(one))));
    // Until all of them wait.
    while (io::reactor::current()->count().in_flight < count) co_await yield();
    // One byte, so that it cannot come in parts.
    for (tcp_stream& one : peers) co_await one.write_all("p");
    for (future<>& one : ends) co_await std::move(one);
    std::array<char, 1> back{};
    for (tcp_stream& one : peers) {
      co_await one.read_exact(back);
      answered += back[0] == 'p' ? 1 : 0;
    }
    most = seen;
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(answered, count);
  // Each worker may have one in its turn and may be about to lease one more, and the others do not
  // see the leases that it counts apart. In a simulation others may run between any two awaits, so
  // all may be leased.
  const std::size_t workers = options().workers;
  const std::size_t apart = io::buffer_pool::counted_apart_max * (workers - 1);
  const std::size_t bound = GetParam().ahead + apart + 2 * workers;
  EXPECT_LE(most, GetParam().on.policy == policy::simulated ? count : bound);
}

// The stream is closed, or the whole program ends, after a read was told that it is due and before
// its turn.
TEST_P(io_leases, a_stream_that_is_closed_ends_its_read) {
  std::size_t ended = 0, left = 1;
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < 20; ++i) {
      tcp_stream peer = co_await tcp_stream::connect(listener.local());
      tcp_stream served = co_await listener.accept();
      auto reading = [&]() -> task<> {
        try {
          const io_buffer came = co_await served.read_some();
          ended += came.empty() ? 0 : 1;
        } catch (const cancelled&) {
          ++ended;
        }
      };
      auto closing = [&]() -> task<> {
        co_await peer.write_all("x");
        if (i % 2 == 0) co_await yield();
        if (i % 5 == 0) co_await sleep_for(std::chrono::microseconds(10 * i));
        served.close();
      };
      co_await when_all(reading(), closing());
    }
    for (int i = 0; leased() != 0 && i < 10'000; ++i) co_await sleep_for(100us);
    left = leased();
    // The last read ends because its program does.
    auto last = [](runtime& of, tcp_stream from) -> task<> {  // outlives this coroutine
      for (;;) {
        const io_buffer came = co_await from.read_some();
        if (came.empty()) break;
        of.stop();
      }
    };
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    rt.spawn(last(rt, std::move(served)));
    for (int i = 0; i < 3; ++i) co_await peer.write_all("x");
    co_await sleep_for(1h);
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(ended, 20u);
  EXPECT_EQ(left, 0u);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(backends, io_leases, testing::ValuesIn(lease_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace troupe::test
