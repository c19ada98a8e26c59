#include "otlp/encoding/logs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace troupe::otlp {
namespace {

using log::level;
using log::record;
using log::record_field;

// The record in the body of a request with this line alone.
std::string encoded(const record& line) {
  const std::string body = logs_body("{}", &line);
  const std::string head = R"({"resourceLogs":[{"resource":{},"scopeLogs":[)", tail = "]}]}";
  EXPECT_TRUE(body.starts_with(head) && body.ends_with(tail)) << body;
  return body.substr(head.size(), body.size() - head.size() - tail.size());
}

TEST(otlp_logs, each_level_has_its_severity) {
  const struct {
    level of;
    std::string number;
  } cases[] = {{level::trace, "1"},    {level::debug, "5"},  {level::info, "9"},
               {level::warning, "13"}, {level::error, "17"}, {level::off, "0"}};
  for (const auto& [of, number] : cases) {
    record line;
    line.severity = of;
    line.unix_ns = 1'234'567'890'123'456'789;
    line.text = "says \"a\"";
    EXPECT_EQ(encoded(line), R"({"scope":{},"logRecords":[{"timeUnixNano":"1234567890123456789",)"
                             R"("observedTimeUnixNano":"1234567890123456789","severityNumber":)" +
                                 number + R"(,"severityText":")" + std::string(log::name_of(of)) +
                                 R"(","body":{"stringValue":"says \"a\""},"attributes":[]}]})");
  }
}

TEST(otlp_logs, each_value_has_its_form) {
  const struct {
    record_field field;
    std::string value;
  } cases[] = {
      {{"a", std::int64_t{-5}}, R"("intValue":"-5")"},
      {{"a", std::uint64_t{7}}, R"("intValue":"7")"},
      {{"a", std::numeric_limits<std::uint64_t>::max()}, R"("stringValue":"18446744073709551615")"},
      {{"a", true}, R"("boolValue":true)"},
      {{"a", false}, R"("boolValue":false)"},
      {{"a", 0.25}, R"("doubleValue":0.25)"},
      {{"a", std::nan("")}, R"("doubleValue":"NaN")"},
      {{"a", HUGE_VAL}, R"("doubleValue":"Infinity")"},
      {{"a", -HUGE_VAL}, R"("doubleValue":"-Infinity")"},
      {{"a", std::string("b\n\xff")},
       R"("stringValue":"b\n)"
       "\xef\xbf\xbd"
       R"(")"},
  };
  for (const auto& [field, value] : cases) {
    record line;
    line.fields = {field};
    EXPECT_NE(encoded(line).find(R"("attributes":[{"key":"a","value":{)" + value + "}}]"),
              std::string::npos)
        << value << encoded(line);
  }
}

TEST(otlp_logs, a_line_has_its_actor_and_its_trace) {
  record line;
  line.fields = {{"a", true}};
  line.actor = "Shop";
  line.actor_id = 12;
  line.trace = trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  for (const bool is_sampled : {true, false}) {
    line.trace->sampled = is_sampled;
    const std::string text = encoded(line);
    EXPECT_NE(
        text.find(R"("boolValue":true}},{"key":"troupe.actor","value":{"stringValue":"Shop"}},)"
                  R"({"key":"troupe.actor_id","value":{"intValue":"12"}}],"flags":)" +
                  std::string(is_sampled ? "1" : "0") +
                  R"(,"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7"})"),
        std::string::npos)
        << text;
  }
}

TEST(otlp_logs, lines_of_one_logger_share_a_scope) {
  const char* const loggers[] = {"", "", "orders", "orders", "", "orders"};
  std::vector<std::unique_ptr<record>> lines;
  for (const char* const logger : loggers) {
    lines.push_back(std::make_unique<record>());
    lines.back()->logger = logger;
    if (lines.size() > 1) lines[lines.size() - 2]->next = lines.back().get();
  }
  const std::string body = logs_body("{}", lines.front().get());
  std::string shape;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body.compare(i, 10, "{\"scope\":{") == 0) shape += body[i + 10] == '}' ? "|" : "|orders:";
    if (body.compare(i, 16, "{\"timeUnixNano\":") == 0) shape += "line ";
  }
  EXPECT_EQ(shape, "|line line |orders:line line |line |orders:line ");
  EXPECT_EQ(logs_body("{}", nullptr), R"({"resourceLogs":[{"resource":{},"scopeLogs":[]}]})");
}

}  // namespace
}  // namespace troupe::otlp
