// Streamed answers that say their length: what is sent, and that the length is held, by each
// protocol.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/http.hpp"
#include "troupe/http/around/compress.hpp"
#include "troupe/http/client.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;

struct row {
  const char* name;
  std::uint64_t length;
  std::vector<std::string> pieces;
  const char* method;
  const char* by_http1;  // what the client has got
  const char* by_http2;
  const char* failure;  // what the program is told, in part
  bool compresses = false;
};

const std::vector<row>& rows() {
  static const std::vector<row> all{
      {"in one piece", 5, {"words"}, "GET", "200 5: words", "200 5: words", ""},
      {"in pieces", 8, {"wo", "", "rds", "end"}, "GET", "200 8: wordsend", "200 8: wordsend", ""},
      {"of no bytes", 0, {}, "GET", "200 0: ", "200 0: ", ""},
      {"asked for by HEAD", 5, {"words"}, "HEAD", "200 5: ", "200 5: ", ""},
      {"asked for by HEAD, with a wrong length", 7, {"words"}, "HEAD", "200 7: ", "200 7: ", ""},
      {"too long at once", 4, {"words"}, "GET", "cut", "cut", "by 1:"},
      {"too long later", 6, {"words", "and", "more"}, "GET", "cut", "cut", "by 2:"},
      {"too long for none", 0, {"words"}, "GET", "200 0: ", "cut", "by 5:"},
      {"too short", 9, {"words"}, "GET", "cut", "cut", "returned 4 bytes before"},
      {"too short by all", 9, {}, "GET", "cut", "cut", "returned 9 bytes before"},
      {"compressed", 5, {"words"}, "GET", "200 -: words", "200 -: words", "", true},
      {"compressed and too short",
       6,
       {"words"},
       "GET",
       "cut",
       "cut",
       "returned 1 bytes before",
       true},
      {"compressed and too long", 4, {"words"}, "GET", "cut", "cut", "by 1:", true},
  };
  return all;
}

class http_streamed_lengths : public http_conformance {
 protected:
  static router routes_for(const row& of) {
    router routes;
    routes.get("/", [&of] {
      return response::stream("text/plain", of.length, [&of](http::body_writer& to) -> task<> {
        for (const std::string& piece : of.pieces) co_await to.write(piece);
      });
    });
    if (of.compresses) {
      http::compress how;
      how.bytes_min = 0;
      routes.around(how);
    }
    return routes;
  }
  // Runs both ends. Returns what the program was told.
  std::string run_with(const row& of, client talk) {
    try {
      run(routes_for(of), std::move(talk));
    } catch (const usage_error& e) {
      return e.what();
    }
    return "";
  }
  static task<std::string> ask(http::client_options chosen, const row& of, endpoint at) {
    const http::client web(std::move(chosen));
    const std::string url = "http://127.0.0.1:" + std::to_string(at.port()) + "/";
    http::client_request asked(of.method, url);
    std::string got = "cut";
    try {
      http::client_response answer = co_await web.send(std::move(asked));
      const std::string length = answer.length() ? std::to_string(*answer.length()) : "-";
      const std::string body = co_await answer.read_all();
      got = std::to_string(answer.status()) + " " + length + ": " + body;
    } catch (const http::client_error& e) {
      if (e.reason() != http::client_failure::truncated &&
          e.reason() != http::client_failure::reset)
        got = e.what();
    }
    web.close_idle();
    co_return got;
  }
};

TEST_P(http_streamed_lengths, are_said_and_held) {
  for (const row& of : rows()) {
    for (const bool is_http2 : {false, true}) {
      std::string got;
      const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
        http::client_options chosen;
        chosen.http2_prior_knowledge = is_http2;
        chosen.decoded_body_bytes = 1'000;
        got = co_await ask(std::move(chosen), of, at);
      };
      const std::string failure = run_with(of, talk);
      const std::string in = std::string(of.name) + (is_http2 ? " by HTTP/2" : " by HTTP/1.1");
      EXPECT_EQ(got, is_http2 ? of.by_http2 : of.by_http1) << in;
      EXPECT_NE(failure.find(of.failure), std::string::npos) << in << ": " << failure;
      EXPECT_EQ(failure.empty(), *of.failure == '\0') << in << ": " << failure;
    }
  }
}

// With a length, the connection need not end to end the body.
TEST_P(http_streamed_lengths, keep_connections_of_http_1_0) {
  const row of{"", 5, {"wo", "rds"}, "", "", "", ""};
  const std::string one = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  const std::string got = answer_to(routes_for(of), one + "GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(got,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
            "Connection: keep-alive\r\n\r\nwords"
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
            "Connection: close\r\n\r\nwords");
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_streamed_lengths);

}  // namespace troupe::test
