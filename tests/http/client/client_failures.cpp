// The client with servers that are slow, wrong or malicious, and with callers that ask for the
// impossible.
#include <random>

#include "http/client/scripted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client;
using http::client_options;
using http::client_request;
using http::client_response;

class http_client_failures : public client_conformance {};

std::string repeated(std::string_view text, int times) {
  std::string made;
  for (int i = 0; i < times; ++i) made += text;
  return made;
}

struct vector {
  const char* name;
  std::string bytes;
  const char* outcome;
};
const std::vector<vector>& vectors() {
  static const std::vector<vector> all{
      {"nothing", "", "closed"},
      {"another protocol", "SSH-2.0-OpenSSH_9\r\n\r\n", "bad_response"},
      {"no version", "HTTP 200 OK\r\n\r\n", "bad_response"},
      {"version 2", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"version 0.9", "HTTP/0.9 200 OK\r\n\r\n", "bad_response"},
      {"status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"status of letters", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"an end in the head", "HTTP/1.1 200 OK\r\nContent-", "truncated"},
      {"an end in the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "truncated"},
      {"an end in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\nabc",
       "truncated"},
      {"an end before the last chunk",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "truncated"},
      {"an end in the trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
       "truncated"},
      {"an end after an interim answer", "HTTP/1.1 100 Continue\r\n\r\n", "truncated"},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
       "bad_response"},
      {"two lengths that agree",
       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", "bad_response"},
      {"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na", "bad_response"},
      {"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\na", "bad_response"},
      {"a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", "bad_response"},
      {"a length in hexadecimal", "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\na",
       "bad_response"},
      {"a length that is too great",
       "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\na", "bad_response"},
      {"an empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\na", "bad_response"},
      {"length and chunks",
       "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "bad_response"},
      {"chunks and length",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
       "bad_response"},
      {"chunked is not the last",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "bad_response"},
      {"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
       "bad_response"},
      {"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
       "bad_response"},
      {"chunks of HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "bad_response"},
      {"a chunk's size that is none",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", "bad_response"},
      {"a chunk's size with a sign",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n", "bad_response"},
      {"a chunk that is longer",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
       "bad_response"},
      {"a chunk's size that is too great",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\na",
       "bad_response"},
      {"a line end alone in a chunk",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", "bad_response"},
      {"a length in the trailer",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
       "bad_response"},
      {"a space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "bad_response"},
      {"a name that is none", "HTTP/1.1 200 OK\r\nX(Y): 0\r\nContent-Length: 0\r\n\r\n",
       "bad_response"},
      {"no name", "HTTP/1.1 200 OK\r\n: 0\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"no colon", "HTTP/1.1 200 OK\r\nabc\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"white space before the first field",
       "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 0\r\n\r\n", "bad_response"},
      {"a zero byte in a value",
       "HTTP/1.1 200 OK\r\nX: a" + std::string(1, '\0') + "b\r\nContent-Length: 0\r\n\r\n",
       "bad_response"},
      {"a line end alone", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bad_response"},
      {"a return alone", "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 5\r\n\r\n", "bad_response"},
      {"another protocol that nobody asked for",
       "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "bad_response"},
      {"interim answers without end", repeated("HTTP/1.1 102 Processing\r\n\r\n", 50),
       "bad_response"},
      {"a head that is too large", "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n",
       "bad_response"},
      {"too many fields", "HTTP/1.1 200 OK\r\n" + repeated("X: y\r\n", 201) + "\r\n",
       "bad_response"},
      {"a body that is too large",
       "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'),
       "body_too_large"},
      {"a body that is just not",
       "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'), nullptr},
      {"one without an end", "HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'x'), "body_too_large"},
  };
  return all;
}

TEST_P(http_client_failures, answers_that_are_none_are_refused) {
  client_options small;
  small.body_bytes = 1000;
  const auto says = [](const std::string& request) -> scripted_answer {
    return {vectors()[std::stoul(request.substr(request.find('/') + 1))].bytes, true};
  };
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        for (std::size_t i = 0; i < vectors().size(); ++i) {
          const vector& one = vectors()[i];
          const std::string got = co_await outcome_of(web.get(server.url("/" + std::to_string(i))));
          const std::string wanted =
              one.outcome != nullptr ? one.outcome : "200 " + std::string(1000, 'x');
          // If a server closes before it has read the whole request, its answer may get lost.
          EXPECT_TRUE(got == wanted || (one.bytes.size() > 2000 && got == "io_error"))
              << one.name << ": " << got;
        }
        EXPECT_LE(web.idle(), 1u);
      },
      std::move(small));
}

// Answers that were right before some of their bytes were changed, lost or doubled: each ends soon,
// with a response or a typed error.
std::string mutated(std::uint64_t seed) {
  static const std::string good[] = {
      with_length(std::string(300, 'x'), "Content-Type: text/plain\r\nX-Y: z\r\n"),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: "
      "y\r\n\r\n5\r\nabcde\r\n10;a=b\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /0\r\nContent-Length: "
      "3\r\n\r\nabc",
      "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nto the end"};
  std::mt19937_64 random(seed);
  std::string bytes = good[random() % std::size(good)];
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % bytes.size(), count = 1 + random() % 8;
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 3:
        bytes.insert(at, 1, "\r\n :,;0\t"[random() % 8]);
        break;
      default:
        bytes.resize(at + 1);
        break;
    }
    if (bytes.empty()) bytes = "\r\n";
  }
  return bytes;
}

TEST_P(http_client_failures, mutated_answers_come_to_a_typed_end) {
  const auto says = [](const std::string& request) -> scripted_answer {
    return {mutated(std::stoul(request.substr(request.find('/') + 1))), true};
  };
  client_options few;
  few.redirects = 3;
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        for (int i = 1; i <= fewer(400); ++i) {
          // Any other exception would end the test.
          const std::string got =
              co_await outcome_of(web.get(server.url("/" + std::to_string(i))).timeout(20s));
          EXPECT_NE(got, "timed_out") << i;
          EXPECT_NE(got, "cancelled") << i;
        }
      },
      std::move(few));
}

// With redirects, and the body.
TEST_P(http_client_failures, all_of_a_request_has_its_time) {
  client_options hasty;
  hasty.total_time = 300ms;
  const auto says = [](const std::string& request) -> scripted_answer {
    const bool is_moved = request.starts_with("GET /moved ");
    scripted_answer answer(
        is_moved ? "HTTP/1.1 302 Found\r\nLocation: /slow\r\nContent-Length: 0\r\n\r\n"
                 : with_length("x"));
    if (request.starts_with("GET /slow ")) answer.pause = 2s;
    return answer;
  };
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        const std::string slow = co_await outcome_of(web.get(server.url("/slow")));
        EXPECT_EQ(slow, "timed_out");
        const std::string moved = co_await outcome_of(web.get(server.url("/moved")));
        EXPECT_EQ(moved, "timed_out");
        // A longer one of the request's own does not prolong it.
        const std::string own = co_await outcome_of(web.get(server.url("/slow")).timeout(20s));
        EXPECT_EQ(own, "timed_out");
      },
      std::move(hasty));
}

TEST_P(http_client_failures, each_phase_has_its_time) {
  client_options hasty;
  hasty.head_time = 300ms;  // what is in time must be so on a busy machine, too
  hasty.body_rate = 1'000'000;
  hasty.body_grace = 300ms;
  hasty.write_time = 300ms;
  const auto says = [](const std::string& request) -> scripted_answer {
    scripted_answer answer(
        with_length(std::string(request.starts_with("GET /body ") ? 10'000 : 1, 'x'),
                    "X-Long: " + std::string(5000, 'x') + "\r\n"));
    if (!request.starts_with("GET /fast ")) answer.pause = 2s;
    return answer;
  };
  run(
      says,
      [](scripted_server& server, client web) -> task<> {
        const std::string head = co_await outcome_of(web.get(server.url("/head")));
        EXPECT_EQ(head, "timed_out");
        const std::string body = co_await outcome_of(web.get(server.url("/body")));
        EXPECT_EQ(body, "too_slow");
        const std::string total = co_await outcome_of(web.get(server.url("/body")).timeout(10ms));
        EXPECT_EQ(total, "timed_out");
        const std::string none = co_await outcome_of(web.get(server.url("/fast")).timeout(0ms));
        EXPECT_EQ(none, "timed_out");
        const std::string fast = co_await outcome_of(web.get(server.url("/fast")).timeout(20s));
        EXPECT_EQ(fast, "200 x");
        // No task reads there.
        auto deaf = tcp_listener::listen(endpoint::loopback(0));
        const std::string url = "http://127.0.0.1:" + std::to_string(deaf.local().port());
        const std::string written =
            co_await outcome_of(web.post(url, std::string(30'000'000, 'x'), ""));
        EXPECT_EQ(written, "timed_out");
      },
      std::move(hasty));
}

// This holds, too, for a task that does something else in between, and so reads in short attempts.
TEST_P(http_client_failures, a_body_that_does_not_come_is_given_up_by_who_polls) {
  client_options hasty;
  hasty.body_rate = 1000;
  hasty.body_grace = 40ms;
  run(
      [](const std::string&) -> scripted_answer {
        return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
      },
      [](scripted_server& server, client web) -> task<> {
        http::client_response answer = co_await web.get(server.url("/"));
        const auto nap = []() -> task<> { co_await sleep_for(5ms); };
        bool slow = false;
        for (int i = 0; i < 1000 && !slow; ++i) {
          try {
            auto either = when_any(answer.read(), nap());
            co_await std::move(either);
          } catch (const http::client_error& e) {
            slow = e.reason() == http::client_failure::too_slow;
          }
        }
        EXPECT_TRUE(slow);
        // The failure that a losing branch has seen is not lost.
        auto rest = answer.read_all();
        try {
          co_await std::move(rest);
          ADD_FAILURE() << "there is no more";
        } catch (const http::client_error& e) {
          EXPECT_EQ(e.reason(), http::client_failure::too_slow);
        }
      },
      std::move(hasty));
}

TEST_P(http_client_failures, a_connection_has_its_time_too) {
  client_options hasty;
  hasty.connect_time = 300ms;  // a busy machine refuses within that, too
  run([](const std::string&) -> scripted_answer { return ""; },
      [](scripted_server&, client web) -> task<> {
        // Only the system accepts the connection, and nothing answers in TLS.
        auto deaf = tcp_listener::listen(endpoint::loopback(0));
        const std::string late = co_await outcome_of(
            web.get("https://127.0.0.1:" + std::to_string(deaf.local().port())));
        EXPECT_EQ(late, "timed_out");
        auto gone = tcp_listener::listen(endpoint::loopback(0));
        const std::string url = "http://localhost:" + std::to_string(gone.local().port());
        gone.close();
        const std::string refused = co_await outcome_of(web.get(url));
        EXPECT_EQ(refused, "io_error");
        const std::string nobody = co_await outcome_of(web.get("http://127.1/"));
        EXPECT_EQ(nobody, "resolve_error");
        const std::string bad = co_await outcome_of(web.get("gopher://a/"));
        EXPECT_EQ(bad, "bad_url");
      },
      std::move(hasty));
}

TEST_P(http_client_failures, a_token_ends_it_at_any_step) {
  const auto says = [](const std::string&) -> scripted_answer {
    scripted_answer answer(with_length(std::string(20'000, 'x')));
    answer.pause = 1ms;
    return answer;
  };
  run(says, [](scripted_server& server, client web) -> task<> {
    for (int turns = 0; turns < 25; ++turns) {
      std::stop_source source;
      auto stops = [](std::stop_source asks, int count) -> task<> {
        for (int i = 0; i < count; ++i) co_await yield();
        asks.request_stop();
      };
      auto both = when_all(outcome_of(web.get(server.url()).stop(source.get_token())),
                           stops(source, turns));
      auto [got, done] = co_await std::move(both);
      EXPECT_TRUE(got == "cancelled" || got == "200 " + std::string(20'000, 'x')) << got;
      auto quick = when_any(outcome_of(web.get(server.url())), stops(source, turns));
      co_await std::move(quick);
    }
  });
}

TEST_P(http_client_failures, nothing_can_be_smuggled_into_a_request) {
  run([](const std::string&) -> scripted_answer { return with_length(""); },
      [](scripted_server& server, client web) -> task<> {
        const auto refused = [](auto&& does) {
          client_request asked("GET", "http://127.0.0.1/");
          EXPECT_THROW(does(asked), usage_error);
        };
        for (const std::string& value :
             {std::string("a\r\nX: y"), std::string("a\nb"), std::string("a\rb"),
              std::string("a\0b", 3), std::string("\x7f")}) {
          refused([&](client_request& asked) { asked.field("X", value); });
          refused([&](client_request& asked) { asked.body("", "text/" + value); });
        }
        for (const char* name :
             {"", "X Y", "X:", "X\r\nY", "X\r", "Host", "content-length", "Transfer-Encoding",
              "connection", "Upgrade", "TE", "Trailer", "expect"}) {
          refused([&](client_request& asked) { asked.field(name, "x"); });
        }
        for (const char* method : {"", "GET /", "G\r\nX", "CONNECT", "G\xc3\xbc"})
          EXPECT_THROW(client_request(method, "http://127.0.0.1/"), usage_error);
        refused([&](client_request& asked) { asked.range(5, 4); });
        client_request trace("TRACE", "http://127.0.0.1/");
        EXPECT_THROW(trace.body("secret", ""), usage_error);
        const std::string split = co_await outcome_of(web.get(server.url("/ HTTP/1.1\r\nX: y")));
        EXPECT_EQ(split, "bad_url");
        EXPECT_TRUE(server.requests().empty());
        client_options odd;
        odd.redirects = -1;
        EXPECT_THROW(client{odd}, option_error);
        odd = {};
        odd.head_bytes = 1;
        EXPECT_THROW(client{odd}, option_error);
        odd = {};
        odd.user_agent = "a\r\nb";
        EXPECT_THROW(client{odd}, option_error);
      });
}

TEST_P(http_client_failures, what_an_upload_throws_is_thrown) {
  run([](const std::string&) -> scripted_answer { return with_length(""); },
      [](scripted_server& server, client web) -> task<> {
        for (int i = 0; i < 2; ++i) {
          client_request asked("PUT", server.url());
          http::upload_function fails = [i](http::upload& to) -> task<> {
            co_await to.write("some");
            if (i == 0) throw io_error("read", "a file", EIO);
            throw std::runtime_error("nothing there");
          };
          asked.body(std::move(fails), "");
          std::string how;
          try {
            co_await web.send(std::move(asked));
          } catch (const std::runtime_error& e) {
            how = e.what();
          }
          EXPECT_TRUE(how.contains(i == 0 ? "a file" : "nothing there")) << how;
        }
        EXPECT_EQ(web.idle(), 0u);
      });
}

// Otherwise the server would take the end of the body for the rest of the piece.
TEST_P(http_client_failures, an_upload_whose_piece_is_given_up_has_failed) {
  runtime rt(options());
  auto program = []() -> task<> {
    auto never_accepts = tcp_listener::listen(endpoint::loopback(0));
    const client web;
    client_request asked("PUT", "http://" + never_accepts.local().to_string());
    http::upload_function gives_up = [](http::upload& to) -> task<> {
      const auto much = [](http::upload& into) -> task<> {
        co_await into.write(std::string(30'000'000, 'x'));
      };
      const auto soon = []() -> task<> { co_await sleep_for(20ms); };
      auto either = when_any(much(to), soon());
      co_await std::move(either);
    };
    asked.body(std::move(gives_up), "");
    const auto begun = now();
    const std::string how = co_await outcome_of(web.send(std::move(asked)));
    EXPECT_EQ(how, "io_error");
    EXPECT_LT(now() - begun, 5s);
  };
  rt.spawn(program());
  rt.run();
}

// Kept connections end with the client, whether or not the runtime still exists.
TEST_P(http_client_failures, a_client_may_outlive_its_runtime) {
  const int before = open_files();
  {
    const client web;
    scripted_server server([](const std::string&) -> scripted_answer { return with_length("x"); });
    {
      runtime rt(options());
      auto asks = [](runtime& runs, scripted_server& serves, client by) -> task<> {
        serves.start(runs);
        const std::string got = co_await outcome_of(by.get(serves.url()));
        EXPECT_EQ(got, "200 x");
        runs.stop(stop_mode::discard);
      };
      rt.spawn(asks(rt, server, web));
      rt.run();
    }
    EXPECT_EQ(web.idle(), 1u);
  }
  EXPECT_EQ(open_files(), before);
}

authority& trusted() {
  static authority is("the authority");
  return is;
}

tls_options showing_localhost() { return showing(trusted().issue({.names = "DNS:localhost"})); }

TEST_P(http_client_failures, servers_are_verified_unless_one_asks_not_to) {
  tls_options self = showing_localhost();
  self.alpn = {"http/1.1"};
  const auto says = [](const std::string& request) -> scripted_answer {
    if (request.starts_with("GET /down "))
      return "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    if (request.starts_with("GET /cut "))
      return {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true};
    return with_length("secret");
  };
  run(
      says,
      [](scripted_server& server, client by_default) -> task<> {
        const std::string unknown = co_await outcome_of(by_default.get(server.url()));
        EXPECT_EQ(unknown, "tls_error");
        client_options trusting;
        trusting.tls.ca_pem = trusted().certificate();
        const client web(trusting);
        for (int i = 0; i < 3; ++i) {
          const std::string good = co_await outcome_of(web.get(server.url()));
          EXPECT_EQ(good, "200 secret");
        }
        EXPECT_EQ(server.connections(), 2);
        const std::string other =
            co_await outcome_of(web.get("https://127.0.0.1:" + std::to_string(server.port())));
        EXPECT_EQ(other, "tls_error");
        const std::string down = co_await outcome_of(web.get(server.url("/down")));
        EXPECT_EQ(down, "insecure_redirect");
        const std::string cut = co_await outcome_of(web.get(server.url("/cut")));
        EXPECT_EQ(cut, "truncated");
        client_options careless;
        careless.tls.verify = false;
        const client any(careless);
        const std::string got =
            co_await outcome_of(any.get("https://127.0.0.1:" + std::to_string(server.port())));
        EXPECT_EQ(got, "200 secret");
      },
      {}, tls_context::server(self));
}

// Over TLS a body without a length ends only when the peer announces its end.
TEST_P(http_client_failures, an_end_that_the_server_did_not_declare_is_none) {
  const int before = open_files();
  {
    runtime rt(options());
    auto meet = [](tls_context context) -> task<> {
      for (const bool declared : {true, false}) {
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const std::string url = "https://localhost:" + std::to_string(listener.local().port());
        auto answers = [](tcp_listener& from, tls_context of, bool says_goodbye) -> task<> {
          tcp_stream plain = co_await from.accept();
          tls_stream peer = tls_stream::server(of, std::move(plain));
          co_await peer.handshake();
          std::array<char, 1000> buffer;
          co_await peer.read(buffer);
          co_await peer.write_all("HTTP/1.1 200 OK\r\n\r\npart of it");
          if (says_goodbye) co_await peer.shutdown();
        };
        client_options trusting;
        trusting.tls.ca_pem = trusted().certificate();
        const client web(trusting);
        auto both = when_all(outcome_of(web.get(url)), answers(listener, context, declared));
        auto [got, done] = co_await std::move(both);
        EXPECT_EQ(got, declared ? "200 part of it" : "truncated");
      }
    };
    rt.spawn(meet(tls_context::server(showing_localhost())));
    rt.run();
  }
  EXPECT_EQ(open_files(), before);
}

// Sends on what lies in the pipe in one piece each time. So what a peer sends in a row arrives at
// once.
task<> in_large_pieces(pipe_stream from, tcp_stream& to) {
  std::array<char, 1> first;
  std::array<char, 20'000> rest;
  while (co_await from.read(first) != 0) {
    co_await sleep_for(30ms);
    const std::size_t more = co_await from.read(rest);
    std::string piece(first.data(), 1);
    piece.append(rest.data(), more);
    co_await to.write_all(piece);
  }
}
task<> as_it_comes(tcp_stream& from, pipe_stream to) {
  std::array<char, 4096> buffer;
  try {
    while (const std::size_t bytes = co_await from.read(buffer))
      co_await to.write_all(std::string_view(buffer.data(), bytes));
  } catch (const error&) {  // either end has gone
  }
}

// The announced end came together with the answer. No further request can be sent on such a
// connection.
TEST_P(http_client_failures, a_goodbye_that_comes_with_the_answer_ends_a_kept_connection) {
  if (GetParam().by == io_backend::simulated) GTEST_SKIP() << "needs threads: pipes are real";
  runtime rt(options());
  auto meet = [](tls_context context) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string url = "https://localhost:" + std::to_string(listener.local().port());
    auto answers = [](tcp_listener& from, tls_context of) -> task<> {
      auto talk = [](tls_stream peer) -> task<> {
        co_await peer.handshake();
        std::array<char, 1000> buffer;
        co_await peer.read(buffer);
        co_await peer.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        co_await peer.shutdown();
        peer.close();
      };
      std::vector<tcp_stream> open(2);
      for (tcp_stream& plain : open) {
        plain = co_await from.accept();
        auto [in, request] = pipe_stream::make();
        auto [answer, out] = pipe_stream::make();
        spawn(as_it_comes(plain, std::move(request)));
        auto all = when_all(talk(tls_stream::server(of, std::move(in), std::move(out))),
                            in_large_pieces(std::move(answer), plain));
        co_await std::move(all);
      }
    };
    client_options trusting;
    trusting.tls.ca_pem = trusted().certificate();
    const client web(trusting);
    future<> served = spawn(answers(listener, context));
    for (int i = 0; i < 2; ++i) {
      const std::string got = co_await outcome_of(web.send(client_request("POST", url)));
      EXPECT_EQ(got, "200 ok");
    }
    web.close_idle();
    co_await std::move(served);
  };
  rt.spawn(meet(tls_context::server(showing_localhost())));
  rt.run();
}

TROUPE_CLIENT_TEST_EACH(http_client_failures);

}  // namespace
}  // namespace troupe::test
