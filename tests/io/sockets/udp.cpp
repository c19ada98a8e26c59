// UDP: datagrams arrive whole, with their sender; each limit has its own result.
#include <set>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_udp : public io_conformance {};

task<> answer(udp_socket socket, int count) {
  std::array<char, 100> buffer;
  for (int i = 0; i < count; ++i) {
    const datagram came = co_await socket.receive(buffer);
    co_await socket.send(std::string_view(buffer.data(), came.bytes), came.from);
  }
}

// Returns the error that an operation throws.
template <class Awaitable>
task<std::errc> error_of(Awaitable operation) {
  std::errc found{};
  try {
    co_await std::move(operation);
  } catch (const io_error& e) {
    found = static_cast<std::errc>(e.code().value());
  }
  co_return found;
}

TEST_P(io_udp, what_is_answered_is_what_was_sent) {
  int right = 0;
  runtime rt(options());
  auto ask = [](runtime& runs, int& matching) -> task<> {
    auto server = udp_socket::bind(endpoint::loopback(0));
    const endpoint at = server.local();
    runs.spawn(answer(std::move(server), 20));
    auto client = udp_socket::bind(endpoint::loopback(0));
    std::array<char, 100> buffer;
    for (int i = 0; i < 20; ++i) {
      const std::string sent(static_cast<std::size_t>(i), 'x');
      co_await client.send(sent, at);
      const datagram got = co_await client.receive(buffer);
      matching +=
          std::string_view(buffer.data(), got.bytes) == sent && got.from == at && !got.truncated
              ? 1
              : 0;
    }
  };
  rt.spawn(ask(rt, right));
  rt.run();
  EXPECT_EQ(right, 20);
}

TEST_P(io_udp, many_come_each_once) {
  constexpr int count = 100;
  std::set<std::string> got;
  runtime rt(options());
  auto both = [](runtime& runs, std::set<std::string>& seen) -> task<> {
    auto server = udp_socket::bind(endpoint::loopback(0));
    auto sender = [](endpoint to) -> task<> {
      auto socket = udp_socket::connect(to);
      for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        co_await socket.send(number);
      }
    };
    runs.spawn(sender(server.local()));
    std::array<char, 10> buffer;
    for (int i = 0; i < count; ++i) {
      const datagram came = co_await server.receive(buffer).timeout(10s);
      seen.emplace(buffer.data(), came.bytes);
    }
  };
  rt.spawn(both(rt, got));
  rt.run();
  EXPECT_EQ(got.size(), count);
}

TEST_P(io_udp, what_does_not_fit_is_said_to_be_cut) {
  bool cut = false, whole = false;
  std::string head;
  runtime rt(options());
  auto both = [](bool& was_cut, bool& was_whole, std::string& began) -> task<> {
    auto here = udp_socket::bind(endpoint::loopback(0));
    std::array<char, 4> buffer;
    co_await here.send("abcdef", here.local());
    const datagram first = co_await here.receive(buffer);
    was_cut = first.truncated;
    began = std::string(buffer.data(), first.bytes);
    co_await here.send("wxyz", here.local());
    const datagram second = co_await here.receive(buffer);
    was_whole = !second.truncated && second.bytes == 4;
  };
  rt.spawn(both(cut, whole, head));
  rt.run();
  EXPECT_TRUE(cut);
  EXPECT_EQ(head, "abcd");
  EXPECT_TRUE(whole);
}

TEST_P(io_udp, limits_have_their_own_answers) {
  runtime rt(options());
  auto use = [](bool real) -> task<> {
    auto here = udp_socket::bind(endpoint::loopback(0));
    const std::string huge(70'000, 'x');
    const std::errc too_long = co_await error_of(here.send(huge, here.local()));
    EXPECT_EQ(too_long, std::errc::message_size);
    const std::errc to_nobody = co_await error_of(here.send("x"));
    EXPECT_EQ(to_nobody, std::errc::destination_address_required);
    EXPECT_THROW(udp_socket::bind(here.local()), io_error);
    std::array<char, 4> buffer;
    bool was_late = false, was_cancelled = false;
    try {
      co_await here.receive(buffer).timeout(1ms);
    } catch (const timed_out&) {
      was_late = true;
    }
    EXPECT_TRUE(was_late);
    std::stop_source source;
    source.request_stop();
    try {
      co_await here.receive(buffer).stop(source.get_token());
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    EXPECT_TRUE(was_cancelled);
    if (!real) co_return;
    // The machine reports when no socket is bound to a port of its own.
    const endpoint gone = udp_socket::bind(endpoint::loopback(0)).local();
    auto peer = udp_socket::connect(gone);
    co_await peer.send("x");
    const std::errc refused = co_await error_of(peer.receive(buffer));
    EXPECT_EQ(refused, std::errc::connection_refused);
  };
  rt.spawn(use(threaded()));
  rt.run();
}

TEST_P(io_udp, who_has_a_peer_hears_nobody_else) {
  std::string got;
  runtime rt(options());
  auto use = [](std::string& heard) -> task<> {
    auto peer = udp_socket::bind(endpoint::loopback(0));
    auto stranger = udp_socket::bind(endpoint::loopback(0));
    auto here = udp_socket::connect(peer.local());
    co_await stranger.send("stranger", here.local());
    co_await peer.send("peer", here.local());
    std::array<char, 20> buffer;
    const datagram came = co_await here.receive(buffer);
    heard = std::string(buffer.data(), came.bytes);
  };
  rt.spawn(use(got));
  rt.run();
  EXPECT_EQ(got, "peer");
}

TEST_P(io_udp, closing_ends_a_wait_and_a_weak_one_keeps_nobody) {
  bool was_cancelled = false;
  runtime rt(options());
  auto wait = [](udp_socket& on, bool* ended) -> task<> {
    std::array<char, 4> buffer;
    try {
      co_await on.receive(buffer);
    } catch (const cancelled&) {
      *ended = true;
    }
  };
  auto close = [](udp_socket& on) -> task<> {
    co_await sleep_for(1ms);
    on.close();
  };
  // Both are branches of one task: a socket is used by one turn at a time.
  auto use = [wait, close](bool& ended) -> task<> {
    auto here = udp_socket::bind(endpoint::loopback(0));
    co_await when_all(wait(here, &ended), close(here));
  };
  rt.spawn(use(was_cancelled));
  auto hear = []() -> task<> {
    udp_options weak;
    weak.weak = true;
    auto here = udp_socket::bind(endpoint::loopback(0), weak);
    std::array<char, 4> buffer;
    co_await here.receive(buffer);
  };
  rt.spawn(hear());
  rt.run();
  EXPECT_TRUE(was_cancelled);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_udp);

}  // namespace troupe::test
