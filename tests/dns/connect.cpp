// connect(): a connection to the address of a host that answers first.
#include <array>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "troupe/dns/connect.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class dns_connect : public io_conformance {};

std::vector<io_setting> connect_settings() {
  std::vector<io_setting> all{{{policy::work_stealing, 2, 1}, io_backend::epoll},
                              {{policy::work_stealing, 2, 1}, io_backend::io_uring}};
  for (const std::uint64_t seed : {1u, 2u, 3u})
    all.push_back({{policy::simulated, 1, seed}, io_backend::simulated});
  return all;
}

endpoint v6(std::uint16_t port) { return endpoint::loopback_v6(port); }
endpoint v4(std::uint16_t port) { return endpoint::loopback(port); }

// A listener for each family, at the same port. The system chooses the port, and it may be taken in
// the other family.
struct two_listeners {
  tcp_listener six, four;
  explicit two_listeners(const listen_options& of_six = {}) {
    while (!four.is_open()) {
      six = tcp_listener::listen(v6(0), of_six);
      try {
        four = tcp_listener::listen(v4(six.local().port()));
      } catch (const io_error& e) {
        if (e.code() != std::errc::address_in_use) throw;
      }
    }
  }
  std::uint16_t port() const { return six.local().port(); }
};

TEST_P(dns_connect, what_is_refused_is_followed_by_the_next_at_once) {
  auto use = [this]() -> task<> {
    two_listeners both;
    const std::uint16_t port = both.port();
    both.six.close();
    const std::chrono::nanoseconds began = now();
    tcp_stream peer = co_await connect("localhost", port).timeout(20s);
    if (!threaded()) {
      EXPECT_LT(now() - began, dns::attempt_delay);
    }
    EXPECT_EQ(peer.peer(), v4(port));
    std::vector<endpoint> all{v4(1), v6(1), v4(2), v6(port), v4(port)};
    tcp_stream other = co_await connect(std::move(all)).timeout(20s);
    EXPECT_EQ(other.peer(), v4(port));
  };
  run(use());
}

TEST_P(dns_connect, of_two_that_answer_it_is_the_one_of_ipv6) {
  auto use = []() -> task<> {
    const two_listeners both;
    const std::uint16_t port = both.port();
    tcp_stream peer = co_await connect("localhost", port);
    EXPECT_EQ(peer.peer(), v6(port));
    std::vector<endpoint> alone{v4(port)};
    tcp_stream other = co_await connect(std::move(alone));
    EXPECT_EQ(other.peer(), v4(port));
  };
  run(use());
}

// A listener whose queue is full does not answer.
TEST_P(dns_connect, what_does_not_answer_is_tried_beside_the_next) {
  if (!threaded()) GTEST_SKIP() << "needs threads: who listens in the simulation answers";
  auto use = []() -> task<> {
    listen_options narrow;
    narrow.backlog = 0;
    const two_listeners listeners(narrow);
    const std::uint16_t port = listeners.port();
    std::vector<tcp_stream> waiting;
    bool full = false;
    while (!full) {
      try {
        tcp_stream one = co_await tcp_stream::connect(v6(port)).timeout(1s);
        waiting.push_back(std::move(one));
      } catch (const timed_out&) {
        full = true;
      }
    }
    bool late = false;
    try {
      std::vector<endpoint> both{v6(port), v6(port)};
      tcp_stream never = co_await connect(std::move(both)).timeout(20ms);
    } catch (const timed_out&) {
      late = true;
    }
    EXPECT_TRUE(late);
    const std::chrono::nanoseconds began = now();
    tcp_stream peer = co_await connect("localhost", port).timeout(20s);
    const std::chrono::nanoseconds took = now() - began;
    EXPECT_EQ(peer.peer(), v4(port));
    EXPECT_GE(took, dns::attempt_delay);
    EXPECT_LT(took, 10s);
  };
  run(use());
}

TEST_P(dns_connect, when_none_answers_the_error_says_why) {
  auto use = []() -> task<> {
    std::errc why{};
    try {
      tcp_stream never = co_await connect("localhost", 1).timeout(20s);
    } catch (const io_error& e) {
      why = static_cast<std::errc>(e.code().value());
    }
    EXPECT_EQ(why, std::errc::connection_refused);
    std::stop_source source;
    source.request_stop();
    bool was_cancelled = false;
    try {
      tcp_stream never = co_await connect("localhost", 1).stop(source.get_token());
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    EXPECT_TRUE(was_cancelled);
    bool refused = false;
    try {
      std::vector<endpoint> none;
      tcp_stream never = co_await connect(std::move(none));
    } catch (const option_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  };
  run(use());
}

INSTANTIATE_TEST_SUITE_P(backends, dns_connect, ::testing::ValuesIn(connect_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
