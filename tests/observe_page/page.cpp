// The page in a server of the program itself: what it answers, and to whom.
#include "troupe/observe_page/observe_page.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "tls/certificates.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::response;
using http::router;

const std::string token = "a token of 24 characters";

std::string get(const std::string& path, const std::string& fields = {},
                const std::string& host = "localhost") {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + fields +
         "\r\n";
}
int status_of(const std::string& answer) { return std::atoi(answer.c_str() + 9); }

class observe_page : public http_conformance {
 protected:
  observe_page() { ::setenv("XDG_RUNTIME_DIR", (folder_ / "").c_str(), 1); }
  ~observe_page() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  // The answers to these requests, one after the other.
  std::vector<std::string> answers_to(const observe_page_options& chosen,
                                      std::vector<std::string> requests, bool observed = true) {
    router routes;
    add_observe_page(routes, chosen);
    std::vector<std::string> got;
    runtime_options all = options();
    all.observe = observed;
    runtime rt(all);
    rt.spawn(serve_while(rt, http::server(std::move(routes)),
                         [&](runtime&, http::server, endpoint at) -> task<> {
                           for (const std::string& one : requests) {
                             task<std::string> asking = exchange(at, one);
                             got.push_back(co_await std::move(asking));
                           }
                         }));
    rt.run();
    return got;
  }

 private:
  const scratch folder_;
};

TEST_P(observe_page, page_numbers_and_health_are_served) {
  const auto got =
      answers_to({}, {get("/troupe/"), get("/metrics"), get("/healthz"), get("/readyz"),
                      get("/troupe/dump"), get("/troupe/longest?class=a"), get("/troupe/actors"),
                      get("/troupe/actor?id=1"), get("/troupe/events?runtime=a%0Ab"),
                      get("/troupe/actor?id=x"), get("/troupe/trace?seconds=0"), get("/troupe")});
  const std::vector<int> wanted{200, 200, 200, 200, 200, 200, 200, 200, 400, 503, 400, 404};
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(status_of(got[i]), wanted[i]) << got[i];
  EXPECT_NE(got[0].find("<title>troupe</title>"), std::string::npos);
  EXPECT_NE(got[0].find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_NE(got[1].find("# TYPE troupe_up_seconds gauge\ntroupe_up_seconds{runtime=\"0\"} "),
            std::string::npos)
      << got[1];
  EXPECT_TRUE(got[3].ends_with("ready\n")) << got[3];
}

TEST_P(observe_page, a_program_that_is_not_ready_or_not_observed_says_so) {
  observe_page_options waits;
  waits.folder = "/";
  waits.is_ready = [] { return false; };
  const auto got = answers_to(
      waits, {get("/readyz"), get("/healthz"), get("/"), get("/metrics"), get("/trace?seconds=1")},
      false);
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(status_of(got[0]), 503) << got[0];
  EXPECT_EQ(status_of(got[1]), 200) << got[1];
  EXPECT_EQ(status_of(got[2]), 200) << got[2];
  for (const std::string& one : {got[3], got[4]}) {
    EXPECT_EQ(status_of(one), 503) << one;
    EXPECT_NE(one.find("TROUPE_OBSERVE=1"), std::string::npos) << one;
  }
}

TEST_P(observe_page, events_come_until_the_reader_goes) {
  router routes;
  add_observe_page(routes);
  std::string first;
  runtime_options all = options();
  all.observe = true;
  runtime rt(all);
  rt.spawn(serve_while(rt, http::server(std::move(routes)),
                       [&](runtime&, http::server, endpoint at) -> task<> {
                         tcp_stream peer = co_await tcp_stream::connect(at);
                         co_await peer.write_all(get("/troupe/events"));
                         for (int i = 0; i < 2; ++i) {
                           task<std::string> reading = read_until(peer, "\n\n");
                           first = co_await std::move(reading);
                         }
                       }));
  rt.run();
  EXPECT_NE(first.find("data: {\"summary\":{\"version\":1"), std::string::npos) << first;
  for (const char* const part : {"\"longest\":{", "\"waits\":{", "\"threads\":{", "\"numbers\":{",
                                 "\"history\":{\"now_ns\""})
    EXPECT_NE(first.find(part), std::string::npos) << first;
}

// A page of another site that the operator's browser shows.
TEST_P(observe_page, requests_of_other_sites_are_refused) {
  for (const char* const field :
       {"Sec-Fetch-Site: cross-site\r\n", "Origin: http://example.org\r\n", "Origin: null\r\n",
        "Origin: http://localhost:1\r\n", "Origin: http://localhost\r\nOrigin: http://a\r\n"}) {
    const auto got = answers_to(
        {}, {get("/troupe/", field), get("/metrics", field), get("/troupe/events", field),
             get("/troupe/dump", field), get("/troupe/actors", field),
             get("/troupe/trace?seconds=1", field), get("/healthz", field), get("/readyz", field)});
    ASSERT_EQ(got.size(), 8u);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(status_of(got[i]), i < 6 ? 403 : 200) << field << got[i];
  }
  for (const char* const field :
       {"Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
        "Origin: http://localhost\r\n"})
    EXPECT_EQ(status_of(answers_to({}, {get("/troupe/", field)}).at(0)), 200) << field;
}

// As from the page of another node, which may be of another site.
TEST_P(observe_page, a_link_leads_from_another_site_to_the_page_and_to_nothing_else) {
  const std::string link =
      "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
  const std::string followed = link + "Sec-Fetch-User: ?1\r\n";
  const auto got =
      answers_to({}, {get("/troupe/", followed.c_str()), get("/troupe/", link.c_str()),
                      get("/troupe/", (followed + "Origin: http://example.org\r\n").c_str()),
                      get("/troupe/dump", followed.c_str()), get("/metrics", followed.c_str()),
                      get("/troupe/trace?seconds=1", followed.c_str())});
  const std::vector<int> wanted{200, 403, 403, 403, 403, 403};
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(status_of(got[i]), wanted[i]) << got[i];
}

TEST_P(observe_page, names_of_this_machine_are_an_option) {
  observe_page_options chosen;
  chosen.hosts = {"shop.internal"};
  const auto got =
      answers_to(chosen, {get("/metrics", "", "shop.internal"),
                          get("/metrics", "", "Shop.Internal:1"), get("/metrics", "", "LocalHost"),
                          get("/metrics", "", "internal"), get("/metrics", "", "x.shop.internal")});
  const std::vector<int> wanted{200, 200, 200, 403, 403};
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(status_of(got[i]), wanted[i]) << got[i];
}

// A name of elsewhere makes a reader one of elsewhere, as its address does.
TEST_P(observe_page, others_are_refused_without_a_token_or_without_https) {
  for (const char* const name : {"example.org", "example.org:80", "127.0.0.1.example.org"}) {
    const auto got =
        answers_to({}, {get("/troupe/", "", name), get("/metrics", "", name),
                        get("/troupe/events", "", name), get("/troupe/trace?seconds=1", "", name)});
    for (const std::string& one : got) {
      EXPECT_EQ(status_of(one), 403) << name << one;
      EXPECT_NE(one.find("observe_page_options::token"), std::string::npos) << one;
    }
  }
  for (const char* const name : {"localhost", "localhost:1", "127.0.0.1:80", "[::1]", "[::1]:80"})
    EXPECT_EQ(status_of(answers_to({}, {get("/troupe/", "", name)}).at(0)), 200) << name;
  observe_page_options chosen;
  chosen.token = token;
  const std::string bearer = "Authorization: Bearer " + token + "\r\n";
  const auto got = answers_to(
      chosen, {get("/metrics", bearer, "example.org"), get("/healthz", "", "example.org"),
               get("/readyz", "", "example.org"), get("/metrics")});
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(status_of(got[0]), 403) << got[0];
  EXPECT_NE(got[0].find("https"), std::string::npos) << got[0];
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(status_of(got[i]), 200) << got[i];
}

task<std::string> ask_secretly(endpoint at, const tls_context& known, std::string request) {
  tcp_stream over = co_await tcp_stream::connect(at);
  tls_stream peer = tls_stream::client(known, std::move(over), "good.test");
  co_await peer.handshake();
  co_await peer.write_all(std::move(request));
  std::string all;
  std::array<char, 4096> buffer;
  for (;;) {
    const std::size_t bytes = co_await peer.read(buffer);
    if (bytes == 0) break;
    all.append(buffer.data(), bytes);
  }
  co_return all;
}

TEST_P(observe_page, others_are_served_by_https_with_the_token) {
  static const authority root("the authority");
  static const identity own = root.issue();
  tls_options trust;
  trust.ca_pem = root.certificate();
  const tls_context self = tls_context::server(showing(own)), known = tls_context::client(trust);
  observe_page_options chosen;
  chosen.token = token;
  router routes;
  add_observe_page(routes, chosen);
  // "anybody:a token of 24 characters"
  const std::string basic = "YW55Ym9keTphIHRva2VuIG9mIDI0IGNoYXJhY3RlcnM=";
  struct way {
    std::string authorization;
    int status;
  };
  std::vector<way> ways{{"Bearer " + token, 200},
                        {"bearer  " + token, 200},
                        {"Basic " + basic, 200},
                        {"", 401},
                        {"Bearer", 401},
                        {"Bearer a token of 24 charactert", 401},
                        {"Bearer " + token + "s", 401},
                        {"Bearer " + token.substr(1), 401},
                        {"Basic " + token, 401},
                        {"Basic YW55Ym9keQ==", 401},
                        {"Digest " + token, 401},
                        {"Bearer " + token, 200}};
  // Three wrong tokens came so far; an absent or malformed one is no guess.
  for (int i = 3; i < 10; ++i) ways.push_back({"Bearer a", 401});
  ways.push_back({"Bearer " + token, 429});
  ways.push_back({"", 429});
  std::vector<std::string> got;
  runtime_options all = options();
  all.observe = true;
  runtime rt(all);
  rt.spawn([&]() -> task<> {
    http::server web(std::move(routes));
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = rt.spawn(web.serve(std::move(listener), self));
    for (const way& one : ways) {
      const std::string field =
          one.authorization.empty() ? "" : "Authorization: " + one.authorization + "\r\n";
      task<std::string> asking = ask_secretly(at, known, get("/metrics", field, "example.org"));
      got.push_back(co_await std::move(asking));
    }
    web.stop();
    co_await std::move(serving);
  });
  rt.run();
  ASSERT_EQ(got.size(), ways.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(status_of(got[i]), ways[i].status) << ways[i].authorization << got[i];
    if (ways[i].status == 401) {
      EXPECT_NE(got[i].find("WWW-Authenticate: Basic"), std::string::npos) << got[i];
    }
    if (ways[i].status == 429) {
      EXPECT_NE(got[i].find("Retry-After: "), std::string::npos) << got[i];
    }
  }
}

TEST_P(observe_page, readers_of_a_unix_socket_are_served) {
  if (!threaded()) GTEST_SKIP() << "needs threads: its sockets are the system's";
  const scratch folder;
  const std::string path = folder / "socket";
  router routes;
  add_observe_page(routes);
  std::string got;
  runtime_options all = options();
  all.observe = true;
  runtime rt(all);
  rt.spawn([&]() -> task<> {
    http::server web(std::move(routes));
    future<> serving = rt.spawn(web.serve(unix_listener::listen(path)));
    {
      unix_stream peer = unix_stream::connect(path);
      co_await peer.write_all(get("/metrics", "", "example.org"));
      std::array<char, 1000> part;
      for (;;) {
        const std::size_t bytes = co_await peer.read(part);
        if (bytes == 0) break;
        got.append(part.data(), bytes);
      }
    }
    web.stop();
    co_await std::move(serving);
  });
  rt.run();
  EXPECT_EQ(status_of(got), 200) << got;
}

// Their connections fill up; others are answered, and the program does its work.
TEST_P(observe_page, readers_that_take_nothing_hold_up_nobody) {
  constexpr int silent_count = 20;
  router routes;
  add_observe_page(routes);
  std::string got;
  struct counter {
    int sum = 0;
    int add() { return ++sum; }
  };
  runtime_options all = options();
  all.observe = true;
  runtime rt(all);
  const auto counts = rt.spawn<counter>();
  int sum = 0;
  rt.spawn(serve_while(
      rt, http::server(std::move(routes)), [&](runtime&, http::server, endpoint at) -> task<> {
        std::vector<tcp_stream> silent;
        for (int i = 0; i < silent_count; ++i) {
          silent.push_back(co_await tcp_stream::connect(at));
          const std::string one = "GET /troupe/" + std::string(i % 2 == 0 ? "events" : "") +
                                  " HTTP/1.1\r\nHost: localhost\r\n\r\n";
          try {
            co_await silent.back().write_all(one + one + one + one);
          } catch (const io_error&) {
            // The server reads no further request while its answer is not taken, and has ended the
            // connection before all of them were sent.
          }
        }
        for (int i = 0; i < 100; ++i) sum = co_await counts.ask<&counter::add>();
        task<std::string> asking = exchange(at, get("/metrics"));
        got = co_await std::move(asking);
      }));
  rt.run();
  EXPECT_EQ(sum, 100);
  EXPECT_EQ(status_of(got), 200) << got;
}

TROUPE_HTTP_TEST_EACH(observe_page);

TEST(observe_page_options, that_make_no_sense_are_refused) {
  for (const char* const folder : {"", "troupe/", "/troupe"}) {
    observe_page_options chosen;
    chosen.folder = folder;
    router routes;
    EXPECT_THROW(add_observe_page(routes, chosen), option_error) << folder;
  }
  observe_page_options guessed;
  guessed.token = "fifteen bytes..";
  router routes;
  EXPECT_THROW(add_observe_page(routes, guessed), option_error);
  guessed.token += ".";
  for (const char* const host : {"", "http://a", "a:80", "a b"}) {
    observe_page_options named;
    named.hosts = {host};
    EXPECT_THROW(add_observe_page(routes, named), option_error) << host;
  }
  add_observe_page(routes, guessed);
  EXPECT_THROW(add_observe_page(routes, guessed), usage_error);
}

}  // namespace
}  // namespace troupe::test
