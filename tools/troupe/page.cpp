#include "page.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <troupe/http/server.hpp>
#include <troupe/troupe.hpp>

#include "observe_page/access.hpp"
#include "observe_page/routes.hpp"
#include "program.hpp"
#include "trust/place.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

namespace http = troupe::http;
namespace observe_page = troupe::observe_page;

// One connection to the program for all readers of the page. One question is asked at a time.
observe_page::asker asker_of(int pid) {
  return [asked = std::make_shared<program>(pid)](const std::string& question) {
    try {
      return asked->ask_text(question);
    } catch (const failure& failed) {
      throw observe_page::no_answer(failed.what());
    }
  };
}

std::optional<http::response> refuse(const http::request& asked) {
  if (auto refused = observe_page::refuse_other_site(asked)) return refused;
  if (observe_page::is_local(asked)) return std::nullopt;
  return observe_page::refusal(403, "the page is for names of this machine alone\n");
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
  http::router routes;
  const observe_page::shown_program shown{
      std::make_shared<observe_page::answer_cache>(asker_of(pid)),
      [pid] { return place_of(pid).socket; }};
  observe_page::add_routes(routes, "/", "/metrics", shown, &refuse);
  troupe::runtime_options options;
  options.workers = 1;
  options.observe = false;
  troupe::runtime rt(options);
  http::server_options limits;
  limits.name = "troupe";
  http::server web(std::move(routes), limits);
  auto listener = troupe::tcp_listener::listen(at);
  rt.spawn(stop_by_signal(web));
  print("http://{}/\n", listener.local().to_string());
  std::fflush(stdout);
  rt.spawn(web.serve(std::move(listener)));
  rt.run();
}

}  // namespace troupe_tool
