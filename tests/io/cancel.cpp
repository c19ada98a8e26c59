// Early ends: actors, the program and its runtime stop while operations are in flight.
#include <thread>

#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_cancel : public io_conformance {};

struct server {
  std::atomic<int>* ends;
  explicit server(std::atomic<int>* counts) : ends(counts) {}
  task<> accept_for_ever() {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    try {
      for (;;) {
        tcp_stream peer = co_await listener.accept();
      }
    } catch (const cancelled&) {
      ++*ends;
      throw;
    }
  }
};

TEST_P(io_cancel, the_stop_of_an_actor_cancels_and_joins_its_operations) {
  const int before = open_files();
  std::atomic<int> ends{0};
  {
    runtime rt(options());
    auto one = rt.spawn<server>(&ends);
    one.tell<&server::accept_for_ever>();
    rt.after(2ms, [one] { one.stop_now(); });
    rt.run();
    EXPECT_EQ(ends.load(), 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_cancel, a_stop_of_the_program_does_not_wait_for_operations) {
  const int before = open_files();
  std::atomic<int> ends{0};
  {
    runtime rt(options());
    for (int i = 0; i < 5; ++i) rt.spawn<server>(&ends).tell<&server::accept_for_ever>();
    rt.spawn<server>(on_main(), unchecked(&ends)).tell<&server::accept_for_ever>();
    rt.spawn<server>(pinned("lane"), unchecked(&ends)).tell<&server::accept_for_ever>();
    rt.after(2ms, [&rt] { rt.stop(); });
    rt.run();
    EXPECT_EQ(ends.load(), 0);
  }
  EXPECT_EQ(ends.load(), 7);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_cancel, a_weak_listener_does_not_keep_the_program_alive) {
  auto waits = [](tcp_listener listener) -> task<> {
    tcp_stream never = co_await listener.accept();
    ADD_FAILURE() << "nobody connects";
  };
  auto makes = [&waits](runtime& runs) -> task<> {
    listen_options weak;
    weak.weak = true;
    runs.spawn(waits(tcp_listener::listen(endpoint::loopback(0), weak)));
    co_return;
  };
  runtime rt(options());
  rt.spawn(makes(rt));
  rt.run();
}

// An accept is stopped or times out just as a connection comes: the connection is given to the task
// or closed, and never lost.
TEST_P(io_cancel, no_descriptor_is_lost_when_a_timeout_meets_a_connection) {
  const int before = open_files();
  {
    auto accepts = [](tcp_listener& listener, int& came, int rounds) -> task<> {
      for (int i = 0; i < rounds;) {
        try {
          tcp_stream peer = co_await listener.accept().timeout(std::chrono::microseconds(200));
          ++came;
          ++i;
        } catch (const timed_out&) {
        }
      }
    };
    auto connects = [](endpoint to, int rounds) -> task<> {
      for (int i = 0; i < rounds; ++i) {
        tcp_stream peer = co_await tcp_stream::connect(to);
        co_await sleep_for(std::chrono::microseconds(100 + 37 * (i % 7)));
      }
    };
    auto both = [&](runtime& runs, int& came) -> task<> {
      constexpr int rounds = 60;
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      runs.spawn(connects(listener.local(), rounds));
      co_await accepts(listener, came, rounds);
    };
    int came = 0;
    runtime rt(options());
    rt.spawn(both(rt, came));
    rt.run();
    EXPECT_EQ(came, 60);
  }
  EXPECT_EQ(open_files(), before);
}

// The system reuses a descriptor's number at once. An operation on the old descriptor must not
// reach the new one.
struct closes_what_is_read {
  static constexpr bool reentrant = true;
  tcp_stream mine;
  int waiting = 0, ended = 0, number_again = 0;

  task<> read() {
    std::array<char, 16> buffer;
    ++waiting;
    try {
      co_await mine.read(buffer);
      ADD_FAILURE() << "nobody writes";
    } catch (const cancelled&) {
      ++ended;
    }
    --waiting;
  }
  task<> go(int rounds) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < rounds; ++i) {
      mine = co_await tcp_stream::connect(listener.local());
      tcp_stream theirs = co_await listener.accept();
      self(this).tell<&closes_what_is_read::read>();
      while (waiting == 0) co_await yield();
      const int number = mine.fd();
      mine.close();
      tcp_stream next = co_await tcp_stream::connect(listener.local());
      tcp_stream other = co_await listener.accept();
      number_again += next.fd() == number || other.fd() == number ? 1 : 0;
      co_await other.write_all("for the new one");
      std::array<char, 15> text;
      co_await next.read_exact(text);
      EXPECT_EQ(std::string_view(text.data(), text.size()), "for the new one");
      while (waiting != 0) co_await yield();
    }
    EXPECT_EQ(ended, rounds);
    EXPECT_GT(number_again, 0);
  }
};

TEST_P(io_cancel, what_was_asked_of_a_closed_descriptor_does_not_reach_its_successor) {
  runtime rt(options());
  rt.spawn<closes_what_is_read>().tell<&closes_what_is_read::go>(20);
  rt.run();
}

TEST_P(io_cancel, streams_may_outlive_their_runtime) {
  const int before = open_files();
  {
    tcp_listener listener;
    tcp_stream one, two;
    auto makes = [](tcp_listener& at, tcp_stream& a, tcp_stream& b) -> task<> {
      at = tcp_listener::listen(endpoint::loopback(0));
      a = co_await tcp_stream::connect(at.local());
      b = co_await at.accept();
    };
    {
      runtime rt(options());
      rt.spawn(makes(listener, one, two));
      rt.run();
    }
    EXPECT_TRUE(one.is_open());
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_cancel);

}  // namespace troupe::test
