// Faults of storages in a search: each kind is found in a program that is not ready for it, reduced
// to that fault, told with its turn, and repeated; a program that is ready for all of them passes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "sched/exploring/schedule_file.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;
namespace durable = troupe::durable;

struct Account {
  std::int64_t cents = 0;
  std::int64_t deposit(std::int64_t more) { return cents += more; }
  std::int64_t read() { return cents; }
};
using account = durable::ref<Account>;

// A store that opens only after some time is no failure of these programs.
troupe::task<durable::store> open(troupe::runtime& rt, durable::simulated_database database) {
  for (;;) {
    try {
      auto opens = durable::store::open(
          rt, database.storage(), durable::kind<Account, &Account::deposit, &Account::read>());
      co_return co_await std::move(opens);
    } catch (const troupe::database::error&) {
    }
    co_await troupe::sleep_for(1s);
  }
}

enum class outcome { done, nothing, unknown, late };

// `limit` 0: none.
troupe::task<outcome> deposit(account to, std::chrono::seconds limit) {
  auto asked = to.ask<&Account::deposit>(1);
  try {
    if (limit == 0s) {
      co_await std::move(asked);
    } else {
      co_await std::move(asked).timeout(limit);
    }
  } catch (const troupe::database::error& failed) {
    co_return failed.effect() == troupe::database::effect::none ? outcome::nothing
                                                                : outcome::unknown;
  } catch (const troupe::timed_out&) {
    co_return outcome::late;
  }
  co_return outcome::done;
}

troupe::task<std::int64_t> balance(account of) {
  for (;;) {
    try {
      auto asked = of.ask<&Account::read>();
      co_return co_await std::move(asked);
    } catch (const troupe::database::error&) {
    }
    co_await troupe::sleep_for(1s);
  }
}

// Believes that a deposit is stored although it failed.
troupe::task<> ignore_failures(account to) {
  static_cast<void>(co_await deposit(to, 0s));
  const std::int64_t found = co_await balance(to);
  troupe::expect(found == 1);
}

// Sends it again after a while, under another id.
troupe::task<> repeat_when_late(account to) {
  for (int i = 0; i < 5; ++i) {
    const outcome ended = co_await deposit(to, 5s);
    if (ended == outcome::done || ended == outcome::unknown) break;
    if (ended == outcome::nothing) co_await troupe::sleep_for(60s);
  }
  co_await troupe::sleep_for(60s);
  const std::int64_t found = co_await balance(to);
  troupe::expect(found <= 1);
}

troupe::task<> wait_without_limit(account to) {
  static_cast<void>(co_await deposit(to, 0s));
  const std::int64_t found = co_await balance(to);
  troupe::expect(found <= 1);
}

// Sends it again under the same id until it is done: it is right.
troupe::task<> repeat_with_id(account to) {
  const account named = to.with_id(durable::message_id::random());
  for (outcome ended = outcome::late; ended != outcome::done;) {
    ended = co_await deposit(named, 20s);
    if (ended != outcome::done) co_await troupe::sleep_for(30s);
  }
  const std::int64_t found = co_await balance(to);
  troupe::expect(found == 1);
}

using client = troupe::task<> (*)(account);

troupe::task<> run_client(troupe::runtime& rt, client runs) {
  durable::simulated_database database;
  auto opens = open(rt, database);
  const durable::store store = co_await std::move(opens);
  auto all = runs(store.get<Account>("a"));
  co_await std::move(all);
}

template <client Runs, int Minutes = 600>
void with_store(troupe::explored_run&) {
  troupe::runtime rt;
  rt.spawn(run_client(rt, Runs));
  rt.run();
  troupe::expect(rt.now() < std::chrono::minutes(Minutes));
}

struct planted {
  const char* name;
  void (*body)(troupe::explored_run&);
  const char* fault;  // in the schedule
  const char* told;   // in the story
};
void PrintTo(const planted& bug, std::ostream* to) { *to << bug.name; }

const planted all[] = {
    {"of_a_failing_storage", &with_store<ignore_failures>, "fault storage-", "of a storage"},
    {"of_a_slow_storage", &with_store<repeat_when_late>, "fault storage-", "of a storage"},
    {"of_a_stalled_storage", &with_store<wait_without_limit, 10>, "fault storage-stalls ",
     "waited 15 min"},
};

class storage_faults : public testing::TestWithParam<planted> {};

TEST_P(storage_faults, are_found_reduced_told_and_repeated) {
  const troupe::explore_report report = troupe::explore(GetParam().body, {.faults = true});
  ASSERT_FALSE(report) << report;
  EXPECT_TRUE(report.reduced) << report;
  EXPECT_NE(report.schedule.find(GetParam().fault), std::string::npos) << report;
  EXPECT_NE(report.story.find("fault in turn "), std::string::npos) << report;
  EXPECT_NE(report.story.find(GetParam().told), std::string::npos) << report;
  EXPECT_NE(report.diagram.find(GetParam().told), std::string::npos) << report;
  EXPECT_LE(report.holds, 3u) << report;
  EXPECT_LE(report.shrinking_runs, 50u);
  for (int i = 0; i < 100; ++i) {
    const troupe::explore_report again = troupe::replay(GetParam().body, report.schedule);
    ASSERT_EQ(again.failure, report.failure);
    EXPECT_EQ(again.unmet, "");
  }
  auto without = troupe::sched::exploring::parse_schedule(report.schedule, "the report");
  without.plan.holds.clear();
  EXPECT_EQ(troupe::replay(GetParam().body, text_of(without)).failure, "");
}

TEST_P(storage_faults, do_not_happen_unless_they_are_asked_for) {
  const troupe::explore_report report = troupe::explore(GetParam().body, {.schedules = 40});
  EXPECT_TRUE(report) << report;
}

INSTANTIATE_TEST_SUITE_P(each, storage_faults, testing::ValuesIn(all),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(storage_faults_of_a_search, find_nothing_in_a_client_that_is_ready_for_them) {
  const troupe::explore_report report =
      troupe::explore(&with_store<repeat_with_id>, {.schedules = 200, .faults = true});
  EXPECT_TRUE(report) << report;
  EXPECT_EQ(report.schedules, 200u);
}

}  // namespace
