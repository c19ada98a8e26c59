// What the tests of nats::connection share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nats/nats_server.hpp"
#include "nats/outcomes.hpp"
#include "support/conformance.hpp"
#include "troupe/nats/connection.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {

inline std::vector<setting> each_thread_policy() {
  std::vector<setting> all = each_policy();
  std::erase_if(all, [](const setting& one) { return one.policy == policy::simulated; });
  return all;
}

// With real threads alone: a simulated program has no server.
class nats_fixture : public conformance {
 protected:
  void SetUp() override {
    conformance::SetUp();
    if (IsSkipped()) return;
    if (!nats_server::is_installed()) GTEST_SKIP() << "needs nats-server";
  }

  // Runs test(connection) as a task.
  template <class Test>
  void with(const std::string& servers, Test test, const nats::options& chosen = {}) {
    runtime rt(options());
    future<> done = rt.spawn(test(nats::connection(rt, servers, chosen)));
    rt.run();
    done.get();
  }
};

}  // namespace troupe::test
