// Bodies of requests that came compressed are decoded up to a limit, by both protocols.
#include "http/coding/encoder.hpp"
#include "support/http.hpp"
#if __has_include(<nghttp2/nghttp2.h>)
#include "http/h2/h2_peer.hpp"
#endif

namespace troupe::test {
namespace {

using http::coding;
using http::request;
using http::response;
using http::router;

std::string encoded(std::string_view text, coding by) {
  std::string made;
  http::make_encoder(by)->add(text, made, http::encoder::until::end);
  return made;
}

// The beginning and the length.
std::string shown(std::string_view body) {
  return std::string(body.substr(0, 5)) + ' ' + std::to_string(body.size());
}

router some_routes() {
  router routes;
  routes.post("/plain", [](const request& asked) { return response::text(shown(asked.body())); });
  routes.post("/whole", [](request& asked) -> task<response> {
    const std::string_view body = co_await asked.read_all();
    co_return response::text(shown(body));
  });
  routes.post("/pieces", [](request& asked) -> task<response> {
    std::string all;
    for (;;) {
      const std::string_view piece = co_await asked.read();
      if (piece.empty()) break;
      EXPECT_LE(piece.size(), 16'384u);
      all += piece;
    }
    co_return response::text(shown(all) + std::string(asked.trailer()["Sum"]));
  });
  routes.post("/unread",
              [](const request&) -> task<response> { co_return response::text("unread"); });
  routes.post("/large", [](const request& asked) { return response::text(shown(asked.body())); },
              {.decoded_body_bytes = 3'000'000});
  return routes;
}

http::server_options with_limit(std::size_t bytes) {
  http::server_options made;
  made.decoded_body_bytes = bytes;
  return made;
}

const std::vector<std::string>& all_paths() {
  static const std::vector<std::string> all{"/plain", "/whole", "/pieces"};
  return all;
}

class http_encoded_bodies : public http_conformance {
 protected:
  static std::string head(const std::string& path, const std::string& fields) {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + fields;
  }
  // By HTTP/1.1, with a length.
  std::string post(const std::string& path, const std::string& body, const std::string& by,
                   const http::server_options& limits) {
    const std::string field = by.empty() ? "" : "Content-Encoding: " + by + "\r\n";
    return answer_to(some_routes(),
                     head(path, field + "Connection: close\r\nContent-Length: " +
                                    std::to_string(body.size()) + "\r\n\r\n") +
                         body,
                     limits);
  }
  static int status_of(const std::string& answer) { return std::stoi(answer.substr(9, 3)); }
  static std::string body_of(const std::string& answer) {
    return answer.substr(answer.find("\r\n\r\n") + 4);
  }
};

TEST_P(http_encoded_bodies, are_decoded) {
  const std::string text(100'000, 'a');
  for (const coding one : {coding::gzip, coding::brotli, coding::zstd}) {
    if (!http::has_coding(one)) continue;
    const std::string body = encoded(text, one), by(http::name_of(one));
    for (const std::string& path : all_paths())
      EXPECT_EQ(body_of(post(path, body, by, with_limit(100'000))), "aaaaa 100000") << by << path;
    EXPECT_EQ(body_of(post("/unread", body, by, with_limit(10))), "unread");
  }
}

TEST_P(http_encoded_bodies, are_decoded_in_chunks_of_any_length) {
  const std::string body = encoded("a text that is short", coding::gzip);
  for (const std::string& path : all_paths()) {
    std::string sent = head(path,
                            "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
                            "Connection: close\r\n\r\n");
    for (const char one : body) sent += std::string("1\r\n") + one + "\r\n";
    sent += "0\r\nSum: 7\r\n\r\n";
    const std::string wanted = path == "/pieces" ? "a tex 207" : "a tex 20";
    const std::string got = answer_to(some_routes(), sent, with_limit(20));
    EXPECT_EQ(body_of(got), wanted);
  }
}

// The connection can serve the next request.
TEST_P(http_encoded_bodies, leave_the_connection_as_it_was) {
  const std::string body = encoded("first", coding::gzip);
  const std::string got = answer_to(
      some_routes(),
      head("/plain", "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(body.size()) +
                         "\r\n\r\n") +
          body + head("/whole", "Content-Length: 6\r\n\r\n") + "second" +
          head("/plain", "Connection: close\r\nContent-Length: 5\r\n\r\n") + "third",
      with_limit(5));
  EXPECT_NE(got.find("first 5"), std::string::npos) << got;
  EXPECT_NE(got.find("secon 6"), std::string::npos) << got;
  EXPECT_NE(got.find("third 5"), std::string::npos) << got;
}

TEST_P(http_encoded_bodies, beyond_the_limit_are_413) {
  const std::string bomb = encoded(std::string(2'000'001, 'a'), coding::gzip);
  EXPECT_LT(bomb.size(), 20'000u);
  for (const std::string& path : all_paths()) {
    EXPECT_EQ(status_of(post(path, bomb, "gzip", with_limit(2'000'000))), 413) << path;
    EXPECT_EQ(status_of(post(path, bomb, "gzip", with_limit(2'000'001))), 200) << path;
  }
  EXPECT_EQ(body_of(post("/large", bomb, "gzip", with_limit(10))), "aaaaa 2000001");
  EXPECT_EQ(body_of(post("/large", bomb, "gzip", {})), "aaaaa 2000001");
}

TEST_P(http_encoded_bodies, of_other_codings_are_415) {
  for (const std::string& path : all_paths()) {
    for (const char* by : {"deflate", "gzip, gzip", "x-own", ","}) {
      const std::string got = post(path, "12345", by, with_limit(100));
      EXPECT_EQ(status_of(got), 415) << by;
      EXPECT_NE(got.find("Content-Encoding that is not known"), std::string::npos) << got;
      EXPECT_NE(got.find("\r\nAccept-Encoding: gzip"), std::string::npos) << got;
    }
    EXPECT_EQ(status_of(post(path, "12345", "gzip\r\nContent-Encoding: gzip", with_limit(100))),
              415);
    EXPECT_EQ(body_of(post(path, "12345", "identity", with_limit(1))), "12345 5");
    EXPECT_EQ(body_of(post(path, "12345", "", with_limit(1))), "12345 5");
  }
}

TEST_P(http_encoded_bodies, that_are_malformed_are_400) {
  const std::string whole = encoded(std::string(1'000, 'b'), coding::gzip);
  for (const std::string& path : all_paths()) {
    for (const std::string& body : {whole.substr(0, whole.size() - 1), whole + "x",
                                    std::string("no gzip at all"), whole.substr(0, 3)}) {
      const std::string got = post(path, body, "gzip", with_limit(1'000));
      EXPECT_EQ(status_of(got), 400) << path;
      EXPECT_EQ(body_of(got), "the body is not what its Content-Encoding says\n") << path;
    }
    EXPECT_EQ(body_of(post(path, "", "gzip", with_limit(1'000))), " 0");
  }
}

TEST_P(http_encoded_bodies, come_as_they_are_without_a_limit) {
  const std::string body = encoded("hello", coding::gzip);
  EXPECT_EQ(body_of(post("/plain", body, "gzip", {})), shown(body));
  EXPECT_EQ(body_of(post("/whole", "12345", "x-own", {})), "12345 5");
}

// What comes is limited as it is, too.
TEST_P(http_encoded_bodies, are_limited_as_they_come) {
  http::server_options limits = with_limit(1'000'000);
  limits.body_bytes = 20;
  const std::string body = encoded("a text that is short", coding::gzip);
  EXPECT_EQ(status_of(post("/plain", body, "gzip", limits)), 413);
}

#if __has_include(<nghttp2/nghttp2.h>)
class http2_encoded_bodies : public http_conformance {
 protected:
  h2::answer post(const std::string& path, const std::string& body, const std::string& by,
                  const http::server_options& limits) {
    h2::answer got;
    std::string frames = h2::ask(1, h2::post(path, {{"content-encoding", by}}), false);
    for (std::size_t at = 0; at < body.size(); at += 700)
      frames += h2::frame_of(h2::data, 0, 1, std::string_view(body).substr(at, 700));
    frames += h2::frame_of(h2::data, h2::end_stream, 1, "");
    run(
        some_routes(),
        [&](runtime&, http::server, endpoint at) -> task<> {
          got = co_await h2::answer_to(at, frames);
        },
        limits);
    return got;
  }
};

TEST_P(http2_encoded_bodies, are_decoded_and_limited) {
  const std::string bomb = encoded(std::string(2'000'001, 'a'), coding::gzip);
  for (const std::string& path : all_paths()) {
    EXPECT_EQ(post(path, bomb, "gzip", with_limit(2'000'001)).body, "aaaaa 2000001") << path;
    EXPECT_EQ(post(path, bomb, "gzip", with_limit(2'000'000)).status, "413") << path;
    const h2::answer other = post(path, bomb, "deflate", with_limit(100));
    EXPECT_EQ(other.status, "415") << path;
    EXPECT_TRUE(other.field("accept-encoding").starts_with("gzip")) << path;
    EXPECT_EQ(post(path, bomb.substr(0, 1'000), "gzip", with_limit(2'000'001)).status, "400");
    EXPECT_EQ(post(path, bomb + "x", "gzip", with_limit(2'000'001)).status, "400");
    EXPECT_EQ(post(path, "hello", "identity", with_limit(1)).body, "hello 5");
    EXPECT_EQ(post(path, bomb, "gzip", {}).body, shown(bomb)) << path;
  }
}

TROUPE_HTTP_TEST_EACH(http2_encoded_bodies);
#endif

TROUPE_HTTP_TEST_EACH(http_encoded_bodies);

}  // namespace
}  // namespace troupe::test
