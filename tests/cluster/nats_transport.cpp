// The transport over NATS when its server is killed, started again, refuses us, or is not there.
#include "cluster/transport/nats_transport.hpp"

#include <atomic>

#include "cluster/transports.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::transport;

class cluster_nats_transport : public transport_fixture {
 protected:
  template <class Does>
  static task<> apart(Does does) {
    auto later = blocking(std::move(does));
    co_await std::move(later);
  }
  static task<> wait_for(const transport& one, bool connected) {
    // sleeps: until a task of the connection has seen it
    while (one.is_connected() != connected) co_await sleep_for(1ms);
  }
};

TEST_P(cluster_nats_transport, a_server_that_is_killed_and_started_anew_serves_again) {
  with([this](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    const auto came = channel<std::string>::unbounded();
    co_await take(*to, "silent", into(came));
    co_await take(*to, "echo", answering(*to));
    std::vector<future<std::string>> asked;
    for (int i = 0; i < 10; ++i) asked.push_back(spawn(outcome_of(by->request("silent", "x"))));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(co_await next_of(came), "x");
    const auto kill = [this] { server->kill(); };
    co_await apart(kill);
    for (future<std::string>& one : asked) EXPECT_EQ(co_await std::move(one), "lost");
    co_await wait_for(*by, false);
    co_await wait_for(*to, false);
    const auto start = [this] { server->start(); };
    co_await apart(start);
    co_await wait_for(*to, true);
    // Until the server knows again who takes it, which comes right after the connection.
    std::string got;
    while ((got = co_await outcome_of(by->request("echo", "y"))) == "unreachable") {
    }
    EXPECT_EQ(got, "ok re:y");
  });
}

TEST_P(cluster_nats_transport, each_call_ends_while_a_server_comes_and_goes) {
  with([this](test_network& nodes) -> task<> {
    const transport_ptr by = nodes.node("by"), to = nodes.node("to");
    std::atomic<int> last{-1};
    const auto rising = [&last](incoming one) -> task<> {
      const int number = std::stoi(one.bytes);
      EXPECT_GT(number, last);  // in order, at most once
      last = number;
      co_return;
    };
    co_await take(*to, "numbers", rising);
    co_await take(*to, "echo", answering(*to));
    std::atomic<bool> stops{false};
    std::atomic<int> answered{0};
    const auto asks = [&answered](transport& from, std::atomic<bool>* stop) -> task<> {
      while (!*stop) {
        const std::string got = co_await outcome_of(from.request("echo", "x"));
        EXPECT_TRUE(got == "ok re:x" || got == "lost" || got == "unreachable") << got;
        answered += got == "ok re:x";
      }
    };
    const auto sends = [](transport& from, std::atomic<bool>* stop) -> task<> {
      for (int i = 0; !*stop; ++i) {
        EXPECT_EQ(co_await outcome_of(from.send("numbers", std::to_string(i))), "ok ");
        if (i % 100 == 0) co_await sleep_for(1ms);
      }
    };
    EXPECT_EQ(co_await outcome_of(by->request("echo", "x")), "ok re:x");  // it is connected
    std::vector<future<>> all;
    for (int i = 0; i < 8; ++i) all.push_back(spawn(asks(*by, &stops)));
    future<> sent = spawn(sends(*by, &stops));
    for (int i = 0; i < 3; ++i) {
      const int sent_before = last, answered_before = answered;
      const auto restart = [this] {
        server->kill();
        server->start();
      };
      co_await apart(restart);
      // sleeps: until something comes over the new connection
      while (last <= sent_before || answered <= answered_before) co_await sleep_for(1ms);
    }
    stops = true;
    for (future<>& one : all) co_await std::move(one);
    co_await std::move(sent);
    co_await to->close(false);
  });
}

TEST_P(cluster_nats_transport,
       a_server_that_is_not_there_is_unreachable_and_one_that_refuses_us_denies) {
  nats_server locked(
      "authorization { users = [ { user: ada, password: x, permissions: { subscribe: \"open.>\" "
      "} } ] }");
  runtime rt;
  const auto test = [](runtime& on, std::string with_password, std::string without,
                       std::string nowhere) -> task<> {
    const auto came = channel<std::string>::unbounded();
    const transport_ptr good = cluster::nats_transport(on, with_password);
    EXPECT_EQ(co_await outcome_of(take(*good, "open.a", into(came))), "ok ");
    EXPECT_EQ(co_await outcome_of(take(*good, "closed.a", into(came))), "denied");
    const transport_ptr stranger = cluster::nats_transport(on, without);
    EXPECT_EQ(co_await outcome_of(take(*stranger, "open.a", into(came))), "denied");
    const transport_ptr alone = cluster::nats_transport(on, nowhere);
    EXPECT_EQ(co_await outcome_of(alone->send("open.a", "x")), "unreachable");
    EXPECT_EQ(co_await outcome_of(alone->request("open.a", "x")), "unreachable");
    EXPECT_FALSE(alone->is_connected());
  };
  future<> done = rt.spawn(
      test(rt, locked.url("ada:x"), locked.url(), "127.0.0.1:" + std::to_string(free_port())));
  rt.run();
  done.get();
}

std::vector<transport_setting> with_servers() {
  std::vector<transport_setting> all = transport_settings();
  std::erase_if(all, [](const transport_setting& one) { return !one.over_nats; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(policies, cluster_nats_transport, testing::ValuesIn(with_servers()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
