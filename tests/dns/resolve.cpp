// resolve(): what servers answer, and how the resolver treats wrong answers.
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <optional>

#include <sstream>

#include "dns/server.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// The number of workers makes no difference here.
std::vector<io_setting> dns_settings() {
  return {{{policy::work_stealing, 2, 1}, io_backend::epoll},
          {{policy::work_stealing, 2, 1}, io_backend::io_uring},
          {{policy::shared_queue, 2, 1}, io_backend::epoll}};
}

class dns_queries : public io_conformance {};
class dns_simulated : public io_conformance {};

resolver_options asking(const dns_server& server) {
  resolver_options options;
  options.servers = {server.at()};
  options.own_search = true;
  options.try_for = 200ms;
  options.tries = 2;
  return options;
}

// Returns the addresses as a text, or the reason of the failure.
std::string text_of(const std::vector<endpoint>& all) {
  std::vector<std::string> texts;
  for (const endpoint& one : all) texts.push_back(one.to_string());
  std::sort(texts.begin(), texts.end());
  std::string text;
  for (const std::string& one : texts) text += one + ' ';
  return text;
}
const char* text_of(resolve_failure why) {
  constexpr const char* names[] = {"host_not_found", "no_data", "try_again", "bad_name",
                                   "in_simulation"};
  return names[static_cast<std::size_t>(why)];
}

task<std::string> outcome_of(dns::lookup asked) {
  try {
    const std::vector<endpoint> found = co_await std::move(asked);
    co_return text_of(found);
  } catch (const resolve_error& e) {
    co_return text_of(e.reason());
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const cancelled&) {
    co_return "cancelled";
  }
}

using body = task<> (*)(runtime& rt, dns_server& server);

void run_with_server(const runtime_options& options, body what) {
  const int before = open_files();
  {
    dns_server server;
    runtime rt(options);
    auto both = [](runtime& runs, dns_server& serves, body does) -> task<> {
      serves.start(runs);
      co_await does(runs, serves);
    };
    rt.spawn(both(rt, server, what));
    rt.run();
  }
  EXPECT_EQ(open_files(), before);
}

TEST_P(dns_queries, what_the_server_says_is_what_comes) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    const resolver by(asking(server));
    constexpr std::pair<const char*, const char*> wanted[] = {
        {"both.test", "127.0.0.1:80 [::1]:80 "},
        {"v4.test", "127.0.0.1:80 127.0.0.2:80 "},
        {"v6.test", "[::1]:80 "},
        {"alias.test", "127.0.0.7:80 [::1]:80 "},
        {"big.test", "127.0.0.1:80 [::1]:80 "},
        {"BOTH.Test.", "127.0.0.1:80 [::1]:80 "},
        {"short.test", "127.0.0.1:80 [::1]:80 "},
        {"wrongid.test", "127.0.0.1:80 [::1]:80 "},
        {"wrongname.test", "127.0.0.1:80 [::1]:80 "},
        {"loop.test", "no_data"},
        {"empty.test", "no_data"},
        {"missing.test", "host_not_found"},
        {"broken.test", "try_again"},
        {"refused.test", "try_again"},
        {"lies.test", "try_again"},
    };
    for (const auto& [name, expected] : wanted) {
      const std::string got = co_await outcome_of(by.resolve(name, 80));
      EXPECT_EQ(got, expected) << name;
    }
    EXPECT_EQ(server.asked_for("big.test/a/tcp"), 1);
  });
}

TEST_P(dns_queries, a_server_that_says_nothing_is_asked_again) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    const resolver by(asking(server));
    const std::string late = co_await outcome_of(by.resolve("late.test", 1));
    EXPECT_EQ(late, "127.0.0.1:1 [::1]:1 ");
    resolver_options hasty = asking(server);
    hasty.try_for = 20ms;
    const resolver soon(hasty);
    for (const char* name : {"silent.test", "garbage.test", "bigsilent.test"}) {
      const std::string got = co_await outcome_of(soon.resolve(name, 1));
      EXPECT_EQ(got, "try_again") << name;
    }
    EXPECT_GE(server.asked_for("silent.test/a"), 2);
  });
}

TEST_P(dns_queries, the_next_server_is_asked_when_nobody_listens) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    resolver_options options = asking(server);
    udp_socket gone = udp_socket::bind(endpoint::loopback(0));
    options.servers.insert(options.servers.begin(), gone.local());
    gone.close();
    const resolver by(options);
    const std::string got = co_await outcome_of(by.resolve("both.test", 80));
    EXPECT_EQ(got, "127.0.0.1:80 [::1]:80 ");
    options.servers.pop_back();
    const resolver alone(options);
    const std::string none = co_await outcome_of(alone.resolve("both.test", 80));
    EXPECT_EQ(none, "try_again");
  });
}

TEST_P(dns_queries, one_family_alone) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    resolver_options options = asking(server);
    options.family = address_family::v4;
    const resolver v4(options);
    options.family = address_family::v6;
    const resolver v6(options);
    const std::string four = co_await outcome_of(v4.resolve("both.test", 80));
    const std::string six = co_await outcome_of(v6.resolve("both.test", 80));
    EXPECT_EQ(four + six, "127.0.0.1:80 [::1]:80 ");
    const std::string none = co_await outcome_of(v6.resolve("v4.test", 80));
    EXPECT_EQ(none, "no_data");
    const std::string literal = co_await outcome_of(v6.resolve("127.0.0.1", 80));
    EXPECT_EQ(literal, "no_data");
    const std::string here = co_await outcome_of(v4.resolve("localhost", 80));
    EXPECT_EQ(here, "127.0.0.1:80 ");
    EXPECT_EQ(server.asked_for("both.test/a"), 1);
    EXPECT_EQ(server.asked_for("both.test/aaaa"), 1);
  });
}

TEST_P(dns_queries, search_domains_complete_short_names) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    resolver_options options = asking(server);
    options.search = {"missing.test", "test"};
    const resolver by(options);
    const std::string got = co_await outcome_of(by.resolve("missing", 80));
    EXPECT_EQ(got, "host_not_found");
    const std::string second = co_await outcome_of(by.resolve("v6", 80));
    EXPECT_EQ(second, "[::1]:80 ");
    const std::string complete = co_await outcome_of(by.resolve("v6.", 80));
    EXPECT_EQ(complete, "[::1]:80 ");
    EXPECT_EQ(server.asked_for("v6/aaaa"), 1);
  });
}

TEST_P(dns_queries, many_names_at_a_time_by_one_resolver_that_goes) {
  run_with_server(options(), [](runtime& rt, dns_server& server) -> task<> {
    std::vector<task<std::string>> all;
    std::vector<future<std::string>> elsewhere;
    {
      const resolver by(asking(server));
      for (std::uint16_t i = 1; i <= 25; ++i) {
        all.push_back(outcome_of(by.resolve(i % 2 != 0 ? "both.test" : "missing.test", i)));
        elsewhere.push_back(rt.spawn(outcome_of(by.resolve("v4.test", i))));
      }
    }
    const std::vector<std::string> got = co_await when_all(std::move(all));
    for (std::size_t i = 1; i <= got.size(); ++i) {
      const std::string port = std::to_string(i);
      EXPECT_EQ(got[i - 1],
                i % 2 != 0 ? "127.0.0.1:" + port + " [::1]:" + port + " " : "host_not_found");
    }
    for (std::size_t i = 1; i <= elsewhere.size(); ++i) {
      const std::string one = co_await std::move(elsewhere[i - 1]);
      EXPECT_EQ(one, "127.0.0.1:" + std::to_string(i) + " 127.0.0.2:" + std::to_string(i) + " ");
    }
  });
}

TEST_P(dns_queries, a_limit_of_time_and_a_token_end_it_at_any_step) {
  run_with_server(options(), [](runtime&, dns_server& server) -> task<> {
    const resolver by(asking(server));
    for (const char* name : {"silent.test", "bigsilent.test"}) {
      for (const auto span : {0ms, 1ms, 30ms}) {
        const std::string got = co_await outcome_of(by.resolve(name, 1).timeout(span));
        EXPECT_EQ(got, "timed_out");
      }
      // Another task, which runs beside the query, requests the stop.
      for (const int yields : {0, 1, 2, 5, 20}) {
        std::stop_source source;
        auto later = [](std::stop_source asks, int turns) -> task<> {
          for (int i = 0; i < turns; ++i) co_await yield();
          asks.request_stop();
        };
        auto [got, stopped] = co_await when_all(
            outcome_of(by.resolve(name, 1).stop(source.get_token())), later(source, yields));
        EXPECT_EQ(got, "cancelled");
      }
    }
    std::stop_source before;
    before.request_stop();
    const std::string got =
        co_await outcome_of(by.resolve("both.test", 1).stop(before.get_token()));
    EXPECT_EQ(got, "cancelled");
    // The query that wins ends the other one.
    const auto first = co_await when_any(outcome_of(by.resolve("silent.test", 1)),
                                         outcome_of(by.resolve("both.test", 1)));
    EXPECT_EQ(first.index(), 1u);
    // A time limit that is not reached changes nothing.
    const std::string in_time = co_await outcome_of(by.resolve("both.test", 1).timeout(30s));
    EXPECT_EQ(in_time, "127.0.0.1:1 [::1]:1 ");
  });
}

TEST_P(dns_queries, the_end_of_the_program_ends_what_is_under_way) {
  const int before = open_files();
  {
    dns_server server;
    runtime rt(options());
    auto asks = [](runtime& runs, dns_server& serves) -> task<> {
      serves.start(runs);
      const resolver by(asking(serves));
      for (int i = 0; i < 5; ++i) runs.spawn(outcome_of(by.resolve("silent.test", 1)));
      co_await sleep_for(5ms);
      runs.stop(stop_mode::discard);
    };
    rt.spawn(asks(rt, server));
    rt.run();
  }
  EXPECT_EQ(open_files(), before);
}

// There is no server here, since its accept would run out of descriptors, too.
TEST_P(dns_queries, without_a_descriptor_left_it_says_so) {
  runtime rt(options());
  auto asks = []() -> task<> {
    udp_socket silent = udp_socket::bind(endpoint::loopback(0));
    resolver_options options;
    options.servers = {silent.local()};
    const resolver by(options);
    // Makes the reactor, which needs descriptors of its own.
    co_await outcome_of(by.resolve("warm.test", 1).timeout(1ms));
    const int first = ::dup(0);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit less = before;
    less.rlim_cur = static_cast<rlim_t>(first);
    ::close(first);
    ::setrlimit(RLIMIT_NOFILE, &less);
    bool said = false;
    try {
      co_await by.resolve("both.test", 1);
    } catch (const io_error& e) {
      said = e.code() == std::errc::too_many_files_open;
    }
    // One descriptor, which the set of sockets takes, and none for a socket.
    less.rlim_cur = static_cast<rlim_t>(first) + 1;
    ::setrlimit(RLIMIT_NOFILE, &less);
    const std::string got = co_await outcome_of(by.resolve("both.test", 1));
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_TRUE(said);
    EXPECT_EQ(got, "try_again");
  };
  rt.spawn(asks());
  rt.run();
}

task<std::string> addresses_that_need_no_server() {
  constexpr std::pair<const char*, const char*> wanted[] = {
      {"192.0.2.1", "192.0.2.1:9 "},
      {"2001:db8::1", "[2001:db8::1]:9 "},
      {"[::1]", "[::1]:9 "},
      {"localhost", "127.0.0.1:9 [::1]:9 "},
      {"LocalHost.", "127.0.0.1:9 [::1]:9 "},
      {"any.localhost", "127.0.0.1:9 [::1]:9 "},
      {"", "bad_name"},
      {".", "bad_name"},
      {"a..b", "bad_name"},
      {".a", "bad_name"},
      {"a b", "bad_name"},
      {"b\xc3\xbc"
       "cher.example",
       "bad_name"},
      {"x\r\ny", "bad_name"},
      {"127.1", "bad_name"},
      {"1.2.3.4.5", "bad_name"},
      {"256.0.0.1", "bad_name"},
      {"[::1", "bad_name"},
      {"::g", "bad_name"},
      {"fe80::1%no-such-interface", "bad_name"},
  };
  std::ostringstream wrong;
  for (const auto& [name, expected] : wanted) {
    const std::string got = co_await outcome_of(resolve(name, 9));
    if (got != expected) wrong << name << " came to " << got << '\n';
  }
  for (const std::string& name : {std::string(64, 'a') + ".test", std::string("a\0b", 3),
                                  std::string(126, 'a').replace(60, 1, ".") + "." +
                                      std::string(126, 'a').replace(60, 1, ".") + ".test"}) {
    const std::string got = co_await outcome_of(resolve(name, 9));
    if (got != "bad_name") wrong << name << " came to " << got << '\n';
  }
  co_return wrong.str();
}

TEST_P(dns_queries, some_names_need_no_server) {
  run_with_server(options(), [](runtime&, dns_server&) -> task<> {
    const std::string wrong = co_await addresses_that_need_no_server();
    EXPECT_EQ(wrong, "");
  });
}

TEST_P(dns_simulated, addresses_and_localhost_and_nothing_else) {
  runtime rt(options());
  auto asks = []() -> task<> {
    const std::string wrong = co_await addresses_that_need_no_server();
    EXPECT_EQ(wrong, "");
    const std::string got = co_await outcome_of(resolve("example.test", 80).timeout(1s));
    EXPECT_EQ(got, "in_simulation");
  };
  rt.spawn(asks());
  rt.run();
}

TEST(dns_options, what_makes_no_sense_is_refused) {
  for (const int tries : {0, 11}) {
    resolver_options options;
    options.tries = tries;
    EXPECT_THROW(resolver{options}, option_error);
  }
  for (const auto span : {std::chrono::milliseconds(0), std::chrono::milliseconds(3'600'001)}) {
    resolver_options options;
    options.try_for = span;
    EXPECT_THROW(resolver{options}, option_error);
  }
}

INSTANTIATE_TEST_SUITE_P(backends, dns_queries, ::testing::ValuesIn(dns_settings()),
                         [](const auto& one) { return name_of(one.param); });
INSTANTIATE_TEST_SUITE_P(backends, dns_simulated,
                         ::testing::Values(io_setting{{policy::simulated, 1, 1},
                                                      io_backend::simulated}),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
