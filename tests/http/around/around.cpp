// Functions in front of handlers, and those that the library has.
#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "support/http.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/database/error.hpp"
#include "troupe/dns/resolver.hpp"
#include "troupe/http/around/access.hpp"
#include "troupe/http/around/limits.hpp"
#include "troupe/http/around/log.hpp"
#include "troupe/http/client_error.hpp"
#include "troupe/http/values/status_error.hpp"
#include "troupe/kit/try_later.hpp"
#include "troupe/log/log.hpp"
#include "troupe/nats/error.hpp"

namespace troupe::test {
namespace {

using http::next_handler;
using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;

class http_around : public http_conformance {};

std::string get(std::string_view target, std::string_view fields = "",
                std::string_view method = "GET") {
  return std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" +
         std::string(fields) + "Connection: close\r\n\r\n";
}
std::string status_and_body(const std::string& answer) {
  return answer.substr(9, 3) + " " + answer.substr(answer.find("\r\n\r\n") + 4);
}
bool has(const std::string& answer, std::string_view line) {
  return answer.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
}

// A plain handler, one that waits, one with a body, one that is refused, one of a number.
router some_routes() {
  router routes;
  routes.get("/plain", [] { return response::text("plain"); });
  routes.get("/waits", []() -> task<response> {
    co_await sleep_for(1ms);
    co_return response::text("waits");
  });
  routes.post("/body", [](const request& asked) {
    return response::text("body " + std::string(asked.body()));
  });
  routes.get("/conflict", []() -> response { throw http::status_error(409, "it was sent"); });
  routes.get("/number/{n}", [](int n) { return response::text(std::to_string(n)); });
  return routes;
}

TEST_P(http_around, the_three_forms_are_called_from_the_last_to_the_first) {
  const auto routes = [] {
    router made = some_routes();
    made.around([](request& asked, next_handler next) -> task<response> {
      response answer = co_await next(asked);
      answer.field("X-Order", "around");
      co_return answer;
    });
    made.around([](const request& asked) -> std::optional<response> {
      if (asked.query_value("stop")) return response::text("stopped");
      return std::nullopt;
    });
    made.around([](const request&, response& answer) { answer.field("X-Order", "after"); });
    return made;
  };
  for (const char* target : {"/plain", "/waits", "/conflict", "/number/7", "/number/x"}) {
    const std::string got = answer_to(routes(), get(target));
    EXPECT_NE(got.find("X-Order: around\r\nX-Order: after\r\n"), std::string::npos) << got;
    const std::string stopped = answer_to(routes(), get(std::string(target) + "?stop"));
    EXPECT_EQ(status_and_body(stopped), "200 stopped");
    EXPECT_TRUE(has(stopped, "X-Order: after"));
    EXPECT_FALSE(has(stopped, "X-Order: around"));
  }
  const auto ask = [&](const std::string& bytes) {
    return status_and_body(answer_to(routes(), bytes));
  };
  EXPECT_EQ(ask(get("/plain")), "200 plain");
  EXPECT_EQ(ask(get("/waits")), "200 waits");
  EXPECT_EQ(ask(get("/conflict")), "409 it was sent\n");
  EXPECT_EQ(ask(get("/number/7")), "200 7");
  EXPECT_EQ(ask(get("/number/x")), "404 Not Found\n");
  EXPECT_EQ(
      ask("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"),
      "200 body abc");
}

// What is in front of all routes sees requests without one.
TEST_P(http_around, requests_without_a_route) {
  const auto routes = [](bool waits) {
    router made = some_routes();
    made.around("/plain", [](const request&, response& answer) { answer.field("X-One", "1"); });
    made.around([](const request& asked) -> std::optional<response> {
      if (asked.query_value("stop")) return response::text("stopped").status(403);
      return std::nullopt;
    });
    made.around([](const request& asked, response& answer) {
      answer.field("X-Seen", std::to_string(answer.status()) + " " + std::string(asked.path()));
    });
    if (waits) made.around(http::overload_as_503());
    return made;
  };
  for (const bool waits : {false, true}) {
    const auto ask = [&](const std::string& bytes) { return answer_to(routes(waits), bytes); };
    const std::string none = ask(get("/none"));
    EXPECT_EQ(status_and_body(none), "404 Not Found\n");
    EXPECT_TRUE(has(none, "X-Seen: 404 /none")) << none;
    EXPECT_FALSE(has(none, "X-One: 1")) << none;
    EXPECT_EQ(status_and_body(ask(get("/none?stop"))), "403 stopped");
    const std::string other = ask("DELETE /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(status_and_body(other), "405 Method Not Allowed\n");
    EXPECT_TRUE(has(other, "Allow: GET, HEAD, OPTIONS")) << other;
    EXPECT_TRUE(has(other, "X-Seen: 405 /plain")) << other;
    const std::string options =
        ask("OPTIONS /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(options.starts_with("HTTP/1.1 204")) << options;
    EXPECT_TRUE(has(options, "X-Seen: 204 /plain")) << options;
    const std::string all = ask("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(all.starts_with("HTTP/1.1 204")) << all;
    EXPECT_TRUE(has(all, "Allow: GET, HEAD, POST, OPTIONS")) << all;
  }
}

// Nobody reads the body, which is longer than a body may be, or never comes.
TEST_P(http_around, bodies_without_a_route_are_not_read) {
  for (const bool waits : {false, true}) {
    const auto ask = [&](const std::string& length, const std::string& body) {
      router made = some_routes();
      made.around([](const request& asked, response& answer) {
        EXPECT_EQ(asked.body(), "");
        answer.field("X-Seen", "1");
      });
      if (waits) made.around(http::overload_as_503());
      const std::string got =
          answer_to(std::move(made), "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: " + length +
                                         "\r\n\r\n" + body + get("/plain"));
      EXPECT_TRUE(got.starts_with("HTTP/1.1 404")) << got;
      EXPECT_TRUE(has(got, "X-Seen: 1")) << got;
      EXPECT_EQ(got.find("HTTP/1.1 413"), std::string::npos) << got;
    };
    ask("3", "abc");
    ask("5000000", "abc");
  }
}

TEST_P(http_around, one_pattern_alone) {
  const auto routes = [] {
    router made = some_routes();
    made.around("/number/{any}", [](const request&) -> std::optional<response> {
      return response::text("instead");
    });
    return made;
  };
  EXPECT_EQ(status_and_body(answer_to(routes(), get("/number/7"))), "200 instead");
  EXPECT_EQ(status_and_body(answer_to(routes(), get("/plain"))), "200 plain");
  EXPECT_THROW(some_routes().around("/nowhere", http::request_id()), usage_error);
}

TEST_P(http_around, a_plain_handler_stays_plain_behind_functions_that_do_not_wait) {
  router made = some_routes();
  made.around([](const request&, response&) {});
  made.around([](const request&) { return std::optional<response>(); });
  EXPECT_FALSE(made.find(http::method::get, "/plain").handler->call->waits);
  made.around(http::overload_as_503());
  EXPECT_TRUE(made.find(http::method::get, "/plain").handler->call->waits);
}

TEST_P(http_around, rate_per_key) {
  const auto routes = [] {
    router made = some_routes();
    made.around(http::rate_per({.tokens = 2, .per = 1h}, [](const request& asked) {
      return asked.cookie<std::optional<std::string>>("user");
    }));
    return made;
  };
  std::string all;
  for (const char* user : {"a", "a", "b", "a"})
    all += "GET /plain HTTP/1.1\r\nHost: a\r\nCookie: user=" + std::string(user) + "\r\n\r\n";
  const std::string got = answer_to(routes(), all + get("/plain"));
  std::string statuses;
  for (std::size_t at = got.find("HTTP/1.1 "); at != std::string::npos;
       at = got.find("HTTP/1.1 ", at + 1))
    statuses += got.substr(at + 9, 4);
  EXPECT_EQ(statuses, "200 200 200 429 200 ") << got;
  EXPECT_TRUE(has(got, "Retry-After: 1800")) << got;
}

TEST_P(http_around, rate_per_peer) {
  router made = some_routes();
  made.around(http::rate_per({.tokens = 1, .per = 1h}));
  const std::string one = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string got = answer_to(std::move(made), one + get("/plain"));
  EXPECT_NE(got.find("HTTP/1.1 200"), std::string::npos) << got;
  EXPECT_NE(got.find("HTTP/1.1 429"), std::string::npos) << got;
}

TEST_P(http_around, at_a_time) {
  event inside, leave;
  router made;
  made.get("/held", [inside, leave]() -> task<response> {
    inside.set();
    co_await leave.wait();
    co_return response::text("held");
  });
  made.around(http::at_a_time(1));
  std::string first, second, third;
  run(std::move(made), [&](runtime& rt, http::server, endpoint at) -> task<> {
    auto early = rt.spawn(exchange(at, get("/held")));
    co_await inside.wait();
    second = co_await exchange(at, get("/held"));
    leave.set();
    first = co_await std::move(early);
    third = co_await exchange(at, get("/held"));
  });
  EXPECT_EQ(status_and_body(first), "200 held");
  EXPECT_EQ(status_and_body(second), "503 Service Unavailable\n");
  EXPECT_TRUE(has(second, "Retry-After: 1")) << second;
  EXPECT_EQ(status_and_body(third), "200 held");
}

TEST_P(http_around, at_a_time_per_key) {
  event inside, leave;
  router made;
  made.get("/held", [inside, leave]() -> task<response> {
    inside.set();
    co_await leave.wait();
    co_return response::text("held");
  });
  made.get("/throws", []() -> task<response> {
    co_await sleep_for(1ns);
    throw http::status_error(409, "thrown");
  });
  made.around(http::at_a_time_per(
      1, [](const request& asked) { return asked.query<std::optional<std::string>>("key"); }));
  run(std::move(made), [&](runtime& rt, http::server, endpoint at) -> task<> {
    auto early = rt.spawn(exchange(at, get("/held?key=a")));
    co_await inside.wait();
    const std::string same = co_await exchange(at, get("/held?key=a"));
    EXPECT_EQ(status_and_body(same), "429 Too Many Requests\n");
    EXPECT_TRUE(has(same, "Retry-After: 1")) << same;
    const std::string thrown = co_await exchange(at, get("/throws?key=b"));
    EXPECT_EQ(status_and_body(thrown), "409 thrown\n");
    leave.set();
    for (const char* target : {"/held?key=b", "/held", "/held"}) {
      const std::string other = co_await exchange(at, get(target));
      EXPECT_EQ(status_and_body(other), "200 held") << target;
    }
    const std::string first = co_await std::move(early);
    EXPECT_EQ(status_and_body(first), "200 held");
    const std::string again = co_await exchange(at, get("/held?key=a"));
    EXPECT_EQ(status_and_body(again), "200 held");
  });
  EXPECT_THROW(http::at_a_time_per(0), usage_error);
}

TEST_P(http_around, at_a_time_per_peer) {
  event inside, leave;
  router made;
  made.get("/held", [inside, leave]() -> task<response> {
    inside.set();
    co_await leave.wait();
    co_return response::text("held");
  });
  made.around(http::at_a_time_per(1));
  run(std::move(made), [&](runtime& rt, http::server, endpoint at) -> task<> {
    auto early = rt.spawn(exchange(at, get("/held")));
    co_await inside.wait();
    const std::string same = co_await exchange(at, get("/held"));
    EXPECT_EQ(status_and_body(same), "429 Too Many Requests\n");
    leave.set();
    const std::string first = co_await std::move(early);
    EXPECT_EQ(status_and_body(first), "200 held");
  });
}

TEST_P(http_around, time_limit) {
  const auto routes = [](std::chrono::nanoseconds at_most) {
    router made = some_routes();
    made.get("/never", []() -> task<response> {
      co_await event().wait();
      co_return response::text("never");
    });
    made.around(http::time_limit(at_most));
    return made;
  };
  EXPECT_EQ(status_and_body(answer_to(routes(5ms), get("/never"))), "503 Service Unavailable\n");
  EXPECT_EQ(status_and_body(answer_to(routes(1h), get("/waits"))), "200 waits");
}

TEST_P(http_around, what_is_full_is_503) {
  const auto routes = [] {
    router made;
    made.get("/later", []() -> response { throw try_later("full", 2'500ms); });
    made.get("/waits_later", []() -> task<response> {
      co_await sleep_for(1ms);
      throw try_later("full", 0ms);
    });
    made.get("/full", []() -> response { throw mailbox_full("full"); });
    made.around(http::overload_as_503());
    return made;
  };
  const auto ask = [&](std::string_view target, std::string_view seconds) {
    const std::string got = answer_to(routes(), get(target));
    EXPECT_EQ(status_and_body(got), "503 Service Unavailable\n");
    EXPECT_TRUE(has(got, "Retry-After: " + std::string(seconds))) << got;
  };
  ask("/later", "3");
  ask("/waits_later", "1");
  ask("/full", "1");
}

// What a handler may throw because something that it needs is away, or is not.
template <class Error, class... Args>
std::function<void()> thrower(Args... args) {
  return [=] { throw Error(args...); };
}
const std::vector<std::pair<std::function<void()>, bool>>& errors_of_needs() {
  static const std::vector<std::pair<std::function<void()>, bool>> all{
      {thrower<try_later>("full", 1s), true},
      {thrower<timed_out>("late"), true},
      {thrower<io_error>(literal("connect"), "a", ECONNREFUSED), true},
      {thrower<io_error>(literal("receive"), "a", ECONNRESET), true},
      {thrower<io_error>(literal("open"), "a", EMFILE), true},
      {thrower<http::client_error>(http::client_failure::closed, "http://a/", ""), true},
      {thrower<database::error>(database::failure::unreachable, 0, "away"), true},
      {thrower<database::error>(database::failure::busy, 0, "busy"), true},
      {thrower<nats::error>(nats::failure::no_responders, "nobody"), true},
      {thrower<cluster::error>(cluster::failure::full, "full"), true},
      {thrower<resolve_error>(resolve_failure::try_again, "a", "no answer"), true},
      {thrower<io_error>(literal("open"), "a", ENOENT), false},
      {thrower<http::client_error>(http::client_failure::bad_response, "http://a/", ""), false},
      {thrower<database::error>(database::failure::statement, 0, "wrong"), false},
      {thrower<nats::error>(nats::failure::too_large, "large"), false},
      {thrower<cluster::error>(cluster::failure::denied, "denied"), false},
      {thrower<resolve_error>(resolve_failure::host_not_found, "a", "no such name"), false},
      {thrower<std::runtime_error>("a bug"), false},
  };
  return all;
}
router routes_that_need() {
  router made;
  made.get("/at_once/{i}", [](std::size_t i) -> response {
    errors_of_needs()[i].first();
    return response();
  });
  made.get("/later/{i}", [](std::size_t i) -> task<response> {
    co_await sleep_for(1ns);
    errors_of_needs()[i].first();
    co_return response();
  });
  return made;
}

TEST_P(http_around, what_is_away_is_503) {
  for (std::size_t i = 0; i < errors_of_needs().size(); ++i) {
    if (!errors_of_needs()[i].second) continue;
    for (const char* path : {"/at_once/", "/later/"}) {
      router made = routes_that_need();
      made.around(http::overload_as_503());
      const std::string got = answer_to(std::move(made), get(path + std::to_string(i)));
      EXPECT_EQ(status_and_body(got), "503 Service Unavailable\n") << i;
      EXPECT_TRUE(has(got, "Retry-After: 1")) << got;
    }
  }
}

// Whatever a handler throws, the connection stays, and the program has no failure.
TEST_P(http_around, recover_answers_each_exception) {
  std::atomic<std::size_t> told{0};
  router made = routes_that_need();
  made.around(http::recover([&](const request&, const std::exception_ptr&) { ++told; }));
  std::string all;
  for (std::size_t i = 0; i < errors_of_needs().size(); ++i)
    all += "GET /later/" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string got = answer_to(std::move(made), all + get("/at_once/0"));
  std::size_t at = 0;
  for (const auto& [thrown, is_away] : errors_of_needs()) {
    at = got.find("HTTP/1.1 ", at) + 9;
    EXPECT_EQ(got.substr(at, 3), is_away ? "503" : "500") << got.substr(at);
  }
  EXPECT_EQ(told, errors_of_needs().size() + 1);
}

// A client that goes while its body is read is no failure of what the handler needs.
TEST_P(http_around, a_client_that_goes_is_not_recovered) {
  std::atomic<int> told{0};
  event gone;
  router made;
  made.post("/", [gone](request& asked) -> task<response> {
    try {
      co_await asked.read_all();
    } catch (...) {
      gone.set();
      throw;
    }
    co_return response::text("all");
  });
  made.around(http::overload_as_503());
  made.around(http::recover([&](const request&, const std::exception_ptr&) { ++told; }));
  run(std::move(made), [&](runtime&, http::server, endpoint at) -> task<> {
    {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    }
    co_await gone.wait();
  });
  EXPECT_EQ(told, 0);
}

TEST_P(http_around, recover_answers_500_and_goes_on) {
  std::atomic<int> told{0};
  router made = some_routes();
  made.get("/throws", []() -> response { throw std::runtime_error("a bug"); });
  made.around(http::recover([&](const request&, std::exception_ptr thrown) {
    EXPECT_THROW(std::rethrow_exception(thrown), std::runtime_error);
    ++told;
  }));
  const std::string one = "GET /throws HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string got = answer_to(std::move(made), one + get("/conflict"));
  EXPECT_EQ(got.substr(9, 3), "500") << got;
  EXPECT_NE(got.find("HTTP/1.1 409"), std::string::npos) << got;
  EXPECT_EQ(told, 1);
}

TEST_P(http_around, basic_credentials) {
  const auto ask = [&](std::string_view fields) {
    router made = some_routes();
    made.around(http::basic_auth("the stock", [](std::string_view user, std::string_view password) {
      return user == "ada" && http::same_secret(password, "a:b");
    }));
    return answer_to(std::move(made), get("/plain", fields));
  };
  const auto status = [&](std::string_view value) {
    return ask("Authorization: " + std::string(value) + "\r\n").substr(9, 3);
  };
  EXPECT_EQ(status("Basic YWRhOmE6Yg=="), "200");
  EXPECT_EQ(status("bASIC  YWRhOmE6Yg=="), "200");
  for (const char* bad : {"Basic YWRhOmE6Yw==", "Basic YWRhOmE6Yg", "Basic YWRhOmE6Yg=", "Basic",
                          "Basic ", "Bearer YWRhOmE6Yg==", "Basic YWRh",
                          "Basic YWRhOmE6Yg==\r\n"
                          "Authorization: Basic YWRhOmE6Yg==",
                          "Basic ====", "Basic Y*RhOmE6Yg=="})
    EXPECT_EQ(status(bad), "401") << bad;
  EXPECT_TRUE(has(ask(""), "WWW-Authenticate: Basic realm=\"the stock\", charset=\"UTF-8\""));
  EXPECT_THROW(http::basic_auth("a\"b", nullptr), usage_error);
}

TEST_P(http_around, bearer_tokens) {
  const auto ask = [&](std::string_view fields) {
    router made = some_routes();
    made.around(http::bearer_auth("stock", [](std::string_view token) { return token == "t"; }));
    return answer_to(std::move(made), get("/plain", fields));
  };
  EXPECT_EQ(ask("Authorization: Bearer t\r\n").substr(9, 3), "200");
  EXPECT_TRUE(has(ask(""), "WWW-Authenticate: Bearer realm=\"stock\""));
  EXPECT_TRUE(has(ask("Authorization: Bearer x\r\n"),
                  "WWW-Authenticate: Bearer realm=\"stock\", error=\"invalid_token\""));
}

TEST_P(http_around, checks_of_credentials_that_wait) {
  const auto ask = [&](std::string_view fields, std::string_view target) {
    router made = some_routes();
    made.around("/plain", http::waiting_basic_auth(
                              "stock", [](std::string user, std::string password) -> task<bool> {
                                co_await sleep_for(1ms);
                                co_return user == "ada" && http::same_secret(password, "a:b");
                              }));
    made.around("/waits", http::waiting_bearer_auth("stock", [](std::string token) -> task<bool> {
                  co_await sleep_for(1ms);
                  co_return token == "t";
                }));
    return answer_to(std::move(made), get(target, fields));
  };
  EXPECT_EQ(status_and_body(ask("Authorization: Basic YWRhOmE6Yg==\r\n", "/plain")), "200 plain");
  for (const char* bad : {"Authorization: Basic YWRhOmE6Yw==\r\n", "Authorization: Basic YWRh\r\n",
                          "Authorization: Bearer t\r\n", ""}) {
    const std::string got = ask(bad, "/plain");
    EXPECT_EQ(got.substr(9, 3), "401") << bad;
    EXPECT_TRUE(has(got, "WWW-Authenticate: Basic realm=\"stock\", charset=\"UTF-8\"")) << got;
  }
  EXPECT_EQ(status_and_body(ask("Authorization: Bearer t\r\n", "/waits")), "200 waits");
  EXPECT_TRUE(has(ask("", "/waits"), "WWW-Authenticate: Bearer realm=\"stock\""));
  EXPECT_TRUE(has(ask("Authorization: Bearer x\r\n", "/waits"),
                  "WWW-Authenticate: Bearer realm=\"stock\", error=\"invalid_token\""));
}

TEST_P(http_around, fields_for_security) {
  router made = some_routes();
  made.get("/framed", [] { return response::text("").field("x-frame-options", "SAMEORIGIN"); });
  made.around(http::security_fields{.content_security_policy = "", .hsts = 60s});
  const std::string got = answer_to(std::move(made), get("/framed"));
  EXPECT_TRUE(has(got, "X-Content-Type-Options: nosniff")) << got;
  EXPECT_TRUE(has(got, "Strict-Transport-Security: max-age=60")) << got;
  EXPECT_TRUE(has(got, "x-frame-options: SAMEORIGIN")) << got;
  EXPECT_EQ(got.find("X-Frame-Options"), std::string::npos) << got;
  EXPECT_EQ(got.find("Content-Security-Policy"), std::string::npos) << got;
}

TEST_P(http_around, other_origins) {
  const auto ask = [&](std::string_view method, std::string_view fields, bool all = false) {
    router made = some_routes();
    http::cors options;
    options.origins = {all ? "*" : "https://a.example"};
    options.fields = "X-Token";
    options.exposed = "X-Seen";
    options.allow_credentials = !all;
    made.around(std::move(options));
    return answer_to(std::move(made), get("/number/7", fields, method));
  };
  const std::string seen = ask("GET", "Origin: https://a.example\r\n");
  EXPECT_EQ(status_and_body(seen), "200 7");
  EXPECT_TRUE(has(seen, "Access-Control-Allow-Origin: https://a.example")) << seen;
  EXPECT_TRUE(has(seen, "Access-Control-Allow-Credentials: true")) << seen;
  EXPECT_TRUE(has(seen, "Access-Control-Expose-Headers: X-Seen")) << seen;
  EXPECT_TRUE(has(seen, "Vary: Origin")) << seen;
  for (const char* other : {"", "Origin: https://a.example.evil\r\n", "Origin: null\r\n"}) {
    const std::string hidden = ask("GET", other);
    EXPECT_EQ(status_and_body(hidden), "200 7");
    EXPECT_EQ(hidden.find("Access-Control"), std::string::npos) << hidden;
    EXPECT_TRUE(has(hidden, "Vary: Origin")) << hidden;
  }
  const std::string preflight =
      ask("OPTIONS", "Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n");
  EXPECT_EQ(preflight.substr(9, 3), "204") << preflight;
  EXPECT_TRUE(has(preflight, "Access-Control-Allow-Methods: GET, HEAD, POST")) << preflight;
  EXPECT_TRUE(has(preflight, "Access-Control-Allow-Headers: X-Token")) << preflight;
  EXPECT_TRUE(has(preflight, "Access-Control-Max-Age: 600")) << preflight;
  EXPECT_TRUE(has(preflight, "Allow: GET, HEAD, OPTIONS")) << preflight;
  EXPECT_TRUE(has(ask("GET", "Origin: https://b\r\n", true), "Access-Control-Allow-Origin: *"));
}

TEST_P(http_around, access_log_in_both_formats) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  const auto ask = [&](http::access_format format) {
    router made = some_routes();
    made.around(http::request_id());
    made.around(http::access_log(keep, format));
    const auto got = answer_to(std::move(made), get("/plain?a=\"\\",
                                                    "User-Agent: x\ty\"\r\n"
                                                    "X-Request-Id: i-1\r\n"));
    EXPECT_TRUE(has(got, "X-Request-Id: i-1")) << got;
  };
  ask(http::access_format::combined);
  ask(http::access_format::json);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(
      lines[0].ends_with("\"GET /plain?a=\\x22\\x5c HTTP/1.1\" 200 5 \"-\" \"x\\x09y\\x22\""))
      << lines[0];
  EXPECT_TRUE(lines[0].starts_with("127.0.0.1 - - [")) << lines[0];
  EXPECT_NE(
      lines[1].find(R"("method":"GET","target":"/plain?a=\"\\","status":200,"bytes":5,"ms":)"),
      std::string::npos)
      << lines[1];
  EXPECT_TRUE(lines[1].ends_with(R"("agent":"x\ty\"","id":"i-1"})")) << lines[1];
}

// Also what the handler throws is logged.
TEST_P(http_around, access_log_of_what_is_thrown) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto routes = [&] {
    router made = routes_that_need();
    made.post("/read", [](request& asked) -> task<response> {
      co_return response::text(std::string(co_await asked.read_all()));
    });
    made.around(http::access_log([&](std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    }));
    return made;
  };
  http::server_options limits;
  limits.body_bytes = 4;
  const std::string large =
      "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n";
  run(
      routes(),
      [&](runtime&, http::server, endpoint at) -> task<> {
        const std::string got = co_await exchange(at, large);
        EXPECT_EQ(status_and_body(got), "413 the body is too large\n");
      },
      limits);
  const auto fails = [&] { answer_to(routes(), get("/later/11")); };
  EXPECT_THROW(fails(), io_error);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("\"POST /read HTTP/1.1\" 413 -"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("\"GET /later/11 HTTP/1.1\" 500 -"), std::string::npos) << lines[1];
}

TEST_P(http_around, access_log_by_the_log) {
  std::mutex mutex;
  std::vector<std::string> lines;
  log::options by;
  by.as = log::form::json;
  by.callback = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("\"http.access\"") != std::string_view::npos) lines.emplace_back(line);
  };
  log::configure(by);
  router made = some_routes();
  made.around(http::request_id());
  made.around(http::access_log());
  answer_to(std::move(made),
            "GET /plain HTTP/1.1\r\nHost: a\r\nReferer: r\r\nX-Request-Id: i-1\r\n\r\n" +
                get("/none?a=\"", "User-Agent: x\ty\"\r\n"));
  log::flush();
  log::configure({});
  ASSERT_EQ(lines.size(), 2u);
  for (const char* wanted :
       {R"("peer":"127.0.0.1","method":"GET","target":"/plain","status":200,"bytes":5,"took":)",
        R"("agent":"","referer":"r","id":"i-1")"})
    EXPECT_NE(lines[0].find(wanted), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(R"("target":"/none?a=\"","status":404)"), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find(R"("agent":"x\ty\"","id":")"), std::string::npos) << lines[1];
}

TEST_P(http_around, ids_of_requests_are_new_or_harmless) {
  const auto id_for = [&](std::string_view fields) {
    router made = some_routes();
    made.around(http::request_id());
    const std::string got = answer_to(std::move(made), get("/plain", fields));
    const std::size_t at = got.find("X-Request-Id: ") + 14;
    return got.substr(at, got.find("\r\n", at) - at);
  };
  EXPECT_EQ(id_for("").size(), 32u);
  EXPECT_EQ(id_for("X-Request-Id: " + std::string(128, 'a') + "\r\n"), std::string(128, 'a'));
  EXPECT_EQ(id_for("X-Request-Id: " + std::string(129, 'a') + "\r\n").size(), 32u);
  EXPECT_EQ(id_for("X-Request-Id: <script>\r\n").size(), 32u);
}

TEST(http_same_secret, compares) {
  EXPECT_TRUE(http::same_secret("abc", "abc"));
  EXPECT_FALSE(http::same_secret("abd", "abc"));
  EXPECT_FALSE(http::same_secret("abcabc", "abc"));
  EXPECT_FALSE(http::same_secret("", "abc"));
  EXPECT_FALSE(http::same_secret("", ""));
}

TROUPE_HTTP_TEST_EACH(http_around);

}  // namespace
}  // namespace troupe::test
