// The lines of the log that the exporter sends, with their traces, and collectors that do not take
// them.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "otlp/collector.hpp"
#include "otlp/requests.hpp"
#include "support/conformance.hpp"
#include "troupe/log/log.hpp"
#include "troupe/otlp/exporter.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using otlp::exporter;
using otlp::exporter_counts;
using otlp::exporter_options;
using otlp::logs_export;
using otlp::span_export;

// Lines are not written to the test's standard error.
class otlp_logs_sent : public testing::Test {
 protected:
  otlp_logs_sent() {
    log::configure({.as = log::form::text, .file = {}, .callback = [](std::string_view) {}});
  }
  ~otlp_logs_sent() override { log::configure({}); }
};

exporter_options lines_to(const collector& at) {
  exporter_options options = to(at.url());
  options.logs_url = at.url().substr(0, at.url().find("/v1/")) + "/v1/logs";
  return options;
}

std::uint64_t all_lines(const exporter_counts& counts) {
  return counts.exported_lines + counts.dropped_lines + counts.rejected_lines +
         counts.waiting_lines;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++count;
  return count;
}

template <std::size_t Bytes>
std::string hex(const std::array<std::uint8_t, Bytes>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

struct Shop {
  trace_context take(int id) {
    static const log::logger orders("test.orders");
    orders.warning("order taken", {{"id", id}, {"half", 0.5}, {"late", 1500ms}});
    return *this_call::trace();
  }
};

TEST_F(otlp_logs_sent, a_line_has_its_severity_fields_and_span) {
  collector at([](int) { return answer("200 OK"); });
  exporter_options options = lines_to(at);
  options.service_name = "shop";
  options.fields.emplace_back("Authorization", "of spans");
  options.logs_fields.emplace_back("Authorization", "of logs");
  exporter all(std::move(options));
  trace_context within_handler, within_span;
  {
    runtime rt;
    auto shop = rt.spawn<Shop>();
    rt.spawn([&]() -> task<> {
      const auto work = [&]() -> task<> {
        within_span = *this_call::trace();
        log::error("in a span", {{"text", "\"a\"\n"}});
        within_handler = co_await shop.ask<&Shop::take>(7);
      };
      co_await with_span("outer", work);
    });
    rt.run();
  }
  log::info("in none");
  EXPECT_TRUE(all.flush(20s));
  EXPECT_EQ(all.counts().exported_lines, 3u);
  EXPECT_EQ(all_lines(all.counts()), 3u);
  EXPECT_EQ(within_handler.trace_id, within_span.trace_id);
  EXPECT_NE(within_handler.span_id, within_span.span_id);
  const std::string sent = bodies_of(at, "/v1/logs");
  const std::string here =
      R"("flags":1,"traceId":")" + hex(within_span.trace_id) + R"(","spanId":")";
  for (
      const std::string& part : std::vector<std::string>{
          "Authorization: of logs\r\n", R"({"resourceLogs":[{"resource":{"attributes":[)",
          R"({"key":"service.name","value":{"stringValue":"shop"}})",
          R"("severityNumber":17,"severityText":"error","body":{"stringValue":"in a span"})",
          R"("attributes":[{"key":"text","value":{"stringValue":"\"a\"\n"}},{"key":"troupe.actor",)",
          here + hex(within_span.span_id),
          R"({"scope":{"name":"test.orders"},"logRecords":[{"timeUnixNano":")",
          R"("severityNumber":13,"severityText":"warning","body":{"stringValue":"order taken"})",
          R"([{"key":"id","value":{"intValue":"7"}},{"key":"half","value":{"doubleValue":0.5}},)"
          R"({"key":"late","value":{"doubleValue":1.5}},{"key":"troupe.actor",)",
          here + hex(within_handler.span_id),
          R"("severityNumber":9,"severityText":"info","body":{"stringValue":"in none"},)"
          R"("attributes":[]})"})
    EXPECT_NE(sent.find(part), std::string::npos) << part << "\n" << sent;
  EXPECT_EQ(sent.find("of spans"), std::string::npos) << "fields of one are not sent to the other";
  EXPECT_NE(bodies_of(at, "/v1/traces").find(hex(within_handler.span_id)), std::string::npos)
      << "the collector finds the span of the line";
}

TEST_F(otlp_logs_sent, a_value_is_computed_once_and_may_throw) {
  collector at([](int) { return answer("200 OK"); });
  exporter all(lines_to(at));
  int calls = 0;
  log::info("one", {{"made", [&] { return ++calls; }},
                    {"thrown", []() -> int { throw std::runtime_error("no stock"); }}});
  log::debug("off", {{"made", [&] { return ++calls; }}});
  EXPECT_TRUE(all.flush(20s));
  EXPECT_EQ(calls, 1);
  const std::string sent = bodies_of(at, "/v1/logs");
  EXPECT_NE(sent.find(R"([{"key":"made","value":{"intValue":"1"}},)"
                      R"({"key":"thrown","value":{"stringValue":"no stock"}}])"),
            std::string::npos)
      << sent;
  EXPECT_EQ(sent.find("off"), std::string::npos);
}

TEST_F(otlp_logs_sent, only_with_a_url_and_while_there_is_an_exporter) {
  collector at([](int) { return answer("200 OK"); });
  {
    exporter spans(to(at.url()));
    log::info("without a URL");
    EXPECT_TRUE(spans.flush(20s));
    EXPECT_EQ(all_lines(spans.counts()), 0u);
  }
  log::info("before");
  {
    exporter_options options = lines_to(at);
    options.interval = std::chrono::hours(1);
    options.flush_time = 20s;
    options.batch = 100;
    const exporter all(std::move(options));
    for (int i = 0; i < 250; ++i) log::info("while");
  }
  log::info("after");
  { const exporter again(lines_to(at)); }
  const std::string sent = bodies_of(at, "/v1/logs");
  EXPECT_EQ(count_of(sent, R"({"stringValue":"while"})"), 250u) << "the end sends all that wait";
  for (const char* const text : {"without a URL", "before", "after"})
    EXPECT_EQ(sent.find(text), std::string::npos) << text;
}

TEST_F(otlp_logs_sent, lines_without_space_are_dropped_and_counted) {
  std::atomic<bool> ends{false};
  collector silent([&](int) {
    ends.wait(false);
    return std::string();
  });
  for (const std::size_t most : {std::size_t{1}, std::size_t{100}}) {
    exporter_options options = lines_to(silent);
    options.log_lines = most;
    options.flush_time = 100ms;
    exporter all(std::move(options));
    const log::counts before = log::count();
    for (int i = 0; i < 1'000; ++i) log::info("one of many");
    const exporter_counts counts = all.counts();
    EXPECT_EQ(counts.waiting_lines, most);
    EXPECT_EQ(counts.dropped_lines, 1'000 - most);
    EXPECT_EQ(log::count().lines - before.lines, 1'000u) << "the log has them";
    EXPECT_FALSE(all.flush(50ms));
  }
  ends = true;
  ends.notify_all();
}

TEST_F(otlp_logs_sent, refused_lines_are_counted) {
  // The lines may come in several requests.
  const struct {
    std::string said;
    std::uint64_t exported, rejected, dropped;
    bool is_taken = true;
  } cases[] = {
      {answer("400 Bad Request"), 0, 3, 0, false},
      {answer("503 Service Unavailable"), 0, 0, 3, false},
      {answer("200 OK", R"({"partialSuccess":{"rejectedLogRecords":"99"}})"), 0, 3, 0},
      {answer("200 OK", R"({"partialSuccess":{"rejectedSpans":"99"}})"), 3, 0, 0},
      {answer("204 No Content", ""), 3, 0, 0},
  };
  for (const auto& [said, exported, rejected, dropped, is_taken] : cases) {
    collector at([&, text = said](int) { return text; });
    exporter_options options = lines_to(at);
    options.attempts = 2;
    options.interval = 100ms;
    exporter all(std::move(options));
    for (int i = 0; i < 3; ++i) log::info("one");
    EXPECT_TRUE(all.flush(20s)) << said;
    const exporter_counts counts = all.counts();
    EXPECT_EQ(counts.exported_lines, exported) << said;
    EXPECT_EQ(counts.rejected_lines, rejected) << said;
    EXPECT_EQ(counts.dropped_lines, dropped) << said;
    EXPECT_EQ(counts.failed_requests == 0, is_taken) << said;
  }
}

void make_span() {
  runtime rt;
  rt.spawn([]() -> task<> { co_await with_span("one", []() -> task<> { co_return; }); });
  rt.run();
}

// Each has a thread and a channel: the one that is not taken delays nothing of the other.
TEST_F(otlp_logs_sent, lines_and_spans_do_not_wait_for_each_other) {
  for (const bool has_silent_spans : {true, false}) {
    std::atomic<bool> ends{false};
    collector silent([&](int) {
      ends.wait(false);
      return std::string();
    });
    collector at([](int) { return answer("200 OK"); });
    exporter_options options = lines_to(has_silent_spans ? at : silent);
    options.url = (has_silent_spans ? silent : at).url();
    options.flush_time = 200ms;
    options.request_time = 10min;
    exporter all(std::move(options));
    for (std::size_t round = 1; round < 4; ++round) {
      make_span();
      log::info("one");
      EXPECT_TRUE(come_to(at, round)) << has_silent_spans;
    }
    EXPECT_TRUE(come_to(silent, 1)) << "and it has not answered";
    EXPECT_EQ(silent.requests().size(), 1u);
    ends = true;
    ends.notify_all();
  }
}

TEST_F(otlp_logs_sent, failures_of_lines_say_nothing_of_spans) {
  collector at([](int) { return answer("200 OK"); });
  collector refuses([](int) { return answer("503 Service Unavailable"); });
  exporter_options options = lines_to(refuses);
  options.url = at.url();
  exporter all(std::move(options));
  log::info("one");
  EXPECT_TRUE(come_to(refuses, 2));
  make_span();
  EXPECT_TRUE(come_to(at, 1));
  EXPECT_TRUE(logs_export.is_failing());
  EXPECT_FALSE(span_export.is_failing());
}

TEST_F(otlp_logs_sent, the_options_are_checked) {
  const std::function<void(exporter_options&)> wrong[] = {
      [](exporter_options& options) { options.logs_url = "collector"; },
      [](exporter_options& options) { options.log_lines = 0; },
      [](exporter_options& options) {
        options.logs_url = "http://127.0.0.1:1/";
        options.logs_fields.emplace_back("a", "b\r\nc: d");
      },
  };
  for (const auto& change : wrong) {
    exporter_options options;
    change(options);
    EXPECT_THROW(exporter(std::move(options)), option_error);
  }
}

TEST_F(otlp_logs_sent, the_environment_gives_options) {
  EXPECT_EQ(exporter_options::from_environment().logs_url, "");
  ::setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/", 1);
  ::setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
  EXPECT_EQ(exporter_options::from_environment().logs_url, "") << "only if they are asked for";
  EXPECT_TRUE(exporter_options::from_environment().logs_fields.empty());
  ::setenv("OTEL_LOGS_EXPORTER", "OTLP", 1);
  exporter_options made = exporter_options::from_environment();
  EXPECT_EQ(made.logs_url, "http://collector:4318/v1/logs");
  EXPECT_EQ(made.logs_fields.size(), 1u);
  ::setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://other/logs", 1);
  ::setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "c=d,e=f", 1);
  made = exporter_options::from_environment();
  EXPECT_EQ(made.logs_url, "http://other/logs");
  EXPECT_EQ(made.logs_fields.size(), 2u);
  EXPECT_EQ(made.metrics_url, "");
  for (const char* const off : {"none", "console"}) {
    ::setenv("OTEL_LOGS_EXPORTER", off, 1);
    EXPECT_EQ(exporter_options::from_environment().logs_url, "") << off;
  }
  for (const char* const name :
       {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_LOGS_EXPORTER",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_HEADERS"})
    ::unsetenv(name);
}

}  // namespace
}  // namespace troupe::test
