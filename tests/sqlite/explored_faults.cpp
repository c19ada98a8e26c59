// Faults of a SQLite file in a search: each is found in a program that is not ready for it, reduced
// to that fault, told with its turn, and repeated.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "sched/exploring/schedule_file.hpp"
#include "troupe/database/error.hpp"
#include "troupe/sqlite/connection.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;
using troupe::sqlite::connection;

troupe::task<std::int64_t> count(connection file) {
  for (;;) {
    try {
      auto asks = file.query_one<std::int64_t>("SELECT count(*) FROM rows");
      const auto found = co_await std::move(asks);
      co_return found.value();
    } catch (const troupe::database::error&) {
    }
    co_await troupe::sleep_for(1s);
  }
}

// Believes that a row is stored although its statement failed.
troupe::task<> ignore_failures(connection file) {
  for (int i = 0; i < 3; ++i) {
    try {
      auto runs = file.execute("INSERT INTO rows VALUES (1)");
      co_await std::move(runs);
    } catch (const troupe::database::error&) {
    }
  }
  const std::int64_t found = co_await count(file);
  troupe::expect(found == 3);
}

// Runs the transaction again, though it may be stored.
troupe::task<> repeat_a_transaction(connection file) {
  const auto body = [](troupe::sqlite::transaction& all) -> troupe::task<> {
    auto runs = all.execute("INSERT INTO rows VALUES (1)");
    co_await std::move(runs);
  };
  for (bool done = false; !done;) {
    try {
      auto runs = file.in_transaction(body);
      co_await std::move(runs);
      done = true;
    } catch (const troupe::database::error&) {
    }
  }
  const std::int64_t found = co_await count(file);
  troupe::expect(found == 1);
}

// Has a limit that a slow disk exceeds.
troupe::task<> expect_a_fast_disk(connection file) {
  try {
    co_await file.execute("INSERT INTO rows VALUES (1)").timeout(5s);
  } catch (const troupe::database::error&) {
  }
}

// Waits without a limit.
troupe::task<> wait_without_limit(connection file) {
  try {
    auto runs = file.execute("INSERT INTO rows VALUES (1)");
    co_await std::move(runs);
  } catch (const troupe::database::error&) {
  }
}

using client = troupe::task<> (*)(connection);

troupe::task<> run_client(troupe::runtime& rt, client runs) {
  const connection file(rt, ":memory:");
  auto makes = file.run_script("CREATE TABLE rows (n INTEGER)");
  co_await std::move(makes);
  auto all = runs(file);
  co_await std::move(all);
}

template <client Runs>
void with_file(troupe::explored_run&) {
  troupe::runtime rt;
  rt.spawn(run_client(rt, Runs));
  rt.run();
  troupe::expect(rt.now() < 10min);
}

struct planted {
  const char* name;
  void (*body)(troupe::explored_run&);
  const char* fault;  // in the schedule
  const char* told;   // in the story
};
void PrintTo(const planted& bug, std::ostream* to) { *to << bug.name; }

const planted all[] = {
    {"of_a_failing_statement", &with_file<ignore_failures>, "fault storage-", "statement "},
    {"of_a_lost_commit", &with_file<repeat_a_transaction>, "fault commit-lost ",
     "was stored, and its answer was lost"},
    {"of_a_slow_disk", &with_file<expect_a_fast_disk>, "fault storage-s", "statement "},
    {"of_a_stalled_disk", &with_file<wait_without_limit>, "fault storage-stalls ", "waited 15 min"},
};

class explored_faults : public testing::TestWithParam<planted> {};

TEST_P(explored_faults, are_found_reduced_told_and_repeated) {
  const troupe::explore_report report = troupe::explore(GetParam().body, {.faults = true});
  ASSERT_FALSE(report) << report;
  EXPECT_TRUE(report.reduced) << report;
  EXPECT_NE(report.schedule.find(GetParam().fault), std::string::npos) << report;
  EXPECT_NE(report.story.find("fault in turn "), std::string::npos) << report;
  EXPECT_NE(report.story.find(GetParam().told), std::string::npos) << report;
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

// Two statements that wait at the same time are stored as one transaction.
troupe::task<> insert_once(connection file) {
  try {
    auto runs = file.execute("INSERT INTO rows VALUES (1)");
    co_await std::move(runs);
  } catch (const troupe::database::error&) {
  }
}
troupe::task<> insert_two_at_once(connection file) {
  auto both = troupe::when_all(insert_once(file), insert_once(file));
  co_await std::move(both);
  const std::int64_t found = co_await count(file);
  troupe::expect(found <= 2);
}

TEST(faults_of_a_batch, run_no_statement_twice) {
  const troupe::explore_report report = troupe::explore(
      [](troupe::explored_run&) {
        troupe::runtime rt;
        rt.spawn([](troupe::runtime& of) -> troupe::task<> {
          try {
            auto runs = run_client(of, &insert_two_at_once);
            co_await std::move(runs);
          } catch (const troupe::database::error&) {  // of the table
          }
        }(rt));
        rt.run();
      },
      {.schedules = 200, .faults = true});
  EXPECT_TRUE(report) << report;
}

TEST_P(explored_faults, do_not_happen_unless_they_are_asked_for) {
  const troupe::explore_report report = troupe::explore(GetParam().body, {.schedules = 40});
  EXPECT_TRUE(report) << report;
}

INSTANTIATE_TEST_SUITE_P(each, explored_faults, testing::ValuesIn(all),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
