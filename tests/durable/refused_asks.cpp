// Asks that failed with effect::none have no effect, also later: the database refuses calls, so
// that messages lie in the inbox whose actors cannot be loaded.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct Sum {
  std::int64_t value = 0;
  std::int64_t add(std::int64_t more) { return value += more; }
};
constexpr std::uint64_t sums = 5;
std::string sum_named(std::uint64_t number) { return "sum " + std::to_string(number); }

struct additions {
  std::vector<std::int64_t> done = std::vector<std::int64_t>(sums);
  std::vector<std::int64_t> unknown = std::vector<std::int64_t>(sums);
  int refused = 0;
};

task<> add_many(durable::store to, additions& all) {
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t which = kit::random_number() % sums;
    try {
      auto asked = to.get<Sum>(sum_named(which)).ask<&Sum::add>(1);
      co_await std::move(asked);
      ++all.done[which];
    } catch (const database::error& e) {
      e.effect() == database::effect::none ? ++all.refused : ++all.unknown[which];
    }
    co_await sleep_for(std::chrono::microseconds(kit::random_number() % 2'000));
  }
}

// Returns how many were refused.
task<int> check_refused_asks(runtime& rt) {
  durable::simulated_database db;
  durable::options chosen;
  chosen.actors_max = 1;
  chosen.away_first = 1ms;
  auto opens = durable::store::open(rt, db.storage(), chosen, durable::kind<Sum, &Sum::add>());
  const durable::store to = co_await std::move(opens);
  db.set_faults({.refuses = 5, .loses = 0, .delay_max = 300us});
  // A store that waits before it tries the database again keeps no program alive.
  timer alive = rt.every(10ms, [] {});
  additions all;
  std::vector<future<>> running;
  for (int client = 0; client < 4; ++client) running.push_back(rt.spawn(add_many(to, all)));
  for (auto& one : running) co_await std::move(one);
  db.set_faults({});
  co_await sleep_for(10s);  // what is in the inbox is handled
  for (std::uint64_t i = 0; i < sums; ++i) {
    auto asked = to.get<Sum>(sum_named(i)).ask<&Sum::add>(0);
    const std::int64_t value = co_await std::move(asked);
    EXPECT_GE(value, all.done[i]) << sum_named(i);
    EXPECT_LE(value, all.done[i] + all.unknown[i]) << sum_named(i);
  }
  alive.cancel();
  co_return all.refused;
}

TEST(durable_refused_asks, what_is_said_not_to_have_run_does_not_run_later) {
  for_each_seed(seeds_from(1, static_cast<std::uint64_t>(fewer(40))), [](std::uint64_t seed) {
    runtime rt({.policy = policy::simulated, .seed = seed});
    future<int> done = rt.spawn(check_refused_asks(rt));
    rt.run();
    EXPECT_GT(done.get(), 0);
  });
}

}  // namespace
}  // namespace troupe::test
