// What /metrics says of the requests of its server: by route, method and class of the status.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/http.hpp"
#include "support/recorded_spans.hpp"
#include "support/scratch.hpp"
#include "troupe/observe/numbers/instruments.hpp"
#include "troupe/observe_page/observe_page.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::request;
using http::response;
using http::router;

std::string ask(const std::string& method, const std::string& path) {
  return method + " " + path +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
}

class request_numbers : public http_conformance {
 protected:
  request_numbers() { ::setenv("XDG_RUNTIME_DIR", (folder_ / "").c_str(), 1); }
  ~request_numbers() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  // The last answer to these requests, one after the other.
  std::string last_answer_to(router routes, const std::vector<std::string>& requests) {
    add_observe_page(routes);
    runtime_options all = options();
    all.observe = true;
    all.failure_lines = 0;
    runtime rt(all);
    std::string got;
    rt.spawn(serve_while(rt, http::server(std::move(routes)),
                         [&](runtime&, http::server, endpoint at) -> task<> {
                           for (const std::string& one : requests) {
                             task<std::string> asking = exchange(at, one);
                             got = co_await std::move(asking);
                           }
                         }));
    rt.run();
    return got;
  }
  // The value of the sample of that name whose labels have all of these; -1 if there is none.
  static double sample(const std::string& text, const std::string& name,
                       const std::vector<std::string>& labels) {
    for (std::size_t at = 0; (at = text.find("\n" + name + "{", at)) != std::string::npos; ++at) {
      const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      bool has_all = true;
      for (const std::string& one : labels)
        has_all = has_all && line.find(one) != std::string::npos;
      if (has_all) return std::atof(line.c_str() + line.rfind(' '));
    }
    return -1;
  }

 private:
  const scratch folder_;
};

TEST_P(request_numbers, requests_are_counted_by_route_method_and_status) {
  router routes;
  routes.get("/items/{id}", [](const std::string&) { return response::text("item"); });
  routes.post("/items", []() -> task<response> {
    co_await sleep_for(20ms);
    co_return response(201);
  });
  routes.get("/moved", [] { return response(302); });
  const std::string text = last_answer_to(
      std::move(routes), {ask("GET", "/items/1"), ask("GET", "/items/2"), ask("POST", "/items"),
                          ask("GET", "/moved"), ask("GET", "/nowhere"), ask("GET", "/metrics")});
  const std::string count = "troupe_http_request_duration_seconds_count";
  struct expected {
    const char *route, *method, *status;
    double times;
  };
  for (const expected& one : {expected{"/items/{id}", "GET", "2xx", 2},
                              {"/items", "POST", "2xx", 1},
                              {"/moved", "GET", "3xx", 1},
                              {"(none)", "GET", "4xx", 1}}) {
    const std::vector<std::string> labels{"route=\"" + std::string(one.route) + "\"",
                                          "method=\"" + std::string(one.method) + "\"",
                                          "status=\"" + std::string(one.status) + "\""};
    EXPECT_EQ(sample(text, count, labels), one.times) << one.route << '\n' << text;
  }
  EXPECT_GT(sample(text, "troupe_http_request_duration_seconds_sum", {"method=\"POST\""}), 0);
  EXPECT_EQ(sample(text, "troupe_http_requests_in_flight", {}), 1);  // that of /metrics itself
  EXPECT_EQ(sample(text, "troupe_http_accepted_connections_total", {}), 6);
}

TEST_P(request_numbers, numbers_of_the_program_are_beside_them) {
  counter sold("test_sold", "Things that were sold.", {.labels = {"kind"}});
  sold.with({"book"}).add(3);
  const std::string text = last_answer_to(router(), {ask("GET", "/metrics")});
  EXPECT_NE(text.find("# HELP test_sold_total Things that were sold.\n"
                      "# TYPE test_sold_total counter\ntest_sold_total{kind=\"book\"} 3\n"),
            std::string::npos)
      << text;
}

// A trace that is recorded is the exemplar of its request, and of what its handler records.
TEST_P(request_numbers, slow_requests_have_their_trace) {
  const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  const auto traced = [&](const std::string& path, const char* flags) {
    std::string text = ask("GET", path);
    return text.insert(text.find("Connection"),
                       "traceparent: 00-" + trace_id + "-00f067aa0ba902b7-" + flags + "\r\n");
  };
  const auto metrics = [](const std::string& accept) {
    std::string text = ask("GET", "/metrics");
    return text.insert(text.find("Connection"), accept);
  };
  const std::string open = "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n";
  histogram packing("test_packing_seconds", "Time that packing took.", {.bounds = {1.0}});
  for (const char* const flags : {"01", "00"}) {
    const recording spans;
    const auto routes = [&] {
      router made;
      made.get("/items", [&] {
        packing.record(std::string_view(flags) == "01" ? 0.5 : 1.5);
        return response::text("item");
      });
      return made;
    };
    const std::string text = last_answer_to(routes(), {traced("/items", flags), metrics(open)});
    EXPECT_NE(text.find("Content-Type: application/openmetrics-text; version=1.0.0"),
              std::string::npos);
    EXPECT_NE(text.find("\n# EOF\n"), std::string::npos);
    const bool is_sampled = std::string_view(flags) == "01";
    std::size_t exemplars = 0;
    for (const char* const name :
         {"troupe_http_request_duration_seconds_bucket{", "test_packing_seconds_bucket{"}) {
      for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; ++at) {
        const std::string line = text.substr(at, text.find('\n', at) - at);
        if (line.find(" # {trace_id=\"" + trace_id + "\",span_id=\"") != std::string::npos)
          ++exemplars;
      }
    }
    // The program's own histogram keeps the exemplar of the first round.
    EXPECT_EQ(exemplars, is_sampled ? 2u : 1u) << flags << '\n' << text;
    const std::string plain = last_answer_to(routes(), {traced("/items", flags), metrics("")});
    EXPECT_EQ(plain.find("trace_id"), std::string::npos);
    EXPECT_EQ(plain.find("# EOF"), std::string::npos);
  }
}

TROUPE_HTTP_TEST_EACH(request_numbers);

}  // namespace
}  // namespace troupe::test
