// What arrives before it is asked for: connections that no accept awaits, bytes behind a leased
// read.
#include "io/reactor/make_reactor.hpp"
#include "io/reactor/reactor.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_ahead : public io_conformance {};

std::size_t leased() { return io::reactor::current()->buffers->leased(); }

// Sends more than two reads take, and reads all of it.
task<> flood(tcp_stream& from, tcp_stream& to) {
  constexpr std::size_t all = 20'000;
  std::size_t came = 0;
  auto writes = [&from]() -> task<> { co_await from.write_all(std::string(all, 'f')); };
  auto reads = [&to, &came]() -> task<> {
    co_await sleep_for(100us);
    while (came < all) came += (co_await to.read_some()).size();
  };
  co_await when_all(writes(), reads());
}

TEST_P(io_ahead, connections_that_nobody_takes_wait_in_the_system_and_none_is_lost) {
  constexpr int count = 1'000, at_once = 25;
  int taken = 0;
  const int before = open_files();
  {
    auto program = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      std::vector<tcp_stream> clients;
      const int base = open_files();
      clients.push_back(co_await tcp_stream::connect(listener.local()));
      { tcp_stream first = co_await listener.accept(); }
      for (int i = 1; i < count; ++i) {
        clients.push_back(co_await tcp_stream::connect(listener.local()));
        if (i % at_once == 0) co_await sleep_for(1ms);
      }
      co_await sleep_for(5ms);
      EXPECT_LE(open_files() - base, threaded() ? count : 0);
      for (taken = 1; taken < count; ++taken) {
        tcp_stream one = co_await listener.accept().timeout(10s);
      }
    };
    runtime rt(options());
    rt.spawn(program());
    rt.run();
  }
  EXPECT_EQ(taken, count);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_ahead, connections_that_wait_are_closed_with_the_listener) {
  const int before = open_files();
  int ended = 0;
  constexpr int count = 10;
  {
    auto program = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      std::vector<tcp_stream> clients;
      for (int i = 0; i < count; ++i)
        clients.push_back(co_await tcp_stream::connect(listener.local()));
      { tcp_stream first = co_await listener.accept(); }
      co_await sleep_for(2ms);
      listener.close();
      std::array<char, 1> none;
      for (tcp_stream& one : clients) {
        try {
          const std::size_t bytes = co_await one.read(none).timeout(10s);
          ended += bytes == 0 ? 1 : 0;
        } catch (const io_error&) {
          ++ended;  // the connection was reset
        }
      }
    };
    runtime rt(options());
    rt.spawn(program());
    rt.run();
  }
  EXPECT_EQ(ended, count);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_ahead, a_timeout_that_meets_a_connection_loses_none) {
  const int before = open_files();
  int came = 0;
  constexpr int rounds = 60;
  {
    auto program = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      auto connects = [&]() -> task<> {
        for (int i = 0; i < rounds; ++i) {
          tcp_stream peer = co_await tcp_stream::connect(listener.local());
          co_await sleep_for(std::chrono::microseconds(100 + 37 * (i % 7)));
        }
      };
      auto accepts = [&]() -> task<> {
        while (came < rounds) {
          try {
            tcp_stream peer = co_await listener.accept().timeout(150us);
            ++came;
          } catch (const timed_out&) {
          }
        }
      };
      co_await when_all(connects(), accepts());
    };
    runtime rt(options());
    rt.spawn(program());
    rt.run();
  }
  EXPECT_EQ(came, rounds);
  EXPECT_EQ(open_files(), before);
}

// A peer sends faster than its reader reads, and more than is kept ahead. All kinds of reads take
// turns.
TEST_P(io_ahead, a_slow_reader_gets_all_bytes_in_order) {
  std::string all, back;
  for (int i = 0; i < 300; ++i)
    all += std::to_string(i * 7919) + std::string(static_cast<std::size_t>(i), 'x');
  std::size_t left = 1;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream served = co_await listener.accept();
    auto writes = [&]() -> task<> {
      for (std::size_t at = 0; at < all.size();) {
        const std::size_t bytes = std::min<std::size_t>(all.size() - at, 1 + at % 333);
        co_await served.write_all(std::string_view(all).substr(at, bytes));
        at += bytes;
        if (at % 5 == 0) co_await yield();
      }
      served.close();
    };
    auto reads = [&]() -> task<> {
      std::array<char, 100> few;
      for (int i = 0;; ++i) {
        if (i % 50 == 1) co_await sleep_for(3ms);
        if (i % 3 == 0) {
          const io_buffer came = co_await peer.read_some();
          if (came.empty()) break;
          back += came.text();
        } else if (i % 3 == 1) {
          const std::size_t bytes = co_await peer.read(few);
          if (bytes == 0) break;
          back.append(few.data(), bytes);
        } else {
          try {
            co_await peer.read_exact(few);
            back.append(few.data(), few.size());
          } catch (const end_of_stream& e) {
            back.append(few.data(), e.bytes());
            break;
          }
        }
      }
      EXPECT_TRUE((co_await peer.read_some()).empty());  // a second read sees the end, too
    };
    co_await when_all(writes(), reads());
    left = leased();
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  EXPECT_EQ(back, all);
  EXPECT_EQ(left, 0u);
}

TEST_P(io_ahead, bytes_that_nobody_reads_go_with_their_stream) {
  const int before = open_files();
  std::size_t left = 1;
  {
    auto program = [&]() -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      for (int i = 0; i < 10; ++i) {
        tcp_stream peer = co_await tcp_stream::connect(listener.local());
        tcp_stream served = co_await listener.accept();
        co_await flood(served, peer);
        for (int n = 0; n < 5; ++n) {
          co_await served.write_all("more");
          co_await sleep_for(100us);
        }
      }
      for (int i = 0; leased() != 0 && i < 1'000; ++i) co_await sleep_for(100us);
      left = leased();
    };
    runtime rt(options());
    rt.spawn(program());
    rt.run();
  }
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_ahead, streams_and_listeners_may_outlive_their_runtime) {
  const int before = open_files();
  {
    tcp_listener listener;
    std::vector<tcp_stream> clients;
    tcp_stream served;
    auto program = [&]() -> task<> {
      listener = tcp_listener::listen(endpoint::loopback(0));
      for (int i = 0; i < 3; ++i) clients.push_back(co_await tcp_stream::connect(listener.local()));
      served = co_await listener.accept();
      co_await flood(served, clients[0]);
      co_await served.write_all("unread");
      co_await sleep_for(1ms);
    };
    {
      runtime rt(options());
      rt.spawn(program());
      rt.run();
    }
    clients.pop_back();
  }
  EXPECT_EQ(open_files(), before);
}

// The system reuses a descriptor's number at once. Bytes for the old descriptor must not reach the
// new one.
TEST_P(io_ahead, what_was_on_its_way_to_a_closed_stream_does_not_reach_its_successor) {
  int number_again = 0;
  constexpr int rounds = 30;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < rounds; ++i) {
      tcp_stream peer = co_await tcp_stream::connect(listener.local());
      tcp_stream served = co_await listener.accept();
      co_await flood(served, peer);
      co_await served.write_all("for the old one");
      if (i % 2 == 0) co_await yield();
      const int number = peer.fd();
      peer.close();
      tcp_stream next = co_await tcp_stream::connect(listener.local());
      tcp_stream other = co_await listener.accept();
      number_again += next.fd() == number || other.fd() == number ? 1 : 0;
      co_await other.write_all("new");
      const io_buffer first = co_await next.read_some();
      EXPECT_EQ(first.text(), std::string_view("new").substr(0, first.size()));
    }
  };
  runtime rt(options());
  rt.spawn(program());
  rt.run();
  EXPECT_GT(number_again, 0);
}

// When many buffers are leased, a read is only told that it is due. Before its turn comes, buffers
// come back and more bytes arrive.
TEST_P(io_ahead, a_read_that_is_due_is_told_so_once) {
  if (!threaded() || GetParam().on.workers != 1)
    GTEST_SKIP() << "needs one worker: another one looks for events";
  std::string text;
  auto reads = [&text](tcp_stream from) -> task<> {
    for (;;) {
      const io_buffer came = co_await from.read_some();
      if (came.empty()) break;
      text += came.text();
    }
  };
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    rt.spawn(reads(co_await listener.accept()));
    io::reactor& events = *io::reactor::current();
    while (events.count().in_flight == 0) co_await yield();
    std::vector<std::byte*> leases;
    for (unsigned i = 0; i < io::leases_ahead_most; ++i) leases.push_back(events.buffers->take());
    co_await peer.write_all("x");
    for (int i = 0; i < 3; ++i) events.drive();
    for (std::byte* one : leases) events.buffers->give(one);
    co_await peer.write_all("y");
    for (int i = 0; i < 3; ++i) events.drive();
    while (text.size() < 2) co_await yield();
    EXPECT_EQ(events.count().in_flight, 1u) << "it reads on";
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(text, "xy");
}

}  // namespace

TROUPE_IO_TEST_EACH(io_ahead);

}  // namespace troupe::test
