// Nodes over a real server, each behind a proxy that delays, cuts one way and resets, while the
// server is killed and started again: what the transport promises holds all the time.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

#include "cluster/steered_proxy.hpp"
#include "cluster/transports.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::transport;

constexpr int node_count = 3;

// What happened in one run. Messages are "sender number".
class history {
 public:
  // What was on its way when a connection of the sender was lost may come late, but once.
  void take(int at, const std::string& text, bool in_order) {
    const std::size_t space = text.find(' ');
    const int from = std::stoi(text.substr(0, space)), number = std::stoi(text.substr(space + 1));
    std::lock_guard held(mutex_);
    std::set<int>& taken = taken_[{from, at}];
    const bool is_last = taken.empty() || *taken.rbegin() < number;
    EXPECT_TRUE(is_last || !in_order) << from << " to " << at << ": " << number;
    EXPECT_TRUE(taken.insert(number).second) << from << " to " << at << ": " << number << " twice";
    late += !is_last;
  }
  void run(const std::string& ask) {
    std::lock_guard held(mutex_);
    EXPECT_TRUE(ran_.insert(ask).second) << ask << " ran twice";
  }
  void refused(const std::string& ask) {
    std::lock_guard held(mutex_);
    refused_.push_back(ask);
  }
  void check() {
    std::lock_guard held(mutex_);
    for (const std::string& one : refused_) EXPECT_FALSE(ran_.contains(one)) << one;
    EXPECT_GT(ran_.size(), 0u);
    EXPECT_EQ(taken_.size(), static_cast<std::size_t>(node_count * (node_count - 1)));
  }
  std::atomic<int> answered{0}, unanswered{0}, late{0};

 private:
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::set<int>> taken_;
  std::set<std::string> ran_;
  std::vector<std::string> refused_;
};

struct proxied_node {
  explicit proxied_node(std::uint16_t port) : proxy(port) {}
  steered_proxy proxy;
  transport_ptr by;
};
using nodes_of_test = std::vector<std::unique_ptr<proxied_node>>;

std::string sent_to(int node) { return "sent." + std::to_string(node); }
std::string asks_of(int node) { return "asks." + std::to_string(node); }

task<> begin_node(runtime& rt, const nodes_of_test& nodes, int id, history& seen) {
  proxied_node& one = *nodes[static_cast<std::size_t>(id)];
  one.proxy.start();
  nats::options quick;
  quick.reconnect_delay = 5ms, quick.reconnect_delay_max = 50ms, quick.connect_timeout = 500ms;
  quick.ping_interval = 200ms;
  cluster::window_options narrow;
  narrow.messages = 64;
  one.by = cluster::windowed(rt, cluster::nats_transport(rt, one.proxy.url(), quick), narrow);
  const auto takes = [id, &seen, &nodes](incoming got) -> task<> {
    const std::size_t from = static_cast<std::size_t>(got.bytes[0] - '0');
    seen.take(id, got.bytes, nodes[from]->proxy.connections() == 1);
    co_return;
  };
  transport& by = *one.by;
  const auto answers = [&by, &seen](incoming got) -> task<> {
    seen.run(got.bytes);
    task<> answer = by.answer(std::move(got.reply), "re:" + got.bytes);
    co_await std::move(answer);
  };
  co_await take(by, sent_to(id), takes);
  co_await take(by, asks_of(id), answers);
}

task<> send_until(transport& by, int from, int to, const std::atomic<bool>& stops) {
  for (int i = 0; !stops; ++i) {
    task<> sends = by.send(sent_to(to), std::to_string(from) + " " + std::to_string(i));
    co_await std::move(sends);
    if (i % 16 == 0) co_await sleep_for(1ms);
  }
}
task<> ask_until(transport& by, int from, int to, const std::atomic<bool>& stops, history& seen) {
  for (int i = 0; !stops; ++i) {
    const std::string text =
        std::to_string(from) + ">" + std::to_string(to) + " " + std::to_string(i);
    const auto asks = [&] { return by.request(asks_of(to), text); };
    const std::string got = co_await outcome_of(with_deadline(500ms, asks));
    if (got == "unreachable") seen.refused(text);
    EXPECT_TRUE(got == "ok re:" + text || got == "unreachable" || got == "lost" ||
                got == "timed_out")
        << got;
    ++(got.starts_with("ok") ? seen.answered : seen.unanswered);
  }
}

// One fault after the other, each on its own and some together.
task<> disturb(const nodes_of_test& nodes, nats_server& server, std::chrono::nanoseconds span) {
  std::minstd_rand random(std::random_device{}());
  const auto until = now() + span;
  while (now() < until) {
    steered_proxy& one = nodes[random() % nodes.size()]->proxy;
    const unsigned what = static_cast<unsigned>(random() % 6);
    if (what == 0) one.hold(true, false);
    if (what == 1) one.hold(false, true);
    if (what == 2) one.hold(true, true);
    if (what == 3) one.reset();
    if (what == 4) one.delay(std::chrono::microseconds(random() % 5'000));
    if (what == 5) {
      auto restart = [&server] {
        server.kill();
        server.start();
      };
      auto restarts = blocking(std::move(restart));
      co_await std::move(restarts);
    }
    // sleeps: a fault takes its time
    co_await sleep_for(std::chrono::milliseconds(20 + random() % (what < 3 ? 900 : 100)));
    if (random() % 4 != 0) one.hold(false, false);
  }
  for (const auto& one : nodes) one->proxy.hold(false, false), one->proxy.delay(0us);
}

// With all lines whole again each node reaches each other, and no window is full for good.
task<> reach_all(const nodes_of_test& nodes) {
  for (int from = 0; from < node_count; ++from) {
    transport& by = *nodes[static_cast<std::size_t>(from)]->by;
    for (int to = 0; to < node_count; ++to) {
      std::string got;
      for (int i = 0; !got.starts_with("ok"); ++i) {
        const std::string text =
            "at last " + std::to_string(from) + std::to_string(to) + " " + std::to_string(i);
        const auto asks = [&] { return by.request(asks_of(to), text); };
        got = co_await outcome_of(with_deadline(1s, asks));
        if (got == "unreachable") co_await sleep_for(5ms);  // sleeps: until it subscribes again
      }
    }
  }
}

task<> run_all(runtime& rt, nats_server& server, std::chrono::nanoseconds span) {
  history seen;
  nodes_of_test nodes;
  for (int id = 0; id < node_count; ++id)
    nodes.push_back(std::make_unique<proxied_node>(static_cast<std::uint16_t>(server.port())));
  for (int id = 0; id < node_count; ++id) co_await begin_node(rt, nodes, id, seen);
  std::atomic<bool> stops{false};
  std::vector<future<>> all;
  for (int from = 0; from < node_count; ++from) {
    transport& by = *nodes[static_cast<std::size_t>(from)]->by;
    for (int to = 0; to < node_count; ++to) {
      if (from != to) all.push_back(spawn(send_until(by, from, to, stops)));
      all.push_back(spawn(ask_until(by, from, to, stops, seen)));
    }
  }
  co_await disturb(nodes, server, span);
  co_await reach_all(nodes);
  stops = true;
  for (future<>& one : all) co_await std::move(one);
  for (const auto& one : nodes) co_await one->by->close(false);
  for (const auto& one : nodes) co_await one->proxy.join();
  seen.check();
  std::printf("%d asks were answered and %d not; %d messages came late\n", seen.answered.load(),
              seen.unanswered.load(), seen.late.load());
}

TEST(cluster_proxied, promises_hold_while_lines_and_servers_fail) {
  if (!nats_server::is_installed()) GTEST_SKIP() << "needs nats-server";
  nats_server server;
  runtime_options chosen;
  chosen.workers = 2;
  runtime rt(chosen);
  const std::chrono::seconds span(std::getenv("TROUPE_DEEP") != nullptr ? 120 : 5);
  future<> done = rt.spawn(run_all(rt, server, span));
  rt.run();
  done.get();
}

}  // namespace
}  // namespace troupe::test
