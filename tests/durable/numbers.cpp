// The numbers of a store: counts(), and what the summary of an observed program says of it.
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/observing/observer.hpp"
#include "support/observed.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;

struct Meter {
  int reads = 0;

  int read() { return ++reads; }
  void tell(durable::turn& turn, std::string whom) { turn.post<&Meter::read>(whom); }
  void remind(durable::turn& turn) {
    // It is due at once: the clock of a simulated store begins at this second.
    turn.remind_at<&Meter::read>("soon", std::chrono::sys_seconds(1'700'000'000s));
  }
  void refuse() { throw std::runtime_error("never"); }
};

task<store> open_meters(runtime& rt, const durable::simulated_database& in) {
  durable::options chosen;
  chosen.retry_first = 1ms;
  chosen.failures_max = 3;
  chosen.actors_max = 3;
  chosen.away_first = 1ms;
  return store::open(
      rt, in.storage(), chosen,
      durable::kind<Meter, &Meter::read, &Meter::tell, &Meter::remind, &Meter::refuse>());
}

class durable_numbers : public observed_runtimes {};

// Five messages from outside, one of a handler, and one of a reminder; one fails thrice.
task<> use(store from) {
  for (const char* const key : {"a", "b"}) {
    auto asked = from.get<Meter>(key).ask<&Meter::read>();
    EXPECT_EQ(co_await std::move(asked), 1);
  }
  auto told = from.get<Meter>("a").ask<&Meter::tell>("b");
  co_await std::move(told);
  auto reminded = from.get<Meter>("a").ask<&Meter::remind>();
  co_await std::move(reminded);
  auto refused = from.get<Meter>("c").post<&Meter::refuse>();
  co_await std::move(refused);
  while (from.counts().dead_letters == 0 || from.counts().reminders == 0 ||
         from.counts().waiting != 0)
    co_await sleep_for(1ms);
}

TEST_P(durable_numbers, a_summary_shows_what_a_store_has_done) {
  runtime rt(observed());
  durable::simulated_database db;
  json shown;
  std::optional<durable::counts> counted;
  const auto all = [&]() -> task<> {
    auto opens = open_meters(rt, db);
    const store opened = co_await std::move(opens);
    auto uses = use(opened);
    co_await std::move(uses);
    counted = opened.counts();
    shown = json::parse(troupe::observing::ask("summary"));
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();

  EXPECT_EQ(counted->messages, 7u);
  EXPECT_EQ(counted->turns, 6u);
  EXPECT_EQ(counted->failed_turns, 3u);
  EXPECT_EQ(counted->retries, 2u);
  EXPECT_EQ(counted->dead_letters, 1u);
  EXPECT_EQ(counted->reminders, 1u);
  EXPECT_EQ(counted->loads, 3u);
  EXPECT_EQ(counted->failed_commits, 0u);
  EXPECT_GE(counted->commits, 3u);
  EXPECT_GE(counted->commit_time, 0ns);

  const json& stores = shown["runtimes"][0]["durable"];
  ASSERT_EQ(stores.size(), 1u) << shown;
  const json& one = stores[0];
  EXPECT_EQ(one["store"], "a simulated database");
  EXPECT_EQ(one["messages"], counted->messages);
  EXPECT_EQ(one["turns"], counted->turns);
  EXPECT_EQ(one["failed_turns"], counted->failed_turns);
  EXPECT_EQ(one["retries"], counted->retries);
  EXPECT_EQ(one["dead_letters"], counted->dead_letters);
  EXPECT_EQ(one["reminders"], counted->reminders);
  EXPECT_EQ(one["loads"], counted->loads);
  EXPECT_EQ(one["commits"], counted->commits);
  const json& took = one["commit_seconds"];
  EXPECT_DOUBLE_EQ(took["sum"], std::chrono::duration<double>(counted->commit_time).count());
  EXPECT_EQ(took["count"], counted->commits);
  EXPECT_EQ(one["away"], 0);
  EXPECT_GE(took["p99"], took["p50"]);
  EXPECT_LE(one["commit_turns"]["p99"], 8);
}

TEST_P(durable_numbers, a_store_that_has_gone_is_not_shown) {
  runtime rt(observed());
  durable::simulated_database db;
  std::size_t open = 0, second = 0;
  const auto shown = [] {
    const json all = json::parse(troupe::observing::ask("summary"));
    const json& own = all["runtimes"][0];
    return own.contains("durable") ? own["durable"].size() : 0;
  };
  const auto all = [&]() -> task<> {
    auto opens = open_meters(rt, db);
    std::optional<store> first(co_await std::move(opens));
    open = shown();
    auto opens_again = open_meters(rt, db);
    std::optional<store> other(co_await std::move(opens_again));
    second = shown();
    first.reset();
    other.reset();
    while (shown() != 0) co_await sleep_for(1ms);  // what the stores had begun ends first
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(open, 1u);
  EXPECT_EQ(second, 2u);
}

INSTANTIATE_TEST_SUITE_P(settings, durable_numbers, ::testing::ValuesIn(all_settings()),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
