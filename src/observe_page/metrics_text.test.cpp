#include "observe_page/metrics_text.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace troupe::observe_page {
namespace {

TEST(metrics_text, takes_only_numbers) {
  EXPECT_EQ(as_metrics("{\"tables\":[]}"), "");
  for (const char* const other :
       {"", "{", "[]", "1", "{\"error\":\"no\"}", "{\"tables\":[{}]}", "{\"tables\":[1]}",
        R"({"tables":[{"labels":["a"],"numbers":[{"metric":"b","kind":"gauge","help":"C."}],)"
        R"("rows":[{"labels":[],"values":[1]}]}]})"})
    EXPECT_THROW(as_metrics(other), std::runtime_error) << other;
}

// A table of a program: two numbers, and a row for each thing.
TEST(metrics_text, shows_each_number_of_a_table) {
  const std::string text = as_metrics(
      R"({"tables":[{"prefix":"troupe_shop","labels":["runtime","shop"],"numbers":[)"
      R"({"name":"sold","metric":"troupe_shop_sold_total","kind":"counter","help":"Sold\nthings."},)"
      R"({"name":"open","metric":"troupe_shop_open","kind":"gauge","help":"Open \"now\"."}],)"
      R"("rows":[{"labels":["0","a \"b\""],"values":[12,true]},)"
      R"({"labels":["1","c\\d"],"values":[2.5,null]}]}]})");
  EXPECT_EQ(text, R"(# HELP troupe_shop_sold_total Sold\nthings.
# TYPE troupe_shop_sold_total counter
troupe_shop_sold_total{runtime="0",shop="a \"b\""} 12
troupe_shop_sold_total{runtime="1",shop="c\\d"} 2.5
# HELP troupe_shop_open Open "now".
# TYPE troupe_shop_open gauge
troupe_shop_open{runtime="0",shop="a \"b\""} 1
troupe_shop_open{runtime="1",shop="c\\d"} NaN
)");
}

TEST(metrics_text, adds_up_the_buckets_of_a_histogram) {
  const std::string text = as_metrics(
      R"({"tables":[{"labels":[],"numbers":[{"metric":"wait_seconds","kind":"histogram",)"
      R"("help":"A wait.","bounds":[0.001,2]}],)"
      R"("rows":[{"labels":[],"values":[{"sum":7.5,"counts":[3,0,4]}]}]}]})");
  EXPECT_EQ(text, R"(# HELP wait_seconds A wait.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.001"} 3
wait_seconds_bucket{le="2"} 3
wait_seconds_bucket{le="+Inf"} 7
wait_seconds_sum 7.5
wait_seconds_count 7
)");
}

// Only OpenMetrics has exemplars, an end, families of counters without "_total", and bounds with a
// point.
TEST(metrics_text, has_exemplars_in_open_metrics_alone) {
  const std::string numbers =
      R"({"tables":[{"labels":["a"],"numbers":[{"metric":"sold_total","kind":"counter",)"
      R"("help":"Sold \"now\"."},{"metric":"wait_seconds","kind":"histogram","help":"A wait.",)"
      R"("bounds":[0.001,2]}],"rows":[{"labels":["b"],"values":[3,{"sum":7.5,"counts":[3,0,4],)"
      R"("exemplars":[{"bucket":0,"value":0.25,"trace_id":"0a","span_id":"0b","unix_ms":1005},)"
      R"({"bucket":2,"value":5,"trace_id":"1a","span_id":"1b","unix_ms":1700000000123}]}]}]}]})";
  EXPECT_EQ(as_metrics(numbers, metrics_format::open_metrics),
            R"(# HELP sold Sold \"now\".
# TYPE sold counter
sold_total{a="b"} 3
# HELP wait_seconds A wait.
# TYPE wait_seconds histogram
wait_seconds_bucket{a="b",le="0.001"} 3 # {trace_id="0a",span_id="0b"} 0.25 1.005
wait_seconds_bucket{a="b",le="2.0"} 3
wait_seconds_bucket{a="b",le="+Inf"} 7 # {trace_id="1a",span_id="1b"} 5 1700000000.123
wait_seconds_sum{a="b"} 7.5
wait_seconds_count{a="b"} 7
# EOF
)");
  EXPECT_EQ(as_metrics(numbers).find("trace_id"), std::string::npos);
  EXPECT_EQ(as_metrics("{\"tables\":[]}", metrics_format::open_metrics), "# EOF\n");
}

// In OpenMetrics the family of a counter is its name without "_total", and no family occurs twice.
TEST(metrics_text, names_each_family_of_open_metrics_once) {
  const std::string numbers =
      R"({"tables":[{"labels":[],"numbers":[{"metric":"sold","kind":"gauge","help":"A."},)"
      R"({"metric":"sold_total","kind":"counter","help":"B."},)"
      R"({"metric":"sums","kind":"counter","help":"C."}],"rows":[]}]})";
  EXPECT_EQ(as_metrics(numbers, metrics_format::open_metrics),
            R"(# HELP sold A.
# TYPE sold gauge
# HELP sold_total B.
# TYPE sold_total unknown
# HELP sums C.
# TYPE sums unknown
# EOF
)");
}

TEST(metrics_text, is_open_metrics_for_readers_that_prefer_it) {
  const char* const open[] = {"application/openmetrics-text",
                              "application/openmetrics-text; version=1.0.0",
                              "Application/OpenMetrics-Text",
                              "application/openmetrics-text;version=1.0.0,application/"
                              "openmetrics-text;version=0.0.1;q=0.75,"
                              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                              "text/plain;q=0.5, application/openmetrics-text;q=0.6"};
  const char* const plain[] = {"",
                               "*/*",
                               "text/plain",
                               "text/html, application/xml;q=0.9, */*;q=0.8",
                               "application/openmetrics-text, text/plain",
                               "application/openmetrics-text;q=0",
                               "application/openmetrics-text;q=0.3, text/plain;q=0.5",
                               "application/openmetrics-textual",
                               ",;="};
  for (const char* const accept : open)
    EXPECT_EQ(preferred_format(accept), metrics_format::open_metrics) << accept;
  for (const char* const accept : plain)
    EXPECT_EQ(preferred_format(accept), metrics_format::prometheus) << accept;
}

}  // namespace
}  // namespace troupe::observe_page
