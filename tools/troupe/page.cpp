#include "page.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <troupe/http/server.hpp>
#include <troupe/troupe.hpp>

#include "metrics.hpp"
#include "page_text.hpp"
#include "program.hpp"

namespace troupe_tool {
namespace {

namespace http = troupe::http;

// One connection to the program for all readers of the page. Asking blocks: see ask().
class asked_program {
 public:
  explicit asked_program(int pid) : of_(pid) {}
  json ask(const std::string& question) {
    std::lock_guard lock(mutex_);
    return of_.ask(question);
  }

 private:
  std::mutex mutex_;
  program of_;
};
using shared_program = std::shared_ptr<asked_program>;

// A page that came from elsewhere must not read this one through a name that leads to the loopback.
bool is_local(const http::request& asked) {
  const std::string_view host = asked.host();
  const std::string_view name = host.substr(0, host.rfind(':'));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

http::response refusal(int status, std::string why) {
  return http::response::owned(std::move(why), "text/plain; charset=utf-8").status(status);
}

troupe::task<json> ask(shared_program of, std::string question) {
  troupe::future<json> answer =
      troupe::blocking([of, question = std::move(question)] { return of->ask(question); });
  co_return co_await std::move(answer);
}

troupe::task<http::response> answer(shared_program of, std::string question) {
  std::optional<http::response> made;
  try {
    const json got = co_await ask(of, std::move(question));
    made = http::response::json(got.dump());
  } catch (const failure& failed) {
    made = refusal(503, failed.what());
  }
  co_return std::move(*made);
}

// A summary each second, until the program or the reader has gone.
troupe::task<> send_summaries(http::event_writer& to, shared_program of) {
  for (;;) {
    std::optional<std::string> summary;
    try {
      const json got = co_await ask(of, "summary");
      summary = got.dump();
    } catch (const failure&) {
    }
    http::event_message message(summary.value_or("{}"));
    if (!summary) message.event = "ended";
    co_await to.send(std::move(message));
    if (!summary) co_return;
    co_await troupe::sleep_for(std::chrono::seconds(1));
  }
}

http::router make_routes(const shared_program& of) {
  http::router routes;
  routes.get("/", [](const http::request& asked) {
    if (!is_local(asked)) return refusal(403, "the page is for names of this machine alone\n");
    return http::response::view(page_text, "text/html; charset=utf-8")
        .field("Content-Security-Policy",
               "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
               "connect-src 'self'")
        .field("X-Content-Type-Options", "nosniff");
  });
  routes.get("/events", [of](const http::request& asked) {
    if (!is_local(asked)) return refusal(403, "the page is for names of this machine alone\n");
    return http::response::events([of](http::event_writer& to) { return send_summaries(to, of); });
  });
  routes.get("/dump", [of](const http::request& asked) -> troupe::task<http::response> {
    if (!is_local(asked)) co_return refusal(403, "");
    co_return co_await answer(of, "dump");
  });
  routes.get("/longest", [of](const http::request& asked) -> troupe::task<http::response> {
    if (!is_local(asked)) co_return refusal(403, "");
    std::string question = "longest " + asked.query_value("runtime").value_or("0") + " 100";
    if (const auto of_class = asked.query_value("class"); of_class && !of_class->empty())
      question += " " + *of_class;
    if (question.find('\n') != std::string::npos)
      co_return refusal(400, "a line is one question\n");
    co_return co_await answer(of, std::move(question));
  });
  routes.get("/metrics", [of](const http::request& asked) -> troupe::task<http::response> {
    if (!is_local(asked)) co_return refusal(403, "");
    std::optional<http::response> made;
    try {
      const json summary = co_await ask(of, "summary");
      made = http::response::owned(as_metrics(summary), "text/plain; version=0.0.4; charset=utf-8");
    } catch (const failure& failed) {
      made = refusal(503, failed.what());
    }
    co_return std::move(*made);
  });
  return routes;
}

troupe::task<> stop_by_signal(http::server web) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  co_await signals.next();
  web.stop();
}

troupe::endpoint loopback_of(const std::string& text) {
  std::optional<troupe::endpoint> at;
  try {
    at = troupe::endpoint::parse(text);
  } catch (const troupe::error& wrong) {
    throw failure(std::string("--listen: ") + wrong.what());
  }
  const std::string host = at->to_string();
  if (!host.starts_with("127.") && !host.starts_with("[::1]:"))
    throw failure("--listen " + text +
                  ": the page is for this machine alone; listen at 127.0.0.1:PORT or [::1]:PORT");
  return *at;
}

}  // namespace

void serve_page(int pid, const std::string& listen) {
  const troupe::endpoint at = loopback_of(listen);
  const auto of = std::make_shared<asked_program>(pid);
  troupe::runtime_options options;
  options.workers = 1;
  options.observe = false;
  troupe::runtime rt(options);
  http::server_options limits;
  limits.name = "troupe";
  http::server web(make_routes(of), limits);
  auto listener = troupe::tcp_listener::listen(at);
  rt.spawn(stop_by_signal(web));
  fmt::print("http://{}/\n", listener.local().to_string());
  std::fflush(stdout);
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
}

}  // namespace troupe_tool
