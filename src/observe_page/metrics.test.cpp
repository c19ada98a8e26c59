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

// The metrics of a program with one runtime, whose summary has these members, too.
std::string metrics_with(const std::string& members) {
  std::string runtime = R"({"up_ns":1,"workers":[],"classes":[],"warning_counts":{})";
  for (const char* const one : {"total", "others"})
    runtime +=
        std::string(",\"") + one + R"(":{"turns":0,"messages":0,"steals":0,"parks":0,"queued":0})";
  runtime += R"(,"metrics":{"actors":0,"suspended":0,"dead_letters":0,"failures":0,)"
             R"("failures_dropped":0,"lazies_queued":0,"resource_bytes":0,"io_waits":0,)"
             R"("io_in_flight":0,"io_open":0,"timers_armed":0,"blocking_calls":0})";
  return as_metrics("{\"runtimes\":[" + runtime + members + "}]}");
}

// A summary without that list is one of a program that has no such store, or of an earlier version.
TEST(metrics_text, shows_stores_of_durable_actors) {
  const std::string empty = as_metrics("{\"runtimes\":[]}");
  EXPECT_NE(empty.find("# TYPE troupe_durable_commit_seconds summary\n"), std::string::npos);
  EXPECT_EQ(empty.find("\ntroupe_durable"), std::string::npos);

  const std::string text = metrics_with(
      R"(,"durable":[{"store":"a \"b\".db","turns":12,"messages":13,"failed_turns":1,)"
      R"("retries":2,"dead_letters":3,"reminders":4,"commits":5,"failed_commits":6,)"
      R"("loads":7,"put_away":8,"actors":9,"waiting":10,"away":1,"commit_ns":2500000000,)"
      R"("commit_p50_ns":500000000,"commit_p99_ns":750000000,"commit_p50_turns":2,)"
      R"("commit_p99_turns":4}])");
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

TEST(metrics_text, shows_what_http_servers_keep) {
  const std::string text = metrics_with(
      R"(,"http":[{"server":"127.0.0.1:80","connections":1,"kept_bytes":2,"kept_descriptors":3,)"
      R"("clients":4,"largest_client_bytes":5,"over_budget":6}])");
  const std::string server = R"({runtime="0",server="127.0.0.1:80"} )";
  for (const std::string& line :
       {"troupe_http_connections" + server + "1", "troupe_http_kept_bytes" + server + "2",
        "troupe_http_kept_descriptors" + server + "3", "troupe_http_clients" + server + "4",
        "troupe_http_largest_client_bytes" + server + "5",
        "troupe_http_over_budget_total" + server + "6"})
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << '\n' << text;
}

// The second one has just gone.
TEST(metrics_text, shows_nodes_of_a_cluster) {
  const std::string text = metrics_with(
      R"(,"cluster":[{"node":"shop","id":"1","of":"troupe","alone":0,"joined":1,"connected":0,)"
      R"("shards":342,"members":3,"actors":4,"made":5,"put_away":6,"local":7,"sent":8,)"
      R"("served":9,"sent_again":10,"failed":11,"waiting":12,"renewals":13,)"
      R"("failed_renewals":14,"shards_lost":15,"nodes":[],"owners":[-1,1024]},{"node":"b"}])");
  const std::string node = R"({runtime="0",node="shop"} )";
  for (const std::string& line :
       {"troupe_cluster_members" + node + "3", "troupe_cluster_shards" + node + "342",
        "troupe_cluster_local_messages_total" + node + "7",
        "troupe_cluster_sent_messages_total" + node + "8",
        "troupe_cluster_served_messages_total" + node + "9",
        "troupe_cluster_sent_again_total" + node + "10",
        "troupe_cluster_failed_messages_total" + node + "11",
        "troupe_cluster_renewals_total" + node + "13",
        "troupe_cluster_failed_renewals_total" + node + "14",
        "troupe_cluster_lost_shards_total" + node + "15", "troupe_cluster_joined" + node + "1",
        "troupe_cluster_connected" + node + "0"})
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << '\n' << text;
  EXPECT_EQ(text.find("node=\"b\""), std::string::npos);
}

}  // namespace
}  // namespace troupe::observe_page
