#include "observe_page/metrics.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace troupe::observe_page {
namespace {

TEST(metrics_text, takes_only_a_summary) {
  EXPECT_NE(as_metrics("{\"runtimes\":[]}").find("# TYPE troupe_up_seconds gauge"),
            std::string::npos);
  for (const char* const other : {"", "{", "[]", "1", "{\"error\":\"no\"}"})
    EXPECT_THROW(as_metrics(other), std::runtime_error) << other;
}

// A summary without that list is one of a program that has no such store, or of an earlier version.
TEST(metrics_text, shows_stores_of_durable_actors) {
  const std::string empty = as_metrics("{\"runtimes\":[]}");
  EXPECT_NE(empty.find("# TYPE troupe_durable_commit_seconds summary\n"), std::string::npos);
  EXPECT_EQ(empty.find("\ntroupe_durable"), std::string::npos);

  std::string runtime = R"({"up_ns":1,"workers":[],"classes":[],"warning_counts":{})";
  for (const char* const one : {"total", "others"})
    runtime +=
        std::string(",\"") + one + R"(":{"turns":0,"messages":0,"steals":0,"parks":0,"queued":0})";
  runtime += R"(,"metrics":{"actors":0,"suspended":0,"dead_letters":0,"failures":0,)"
             R"("failures_dropped":0,"lazies_queued":0,"resource_bytes":0,"io_waits":0,)"
             R"("io_in_flight":0,"io_open":0,"timers_armed":0,"blocking_calls":0})";
  runtime += R"(,"durable":[{"store":"a \"b\".db","turns":12,"messages":13,"failed_turns":1,)"
             R"("retries":2,"dead_letters":3,"reminders":4,"commits":5,"failed_commits":6,)"
             R"("loads":7,"put_away":8,"actors":9,"waiting":10,"away":1,"commit_ns":2500000000,)"
             R"("commit_p50_ns":500000000,"commit_p99_ns":750000000,"commit_p50_turns":2,)"
             R"("commit_p99_turns":4}]})";
  const std::string text = as_metrics("{\"runtimes\":[" + runtime + "]}");
  const std::string store = R"(runtime="0",store="a \"b\".db")";
  for (const std::string& line :
       {"troupe_durable_turns_total{" + store + "} 12", "troupe_durable_away{" + store + "} 1",
        "troupe_durable_retries_total{" + store + "} 2",
        "troupe_durable_waiting_messages{" + store + "} 10",
        "troupe_durable_commit_seconds{" + store + ",quantile=\"0.99\"} 0.75",
        "troupe_durable_commit_seconds_sum{" + store + "} 2.5",
        "troupe_durable_commit_seconds_count{" + store + "} 5",
        "troupe_durable_commit_turns{" + store + ",quantile=\"0.5\"} 2",
        "troupe_durable_commit_turns_sum{" + store + "} 12"})
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << '\n' << text;
}

}  // namespace
}  // namespace troupe::observe_page
