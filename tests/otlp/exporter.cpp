// What the exporter sends, and what it does with collectors that are slow, away, or malicious. The
// collectors are plain threads.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "otlp/collector.hpp"
#include "otlp/requests.hpp"
#include "support/conformance.hpp"
#include "support/resident.hpp"
#include "troupe/otlp/exporter.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using otlp::exporter;
using otlp::exporter_counts;
using otlp::exporter_options;
using otlp::metrics_export;
using otlp::span_export;

void make_spans(int count) {
  runtime rt;
  rt.spawn(
      [](int n) -> task<> {
        for (int i = 0; i < n; ++i) co_await with_span("one", []() -> task<> { co_return; });
      },
      count);
  rt.run();
}

using pairs = std::vector<std::pair<std::string, std::string>>;

std::uint64_t all_of(const exporter_counts& of) {
  return of.exported + of.dropped + of.rejected + of.waiting;
}

TEST(otlp_exporter, sends_spans_as_json) {
  collector at([](int) { return answer("200 OK"); });
  exporter_options options = to(at.url());
  options.service_name = "a \"shop\"\n";
  options.attributes.emplace_back("service.version", "1.2");
  options.fields.emplace_back("Authorization", "Bearer 123");
  exporter spans(std::move(options));
  {
    runtime rt;
    rt.spawn([]() -> task<> {
      const auto caller = trace_context::parse(
          "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=\"1\"");
      const auto stated = []() -> task<> {
        co_await with_span("stated", []() -> task<> { co_return; });
      };
      co_await with_trace(*caller, stated);
      co_await with_span("outer", []() -> task<> {
        this_call::span_attribute("number", -5);
        this_call::span_attribute("text", "\xff\x01");
        co_await with_span("inner", []() -> task<> { co_return; });
      });
    });
    rt.run();
  }
  EXPECT_TRUE(spans.flush(20s));
  const exporter_counts counts = spans.counts();
  EXPECT_EQ(counts.exported, 3u);
  EXPECT_EQ(all_of(counts), 3u);
  std::string all;
  for (const std::string& one : at.requests()) all += one;
  for (const char* part :
       {"POST /v1/traces HTTP/1.1\r\n", "Content-Type: application/json\r\n",
        "Authorization: Bearer 123\r\n", R"({"resourceSpans":[{"resource":{"attributes":[)",
        R"({"key":"service.name","value":{"stringValue":"a \"shop\"\n"}})",
        R"({"key":"service.version","value":{"stringValue":"1.2"}})",
        R"({"key":"telemetry.sdk.language","value":{"stringValue":"cpp"}})",
        R"({"key":"telemetry.sdk.name","value":{"stringValue":"troupe"}})",
        R"({"key":"telemetry.sdk.version","value":{"stringValue":")", R"("name":"outer","kind":1)",
        R"({"key":"number","value":{"intValue":"-5"}})", R"("key":"text")", R"("parentSpanId":")",
        R"("status":{}})", R"(,"traceState":"a=\"1\"","flags":1,"name":"stated")"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
}

std::string metrics_url_of(const collector& at) {
  return at.url().substr(0, at.url().find("/v1/")) + "/v1/metrics";
}

TEST(otlp_exporter, sends_metrics) {
  collector at([](int) { return answer("200 OK"); });
  static counter sold("exported_sold", "Things that were sold.", {.labels = {"kind"}});
  sold.with({"book"}).add(3);
  exporter_options options = to(at.url());
  options.service_name = "shop";
  options.metrics_url = metrics_url_of(at);
  options.metrics_interval = 20ms;
  options.fields.emplace_back("Authorization", "of spans");
  options.metrics_fields.emplace_back("Authorization", "of metrics");
  {
    exporter spans(std::move(options));
    runtime_options observed;
    observed.observe = true;
    runtime rt(observed);
    rt.spawn([&]() -> task<> {
      for (int i = 0; i < 3'000 && at.requests().size() < 3; ++i) co_await sleep_for(10ms);
    });
    rt.run();
    EXPECT_GE(spans.counts().requests, 2u);
    EXPECT_EQ(spans.counts().failed_requests, 0u);
  }
  const std::string all = bodies_of(at, "/v1/metrics");
  for (const char* part :
       {"Content-Type: application/json\r\n", "Authorization: of metrics\r\n",
        R"({"resourceMetrics":[{"resource":{"attributes":[)",
        R"({"key":"service.name","value":{"stringValue":"shop"}})",
        R"({"name":"exported_sold","description":"Things that were sold.","unit":"1","sum":)",
        R"([{"key":"kind","value":{"stringValue":"book"}}])", R"("asInt":"3")",
        R"({"name":"troupe_actors","description":)", R"({"name":"process_cpu_seconds",)",
        R"({"name":"troupe_otlp_requests",)"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all.substr(0, 5'000);
  EXPECT_EQ(all.find("of spans"), std::string::npos) << "fields of one are not sent to the other";
  EXPECT_TRUE(bodies_of(at, "/v1/traces").empty()) << "there were no spans";
}

TEST(otlp_exporter, sends_the_last_metrics_at_its_end) {
  for (const bool is_taken : {true, false}) {
    collector at([&](int) { return answer(is_taken ? "200 OK" : "404 Not Found"); });
    exporter_options options = to(at.url());
    options.metrics_url = metrics_url_of(at);
    { const exporter spans(options); }
    EXPECT_EQ(at.requests().size(), 1u) << "a request that fails is not repeated";
    EXPECT_FALSE(bodies_of(at, "/v1/metrics").empty());
  }
  collector never([](int) { return answer("200 OK"); });
  { const exporter spans(to(never.url())); }
  EXPECT_TRUE(never.requests().empty()) << "without a URL no metrics are sent";
}

// Spans that nobody takes wait for minutes, between two tries or behind each other.
TEST(otlp_exporter, metrics_do_not_wait_for_spans) {
  struct unsent {
    int spans, attempts;
    std::chrono::milliseconds answers_in;
  };
  for (const auto& [spans, attempts, answers_in] :
       {unsent{3, 1'000, 0ms}, unsent{1'000, 1, 50ms}}) {
    collector refuses([&, wait = answers_in](int) {
      std::this_thread::sleep_for(wait);  // sleeps: a collector that is slow
      return answer("503 Service Unavailable");
    });
    collector at([](int) { return answer("200 OK"); });
    exporter_options options = to(refuses.url());
    options.batch = 1;
    options.attempts = attempts;
    options.flush_time = 200ms;
    options.metrics_url = metrics_url_of(at);
    options.metrics_interval = 20ms;
    exporter both(std::move(options));
    make_spans(spans);
    EXPECT_TRUE(come_to(refuses, 5));
    const std::size_t before = at.requests().size();
    EXPECT_TRUE(come_to(at, before + 5)) << attempts;
    EXPECT_GT(both.counts().waiting, 0u) << "they still wait";
    EXPECT_TRUE(span_export.is_failing()) << "metrics that are taken say nothing of spans";
    EXPECT_FALSE(metrics_export.is_failing());
  }
}

TEST(otlp_exporter, metrics_that_fail_say_nothing_of_spans) {
  collector refuses([](int) { return answer("503 Service Unavailable"); });
  collector at([](int) { return answer("200 OK"); });
  exporter_options options = to(at.url());
  options.metrics_url = metrics_url_of(refuses);
  options.metrics_interval = 20ms;
  exporter both(std::move(options));
  make_spans(3);
  EXPECT_TRUE(both.flush(20s));
  EXPECT_TRUE(come_to(refuses, 3));
  EXPECT_FALSE(span_export.is_failing());
  EXPECT_TRUE(metrics_export.is_failing());
}

// A collector that takes requests and never answers has neither the last metrics nor the last
// spans, and keeps nothing from the other one.
TEST(otlp_exporter, a_silent_collector_does_not_take_the_time_of_another_at_the_end) {
  for (const bool has_silent_spans : {true, false}) {
    std::atomic<bool> ends{false};
    collector silent([&](int) {
      ends.wait(false);
      return std::string();
    });
    collector at([](int) { return answer("200 OK"); });
    exporter_options options = to(has_silent_spans ? silent.url() : at.url());
    options.metrics_url = metrics_url_of(has_silent_spans ? at : silent);
    options.flush_time = 4s;
    if (!has_silent_spans) options.interval = std::chrono::hours(1);
    {
      const exporter both(std::move(options));
      make_spans(3);
      if (has_silent_spans) {
        EXPECT_TRUE(come_to(silent, 1)) << "a request is under way";
      }
    }
    EXPECT_EQ(bodies_of(at, "/v1/metrics").empty(), !has_silent_spans);
    EXPECT_EQ(bodies_of(at, "/v1/traces").empty(), has_silent_spans);
    EXPECT_GE(silent.requests().size(), 1u);
    ends = true;
    ends.notify_all();
  }
}

TEST(otlp_exporter, sends_what_waits_at_its_end) {
  collector at([](int) { return answer("200 OK"); });
  {
    exporter_options options = to(at.url());
    options.interval = std::chrono::hours(1);
    options.flush_time = 20s;
    const exporter spans(std::move(options));
    make_spans(700);  // a batch, and a part of one
  }
  std::string all;
  for (const std::string& one : at.requests()) all += one;
  std::size_t count = 0;
  for (std::size_t i = all.find("\"traceId\""); i != std::string::npos;
       i = all.find("\"traceId\"", i + 1))
    ++count;
  EXPECT_EQ(count, 700u);
  EXPECT_LE(at.requests().size(), 3u);
}

TEST(otlp_exporter, sends_again_what_a_collector_could_not_take) {
  for (const std::string& first :
       {answer("503 Service Unavailable", "later", "Retry-After: 0\r\n"), answer("429 Too Many"),
        answer("502 Bad Gateway", "", "Retry-After: Tue, 29 Feb\r\n"), std::string()}) {
    collector at([&](int request) { return request == 1 ? first : answer("200 OK"); });
    exporter spans(to(at.url()));
    make_spans(3);
    EXPECT_TRUE(spans.flush(20s)) << first;
    EXPECT_EQ(spans.counts().exported, 3u) << first;
    EXPECT_GE(spans.counts().failed_requests, 1u) << first;
    EXPECT_EQ(all_of(spans.counts()), 3u);
  }
}

TEST(otlp_exporter, drops_what_a_collector_refuses) {
  collector at([&](int) { return answer("400 Bad Request", "{\"message\":\"no\"}"); });
  exporter spans(to(at.url()));
  make_spans(3);
  EXPECT_TRUE(spans.flush(20s));
  EXPECT_EQ(spans.counts().rejected, 3u);
  EXPECT_EQ(all_of(spans.counts()), 3u);
}

TEST(otlp_exporter, counts_what_a_collector_takes_in_part) {
  const std::pair<std::string, std::uint64_t> cases[] = {
      {R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}})", 2},
      {R"({"partialSuccess": { "rejectedSpans" : 1 }})", 1},
      {R"({"partialSuccess":{"rejectedSpans":"99999999999999"}})", 3},
      {R"({"partialSuccess":{"rejectedSpans":"99999999999999999999999999"}})", 0},
      {R"({"partialSuccess":{"rejectedSpans":-4}})", 0},
      {R"({"partialSuccess":{"rejectedSpans":)", 0},
      {R"("rejectedSpans")", 0},
      {std::string(1000, '{'), 0},
      {std::string("\0\xff\0", 3), 0},
      {"", 0},
  };
  for (const auto& [text, rejected] : cases) {
    collector at([&](int) { return answer("200 OK", text); });
    exporter_options options = to(at.url());
    options.interval = 10s;  // one request
    exporter spans(std::move(options));
    make_spans(3);
    EXPECT_TRUE(spans.flush(20s));
    EXPECT_EQ(spans.counts().rejected, rejected) << text;
    EXPECT_EQ(spans.counts().exported, 3 - rejected) << text;
  }
}

// Nothing that a collector sends ends the program, or lets it wait for longer than it should.
TEST(otlp_exporter, bears_answers_that_are_none) {
  const std::string answers[] = {
      "hello\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n{",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 999999 What\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'),
      std::string(1'000'000, 'x'),
      answer("204 No Content", ""),
  };
  for (const std::string& text : answers) {
    collector at([&](int) { return text; });
    exporter_options options = to(at.url());
    options.attempts = 2;
    options.request_time = 500ms;
    options.flush_time = 100ms;
    exporter spans(std::move(options));
    make_spans(10);
    EXPECT_TRUE(spans.flush(30s)) << text.substr(0, 80);
    EXPECT_EQ(all_of(spans.counts()), 10u) << text.substr(0, 80);
  }
}

TEST(otlp_exporter, drops_when_nobody_listens) {
  exporter_options options = to("http://127.0.0.1:1/v1/traces");
  options.attempts = 2;
  exporter spans(std::move(options));
  make_spans(3);
  EXPECT_TRUE(spans.flush(20s));
  EXPECT_EQ(spans.counts().dropped, 3u);
}

// A collector that takes requests and never answers.
TEST(otlp_exporter, keeps_to_its_bounds_when_a_collector_is_silent) {
  std::atomic<bool> ends{false};
  std::chrono::steady_clock::time_point began;
  collector at([&](int) {
    ends.wait(false);
    return std::string();
  });
  {
    exporter_options options = to(at.url());
    options.spans = 1000;
    options.flush_time = 200ms;
    exporter spans(std::move(options));
    make_spans(2000);
    const std::size_t before = resident_bytes();
    constexpr int count = slow ? 30'000 : 300'000;
    make_spans(count);
    const exporter_counts counts = spans.counts();
    EXPECT_LE(counts.waiting, 1000u);
    EXPECT_EQ(all_of(counts), 2000u + count);
    EXPECT_EQ(counts.exported, 0u);
    // Sanitizers keep what was freed.
    if (!slow) {
      EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20)) << "about 150 MB of spans";
    }
    EXPECT_FALSE(spans.flush(50ms));
    began = std::chrono::steady_clock::now();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 9s) << "less than the time for one request";
  ends = true;
  ends.notify_all();
}

TEST(otlp_exporter, the_options_are_checked) {
  const std::function<void(exporter_options&)> wrong[] = {
      [](exporter_options& of) { of.rate = -0.1; },
      [](exporter_options& of) { of.rate = 1.1; },
      [](exporter_options& of) { of.spans = 0; },
      [](exporter_options& of) { of.batch = 0; },
      [](exporter_options& of) { of.attempts = 0; },
      [](exporter_options& of) { of.interval = 0ms; },
      [](exporter_options& of) { of.request_time = 0ms; },
      [](exporter_options& of) { of.flush_time = -1ms; },
      [](exporter_options& of) { of.url = "collector"; },
      [](exporter_options& of) { of.url = "ftp://a/"; },
      [](exporter_options& of) { of.fields.emplace_back("a", "b\r\nc: d"); },
  };
  for (const auto& change : wrong) {
    exporter_options options;
    change(options);
    EXPECT_THROW(exporter(std::move(options)), option_error);
  }
  const exporter first(to("http://127.0.0.1:1/"));
  EXPECT_THROW(exporter(to("http://127.0.0.1:1/")), usage_error);
}

TEST(otlp_exporter, the_environment_gives_options) {
  ::setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/", 1);
  ::setenv("OTEL_SERVICE_NAME", "shop", 1);
  ::setenv("OTEL_TRACES_SAMPLER_ARG", "0.25", 1);
  exporter_options made = exporter_options::from_environment();
  EXPECT_EQ(made.url, "http://collector:4318/v1/traces");
  EXPECT_EQ(made.service_name, "shop");
  EXPECT_EQ(made.rate, 0.25);
  ::setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other/traces", 1);
  for (const char* rate : {"2", "-1", "nan", "a", "", "0.5x"}) {
    ::setenv("OTEL_TRACES_SAMPLER_ARG", rate, 1);
    made = exporter_options::from_environment();
    EXPECT_EQ(made.url, "http://other/traces");
    EXPECT_EQ(made.rate, 1) << rate;
  }
  ::setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20123, X-Tenant = a ", 1);
  ::setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,service.version=1.2,a%3Db=%2C", 1);
  ::setenv("OTEL_TRACES_SAMPLER", "always_off", 1);
  made = exporter_options::from_environment();
  EXPECT_EQ(made.fields, (pairs{{"Authorization", "Bearer 123"}, {"X-Tenant", "a"}}));
  EXPECT_EQ(made.service_name, "shop");
  EXPECT_EQ(made.attributes, (pairs{{"service.version", "1.2"}, {"a=b", ","}}));
  EXPECT_EQ(made.rate, 0);
  EXPECT_FALSE(made.parent_based);
  ::setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "X-Tenant=b", 1);
  ::unsetenv("OTEL_SERVICE_NAME");
  made = exporter_options::from_environment();
  EXPECT_EQ(made.fields, (pairs{{"X-Tenant", "b"}}));
  EXPECT_EQ(made.service_name, "other");
  for (const char* name :
       {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"})
    ::unsetenv(name);
}

// The secret of a header is in no line.
TEST(otlp_exporter, malformed_variables_count_as_unset) {
  for (const char* name : {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES"}) {
    for (const char* text : {"secret", "=secret", "a=%zz", "a=b,secret", "a=%00"}) {
      ::setenv(name, text, 1);
      const exporter_options made = exporter_options::from_environment();
      EXPECT_TRUE(made.fields.empty()) << name << text;
      EXPECT_TRUE(made.attributes.empty()) << name << text;
      EXPECT_EQ(made.service_name, "unknown_service");
    }
    ::unsetenv(name);
  }
  for (const char* text : {"a b=secret", "a=b%0D%0Ac: secret"}) {
    ::setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", text, 1);
    EXPECT_TRUE(exporter_options::from_environment().fields.empty()) << text;
  }
  ::unsetenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
}

TEST(otlp_exporter, is_neither_simulated_nor_observed) {
  collector at([](int) { return answer("200 OK"); });
  ::setenv("TROUPE_POLICY", "simulated", 1);
  {
    exporter spans(to(at.url()));
    make_spans(3);
    EXPECT_TRUE(spans.flush(20s));
    EXPECT_EQ(spans.counts().exported, 3u);
  }
  ::unsetenv("TROUPE_POLICY");
}

TEST(otlp_exporter, a_handler_cannot_wait_for_it) {
  exporter spans(to("http://127.0.0.1:1/"));
  runtime rt;
  rt.spawn([&]() -> task<> {
    EXPECT_THROW(spans.flush(1s), usage_error);
    co_return;
  });
  rt.run();
}

// Several may come one after the other, also while spans are made.
TEST(otlp_exporter, comes_and_goes_while_spans_are_made) {
  collector at([](int) { return answer("200 OK"); });
  std::atomic<bool> ends{false};
  std::thread makes([&] {
    while (!ends) make_spans(100);
  });
  for (int i = 0; i < 20; ++i) {
    exporter_options options = to(at.url());
    options.batch = 7;
    exporter spans(std::move(options));
    make_spans(50);
    spans.flush(1s);
  }
  ends = true;
  makes.join();
}

}  // namespace
}  // namespace troupe::test
