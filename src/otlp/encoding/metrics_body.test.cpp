#include "otlp/encoding/metrics_body.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::otlp {
namespace {

using observe::number_kind;
using observe::number_unit;
using observe::number_value;

struct metric_case {
  number_kind kind;
  number_unit unit;
  std::string name;
  std::vector<std::string> labels;
  number_value value;
  std::string metric;  // the object in the body; empty: there is none
};

std::string body_with(const metric_case& one) {
  observe::number_tables all;
  observe::number_rows table;
  for (std::size_t i = 0; i < one.labels.size(); ++i)
    table.labels.push_back("label" + std::to_string(i));
  table.numbers.push_back({"a", one.name, one.kind, one.unit, "Says \"a\"."});
  table.rows.push_back({one.labels, {one.value}});
  all.add_table(table);
  return metrics_body("{}", all, 5, 9);
}

const std::vector<double> bounds{0.5, 1};
// Bytes of ids count up from `first`.
observe::exemplar seen(std::size_t bucket, double value, std::uint8_t first, std::int64_t unix_ns) {
  observe::exemplar made{bucket, value, {}, {}, unix_ns};
  for (std::size_t i = 0; i < made.trace_id.size(); ++i)
    made.trace_id.at(i) = static_cast<std::uint8_t>(first + i);
  for (std::size_t i = 0; i < made.span_id.size(); ++i)
    made.span_id.at(i) = static_cast<std::uint8_t>(first + 0x80 + i);
  return made;
}

TEST(otlp_metrics, each_kind_of_number_has_its_form) {
  const std::string says = R"(","description":"Says \"a\".","unit":)";
  const std::string since = R"("startTimeUnixNano":"5",)", at = R"("timeUnixNano":"9",)";
  const metric_case cases[] = {
      {number_kind::counter,
       number_unit::one,
       "shop_sold_total",
       {"book", "\"x\""},
       std::uint64_t{7},
       R"({"name":"shop_sold)" + says +
           R"("1","sum":{"aggregationTemporality":2,"isMonotonic":true,)" +
           R"("dataPoints":[{"attributes":[{"key":"label0","value":{"stringValue":"book"}},)" +
           R"({"key":"label1","value":{"stringValue":"\"x\""}}],)" + since + at +
           R"("asInt":"7"}]}})"},
      {number_kind::counter,
       number_unit::seconds,
       "a_seconds_total",
       {},
       0.25,
       R"({"name":"a_seconds)" + says +
           R"("s","sum":{"aggregationTemporality":2,"isMonotonic":true,)" +
           R"("dataPoints":[{"attributes":[],)" + since + at + R"("asDouble":0.25}]}})"},
      {number_kind::gauge,
       number_unit::bytes,
       "a_bytes",
       {},
       std::int64_t{-3},
       R"({"name":"a_bytes)" + says + R"("By","gauge":{"dataPoints":[{"attributes":[],)" + at +
           R"("asInt":"-3"}]}})"},
      {number_kind::gauge,
       number_unit::one,
       "a_total",
       {},
       std::numeric_limits<std::uint64_t>::max(),
       R"({"name":"a_total)" + says + R"("1","gauge":{"dataPoints":[{"attributes":[],)" + at +
           R"("asDouble":18446744073709551616}]}})"},
      {number_kind::histogram,
       number_unit::seconds,
       "a_seconds",
       {},
       observe::distribution{bounds, {1, 2, 3}, 4.5},
       R"({"name":"a_seconds)" + says + R"("s","histogram":{"aggregationTemporality":2,)" +
           R"("dataPoints":[{"attributes":[],)" + since + at + R"("count":"6","sum":4.5,)" +
           R"("bucketCounts":["1","2","3"],"explicitBounds":[0.5,1]}]}})"},
      {number_kind::gauge, number_unit::one, "a", {}, std::nan(""), ""},
      {number_kind::gauge, number_unit::one, "a", {}, HUGE_VAL, ""},
      {number_kind::histogram,
       number_unit::one,
       "a",
       {},
       observe::distribution{bounds, {0, 0, 0}, -HUGE_VAL},
       ""},
  };
  for (const metric_case& one : cases)
    EXPECT_EQ(body_with(one),
              R"({"resourceMetrics":[{"resource":{},"scopeMetrics":[{"scope":{"name":"troupe"},)"
              R"("metrics":[)" +
                  one.metric + "]}]}]}")
        << one.name;
}

TEST(otlp_metrics, exemplars_are_beside_the_buckets) {
  const observe::distribution spread{
      bounds, {1, 0, 1}, 2.5, {seen(0, 0.5, 1, 7), seen(1, HUGE_VAL, 1, 7), seen(2, 2, 2, 8)}};
  const std::string body =
      body_with({number_kind::histogram, number_unit::seconds, "a_seconds", {}, spread, ""});
  const std::string expected =
      R"("explicitBounds":[0.5,1],)"
      R"("exemplars":[{"timeUnixNano":"7","asDouble":0.5,"spanId":"8182838485868788",)"
      R"("traceId":"0102030405060708090a0b0c0d0e0f10"},)"
      R"({"timeUnixNano":"8","asDouble":2,"spanId":"8283848586878889",)"
      R"("traceId":"02030405060708090a0b0c0d0e0f1011"}]}]}})";
  EXPECT_NE(body.find(expected), std::string::npos) << body;
}

TEST(otlp_metrics, rows_are_points_of_one_metric) {
  observe::number_tables all;
  observe::number_rows table;
  table.labels = {"kind"};
  table.numbers = {{"a", "a_total", number_kind::counter, number_unit::one, "A."},
                   {"b", "b", number_kind::gauge, number_unit::one, "B."}};
  table.rows = {{{"x"}, {std::uint64_t{1}, 0.5}}, {{"y"}, {std::uint64_t{2}, std::nan("")}}};
  all.add_table(table);
  all.add_table({"empty", {}, {{"c", "c", number_kind::gauge, number_unit::one, "C."}}, {}});
  const std::string body = metrics_body("{}", all, 5, 9);
  const auto count = [&](std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = body.find(part); at != std::string::npos; at = body.find(part, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("\"name\":\"a\""), 1u);
  EXPECT_EQ(count("\"asInt\":\"1\"}"), 1u);
  EXPECT_EQ(count("\"asInt\":\"2\"}"), 1u);
  EXPECT_EQ(count("\"name\":\"b\""), 1u);
  EXPECT_EQ(count("\"timeUnixNano\""), 3u) << "a gauge without a value is no point";
  EXPECT_EQ(count("\"name\":\"c\""), 0u);
}

}  // namespace
}  // namespace troupe::otlp
