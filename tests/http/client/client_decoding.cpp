// The client asks for compressed answers, and decodes them up to a limit.
#include "http/client/scripted.hpp"
#include "http/coding/encoder.hpp"
#if __has_include(<nghttp2/nghttp2.h>)
#include "http/client/http2_client.hpp"
#endif
#include "support/http.hpp"
#include "troupe/http/around/compress.hpp"

namespace troupe::test {
namespace {

using http::client;
using http::client_options;
using http::client_request;
using http::client_response;
using http::coding;

std::string encoded(std::string_view text, coding by) {
  std::string made;
  http::make_encoder(by)->add(text, made, http::encoder::until::end);
  return made;
}
std::string with_coding(const std::string& body, const std::string& by) {
  return with_length(body, "Content-Encoding: " + by + "\r\nContent-Type: text/plain\r\n");
}
client_options with_limit(std::uint64_t bytes) {
  client_options made;
  made.decoded_body_bytes = bytes;
  return made;
}

class http_client_decoding : public client_conformance {};

scripted_answer say(const std::string& request) {
  const std::string text(50'000, 'a');
  if (request.starts_with("HEAD ")) {
    return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\n";
  }
  if (request.starts_with("GET /br ")) return with_coding(encoded(text, coding::brotli), "br");
  if (request.starts_with("GET /zstd ")) return with_coding(encoded(text, coding::zstd), "zstd");
  if (request.starts_with("GET /gzip ")) return with_coding(encoded(text, coding::gzip), "GZIP");
  if (request.starts_with("GET /chunks ")) {
    std::string made =
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char one : encoded("in chunks", coding::gzip))
      made += std::string("1\r\n") + one + "\r\n";
    return made + "0\r\nSum: 7\r\n\r\n";
  }
  if (request.starts_with("GET /cut ")) {
    std::string body = encoded(text, coding::gzip);
    body.pop_back();
    return with_coding(body, "gzip");
  }
  if (request.starts_with("GET /more "))
    return with_coding(encoded(text, coding::gzip) + "x", "gzip");
  if (request.starts_with("GET /no ")) return with_coding("no gzip at all", "gzip");
  if (request.starts_with("GET /none ")) return with_coding("", "gzip");
  if (request.starts_with("GET /other ")) return with_coding("a text", "x-own");
  if (request.starts_with("GET /two ")) return with_coding("a text", "gzip, gzip");
  if (request.starts_with("GET /part "))
    return "HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\n"
           "Content-Range: bytes 0-2/9\r\nContent-Length: 3\r\n\r\nabc";
  if (request.starts_with("GET /moved "))
    return "HTTP/1.1 302 Found\r\nLocation: /chunks\r\nContent-Encoding: gzip\r\n"
           "Content-Length: 2\r\n\r\nno";
  return with_length("plain");
}

TEST_P(http_client_decoding, gives_what_was_encoded) {
  run(
      say,
      [](scripted_server& server, client web) -> task<> {
        for (const coding one : {coding::gzip, coding::brotli, coding::zstd}) {
          if (!http::has_coding(one)) continue;
          const std::string path = one == coding::gzip   ? "/gzip"
                                   : one == coding::zstd ? "/zstd"
                                                         : "/br";
          client_response answer = co_await web.get(server.url(path));
          EXPECT_EQ(answer.field("Content-Encoding"), "");
          EXPECT_EQ(answer.field("Content-Length"), "");
          EXPECT_EQ(answer.field("Content-Type"), "text/plain");
          EXPECT_FALSE(answer.length().has_value());
          std::string all;
          for (;;) {
            const std::string_view piece = co_await answer.read();
            if (piece.empty()) break;
            EXPECT_LE(piece.size(), 16'384u);
            all += piece;
          }
          EXPECT_TRUE(all == std::string(50'000, 'a')) << path;
          const std::string_view end = co_await answer.read();
          EXPECT_EQ(end, "");
        }
        client_response chunks = co_await web.get(server.url("/chunks"));
        const std::string text = co_await chunks.read_all();
        EXPECT_EQ(text, "in chunks");
        EXPECT_EQ(chunks.trailer()["Sum"], "7");
        const std::string moved = co_await outcome_of(web.get(server.url("/moved")));
        EXPECT_EQ(moved, "200 in chunks");
        const std::string none = co_await outcome_of(web.get(server.url("/none")));
        EXPECT_EQ(none, "200 ");
        const std::string plain = co_await outcome_of(web.get(server.url("/plain")));
        EXPECT_EQ(plain, "200 plain");
        for (const std::string& request : server.requests())
          EXPECT_NE(request.find("\r\nAccept-Encoding: gzip"), std::string::npos) << request;
        EXPECT_EQ(server.connections(), 1);
      },
      with_limit(50'000));
}

TEST_P(http_client_decoding, more_than_the_limit_is_an_error) {
  run(
      say,
      [](scripted_server& server, client web) -> task<> {
        for (const char* path : {"/gzip", "/br", "/zstd"}) {
          if (!http::has_coding(coding::brotli) || !http::has_coding(coding::zstd)) continue;
          client_response answer = co_await web.get(server.url(path));
          std::string got;
          try {
            for (;;) {
              const std::string_view piece = co_await answer.read();
              if (piece.empty()) break;
            }
          } catch (const http::client_error& e) {
            got = text_of(e.reason());
          }
          EXPECT_EQ(got, "decoded_too_large") << path;
          got.clear();
          try {
            co_await answer.read();
          } catch (const http::client_error& e) {
            got = text_of(e.reason());
          }
          EXPECT_EQ(got, "decoded_too_large") << "a later read says the same";
        }
      },
      with_limit(49'999));
}

TEST_P(http_client_decoding, malformed_bodies_are_bad_responses) {
  run(
      say,
      [](scripted_server& server, client web) -> task<> {
        for (const char* path : {"/cut", "/more", "/no"}) {
          http::fault why = http::fault::none;
          try {
            co_await fetch(web.get(server.url(path)));
          } catch (const http::client_error& e) {
            EXPECT_EQ(e.reason(), http::client_failure::bad_response);
            why = e.why();
          }
          EXPECT_EQ(why, http::fault::bad_content) << path;
        }
      },
      with_limit(50'000));
}

TEST_P(http_client_decoding, leaves_alone_what_it_cannot_decode) {
  run(
      say,
      [](scripted_server& server, client web) -> task<> {
        client_response other = co_await web.get(server.url("/other"));
        EXPECT_EQ(other.field("Content-Encoding"), "x-own");
        const std::string text = co_await other.read_all();
        EXPECT_EQ(text, "a text");
        const std::string two = co_await outcome_of(web.get(server.url("/two")));
        EXPECT_EQ(two, "200 a text");
        client_response head = co_await web.head(server.url("/gzip"));
        EXPECT_EQ(head.field("Content-Encoding"), "gzip");
        EXPECT_EQ(head.length(), 7u);
        client_request ranged("GET", server.url("/part"));
        ranged.range(0, 2);
        const std::string part = co_await outcome_of(web.send(std::move(ranged)));
        EXPECT_EQ(part, "206 abc");
        EXPECT_EQ(server.requests().back().find("Accept-Encoding"), std::string::npos);
        client_request own("GET", server.url("/gzip"));
        own.field("Accept-Encoding", "gzip");
        client_response as_it_is = co_await web.send(std::move(own));
        EXPECT_EQ(as_it_is.field("Content-Encoding"), "GZIP");
        const std::string bytes = co_await as_it_is.read_all();
        EXPECT_LT(bytes.size(), 1'000u);
      },
      with_limit(1'000'000));
}

TEST_P(http_client_decoding, asks_for_nothing_without_a_limit) {
  run(say, [](scripted_server& server, client web) -> task<> {
    client_response answer = co_await web.get(server.url("/gzip"));
    EXPECT_EQ(answer.field("Content-Encoding"), "GZIP");
    const std::string bytes = co_await answer.read_all();
    EXPECT_LT(bytes.size(), 1'000u);
    EXPECT_EQ(server.requests().back().find("Accept-Encoding"), std::string::npos);
  });
}

TROUPE_CLIENT_TEST_EACH(http_client_decoding);

#if __has_include(<nghttp2/nghttp2.h>)
// What our own server compresses, also while it comes.
class http2_client_decoding : public http2_client_conformance {};

TEST_P(http2_client_decoding, of_answers_of_our_server) {
  for (const bool by_http2 : {false, true}) {
    http::router routes;
    routes.get("/whole", [] { return http::response::text(std::string(500'000, 'a')); });
    routes.get("/stream", [] {
      return http::response::stream("text/plain", [](http::body_writer& to) -> task<> {
        for (int i = 0; i < 50; ++i) {
          const std::string piece(10'000, static_cast<char>('a' + i % 26));
          co_await to.write(piece);
        }
        to.trailer("Sum", "7");
      });
    });
    routes.around(http::compress());
    client_options chosen = with_limit(500'000);
    chosen.http2_prior_knowledge = by_http2;
    ask(
        std::move(routes),
        [](client web, http::server, std::string url) -> task<> {
          for (const char* path : {"/whole", "/stream"}) {
            client_response answer = co_await web.get(url + path);
            EXPECT_FALSE(answer.length().has_value());
            const std::string all = co_await answer.read_all();
            EXPECT_EQ(all.size(), 500'000u);
            EXPECT_EQ(answer.trailer().size(), path == std::string_view("/stream") ? 1u : 0u);
          }
        },
        chosen);
  }
}

TEST_P(http2_client_decoding, a_bomb_is_left_early) {
  http::router routes;
  const std::string bomb = encoded(std::string(30'000'000, 'a'), coding::gzip);
  routes.get("/", [&] {
    http::response made = http::response::owned(bomb, "text/plain");
    return std::move(made).field("Content-Encoding", "gzip");
  });
  client_options chosen = with_limit(100'000);
  chosen.http2_prior_knowledge = true;
  ask(
      std::move(routes),
      [](client web, http::server, std::string url) -> task<> {
        for (int i = 0; i < 3; ++i) {
          const std::string got = co_await outcome_of(web.get(url + "/"));
          EXPECT_EQ(got, "decoded_too_large");
        }
      },
      chosen);
}

TROUPE_HTTP_TEST_EACH(http2_client_decoding);
#endif

}  // namespace
}  // namespace troupe::test
