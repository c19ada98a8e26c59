#include "observe_page/metrics.hpp"

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

}  // namespace
}  // namespace troupe::observe_page
