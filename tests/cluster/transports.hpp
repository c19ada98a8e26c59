// What the tests of transports share: each kind of transport under each policy that it has.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cluster/transport/nats_transport.hpp"
#include "cluster/transport/simulated_network.hpp"
#include "cluster/transport/windows.hpp"
#include "nats/nats_server.hpp"
#include "support/conformance.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {

using cluster::incoming;
using transport_ptr = std::unique_ptr<cluster::transport>;

// "ok" with the answer, the name of a failure, "timed_out" or "cancelled".
inline task<std::string> outcome_of(task<std::string> call) {
  try {
    const std::string got = co_await std::move(call);
    co_return "ok " + got;
  } catch (const cluster::error& failed) {
    co_return cluster::name_of(failed.kind());
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  }
}
inline task<std::string> outcome_of(task<> call) {
  const auto with_result = [](task<> of) -> task<std::string> {
    co_await std::move(of);
    co_return "";
  };
  return outcome_of(with_result(std::move(call)));
}

// Takers.
inline cluster::transport::taker into(channel<std::string> to) {
  return [to](incoming one) -> task<> {
    static_cast<void>(to.try_send(std::move(one.bytes)));
    co_return;
  };
}
// Answers with what has come, and a word before it.
inline cluster::transport::taker answering(cluster::transport& by, std::string word = "re:") {
  return [&by, word](incoming one) -> task<> {
    task<> answers = by.answer(std::move(one.reply), word + one.bytes);
    co_await std::move(answers);
  };
}
inline task<> take(cluster::transport& by, std::string subject, cluster::transport::taker to,
                   std::string queue = {}) {
  task<> takes = by.take(std::move(subject), std::move(queue), std::move(to));
  co_await std::move(takes);
}
inline task<std::string> next_of(channel<std::string> from) {
  auto waits = from.receive();
  std::optional<std::string> got = co_await std::move(waits);
  co_return got ? std::move(*got) : "end";
}

// The nodes of one test.
class test_network {
 public:
  test_network(runtime& on, const nats_server* server, bool has_windows = false)
      : on_(on), server_(server), has_windows_(has_windows) {}
  transport_ptr node(const std::string& name) const {
    transport_ptr made = bare_node(name);
    return has_windows_ ? cluster::windowed(on_, std::move(made), windows) : std::move(made);
  }
  bool has_windows() const noexcept { return has_windows_; }
  // Without windows.
  transport_ptr bare_node(const std::string& name) const {
    if (server_ == nullptr) return cluster::transport_of(net, on_, name);
    nats::options quick;
    quick.reconnect_delay = std::chrono::milliseconds(5);
    quick.reconnect_delay_max = std::chrono::milliseconds(50);
    return cluster::nats_transport(on_, server_->url(), quick);
  }
  cluster::simulated_network net;
  cluster::window_options windows;

 private:
  runtime& on_;
  const nats_server* const server_;
  const bool has_windows_;
};

struct transport_setting {
  setting at;
  bool over_nats = false, has_windows = false;
};
inline std::ostream& operator<<(std::ostream& out, const transport_setting& chosen) {
  return out << (chosen.over_nats ? "nats_" : "memory_") << (chosen.has_windows ? "windows_" : "")
             << name_of(chosen.at);
}
inline std::vector<transport_setting> transport_settings() {
  std::vector<transport_setting> all;
  for (const bool has_windows : {false, true}) {
    for (const setting& one : each_policy()) {
      all.push_back({one, false, has_windows});
      if (one.policy != policy::simulated) all.push_back({one, true, has_windows});
    }
    for (std::uint64_t seed = 2; seed <= 20; ++seed)
      all.push_back({{policy::simulated, 1, seed}, false, has_windows});
  }
  return all;
}
inline std::string name_of(const transport_setting& chosen) {
  std::ostringstream name;
  name << chosen;
  return name.str();
}

class transport_fixture : public testing::TestWithParam<transport_setting> {
 protected:
  void SetUp() override {
    if (GetParam().over_nats && !nats_server::is_installed()) GTEST_SKIP() << "needs nats-server";
    const char* forced = std::getenv("TROUPE_POLICY");
    if (forced != nullptr && *forced != '\0' &&
        forced != std::string(test::name_of(GetParam().at.policy)))
      GTEST_SKIP() << "TROUPE_POLICY is set: " << forced;
  }

  // Runs test(test_network&) as a task.
  template <class Test>
  void with(Test test) {
    runtime_options chosen;
    chosen.policy = GetParam().at.policy;
    chosen.workers = GetParam().at.workers;
    chosen.seed = GetParam().at.seed;
    if (GetParam().over_nats) server.emplace();
    runtime rt(chosen);
    test_network nodes(rt, server ? &*server : nullptr, GetParam().has_windows);
    future<> done = rt.spawn(test(nodes));
    rt.run();
    done.get();
  }
  std::optional<nats_server> server;
};

}  // namespace troupe::test
