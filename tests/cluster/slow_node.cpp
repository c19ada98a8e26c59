// A node that is slower than those who send to it: it holds them back, and loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::node;

struct Worker {
  explicit Worker(cluster::home its) : here(std::move(its)) {}
  task<> work() {
    co_await sleep_for(500us);
    ++done;
  }
  int finished() const { return done; }
  cluster::home here;
  int done = 0;
};

cluster::options named(std::string name) {
  cluster::options chosen;
  chosen.name = std::move(name);
  chosen.served_max = 4;
  return chosen;
}

task<> until_both_are_there(const node& one, const node& other) {
  co_await one.ready();
  co_await other.ready();
  while (one.counts().shards < 400 || other.counts().shards < 400) co_await sleep_for(5ms);
}

// A key whose actor is on the other node.
task<std::string> key_away(const node& from) {
  for (int i = 0;; ++i) {
    const std::string key = "key " + std::to_string(i);
    const auto before = from.counts().created;
    auto asked = from.get<Worker>(key).ask<&Worker::finished>();
    static_cast<void>(co_await std::move(asked));
    if (from.counts().created == before) co_return key;
  }
}

task<> tell_a_slow_node(runtime& rt) {
  const cluster::simulation in;
  cluster::simulated_network net = in.network();
  cluster::network_faults narrow;
  narrow.waiting_max = 4'200;  // a window and some marks
  net.set_faults(narrow);
  const node one(rt, in, named("one"), cluster::kind<Worker, &Worker::work, &Worker::finished>());
  const node two(rt, in, named("two"), cluster::kind<Worker, &Worker::work, &Worker::finished>());
  auto waits = until_both_are_there(one, two);
  co_await std::move(waits);
  auto finds = key_away(one);
  const std::string key = co_await std::move(finds);
  const auto to = one.get<Worker>(key);
  constexpr int count = 6'000;
  for (int i = 0; i < count; ++i) to.tell<&Worker::work>();
  int done = 0;
  for (int tries = 0; done < count && tries < 1'000; ++tries) {
    co_await sleep_for(100ms);
    try {
      auto asked = to.ask<&Worker::finished>();
      done = co_await std::move(asked);
    } catch (const std::exception&) {
      // The ask waited behind the messages for too long.
    }
  }
  EXPECT_EQ(done, count);
  EXPECT_EQ(net.now().lost, 0u);
  auto ends = one.stop();
  co_await std::move(ends);
  auto other_ends = two.stop();
  co_await std::move(other_ends);
}

TEST(cluster_slow_node, holds_its_senders_back_and_loses_nothing) {
  for_each_seed(seeds_from(1, 3), [](std::uint64_t seed) {
    runtime_options chosen;
    chosen.policy = policy::simulated;
    chosen.seed = seed;
    runtime rt(chosen);
    future<> done = rt.spawn(tell_a_slow_node(rt));
    rt.run();
    done.get();
  });
}

}  // namespace
}  // namespace troupe::test
