// Answers that are compressed, and the encoders behind that.
#include "troupe/http/around/compress.hpp"

#include "http/coding/encoder.hpp"
#include "support/http.hpp"

#define ZLIB_CONST
#include <zlib.h>

#include <array>

namespace troupe::test {
namespace {

using http::response;
using http::router;

class http_compress : public http_conformance {};

std::string get(std::string_view fields, std::string_view target = "/",
                std::string_view method = "GET") {
  return std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" +
         std::string(fields) + "Connection: close\r\n\r\n";
}
std::string accept(std::string_view codings) {
  return "Accept-Encoding: " + std::string(codings) + "\r\n";
}
std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}
bool has(const std::string& answer, std::string_view line) {
  return answer.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
}
std::string coding_of(const std::string& answer) {
  const std::size_t at = answer.find("Content-Encoding: ");
  if (at == std::string::npos) return "";
  return answer.substr(at + 18, answer.find("\r\n", at) - at - 18);
}

// The text of a gzip stream as far as it goes.
std::string unzipped(std::string_view from) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string made(4 * 1024 * 1024, '\0');
  stream.next_in = reinterpret_cast<const Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  EXPECT_GE(inflate(&stream, Z_SYNC_FLUSH), 0);
  made.resize(stream.total_out);
  inflateEnd(&stream);
  return made;
}

// The chunks that are here as a whole.
std::string from_chunks(std::string_view body) {
  std::string made;
  for (;;) {
    const std::size_t end = body.find("\r\n");
    if (end == std::string_view::npos) return made;
    const std::size_t bytes = std::stoul(std::string(body.substr(0, end)), nullptr, 16);
    if (bytes == 0 || body.size() < end + 2 + bytes + 2) return made;
    made += body.substr(end + 2, bytes);
    body.remove_prefix(end + 2 + bytes + 2);
  }
}

std::string text_of(std::size_t bytes) {
  std::string made;
  for (int i = 0; made.size() < bytes; ++i) made += "line " + std::to_string(i) + "\n";
  made.resize(bytes);
  return made;
}

router routes_of(std::size_t bytes, http::compress with = {}) {
  router made;
  made.get("/", [bytes] { return response::text(text_of(bytes)); });
  made.get("/picture", [bytes] { return response::owned(text_of(bytes), "image/png"); });
  made.get("/svg", [bytes] { return response::owned(text_of(bytes), "image/svg+xml"); });
  made.get("/strong", [bytes] {
    return response::text(text_of(bytes)).field("ETag", "\"a\"").field("X-Behind", "b");
  });
  made.get("/weak", [bytes] { return response::text(text_of(bytes)).field("ETag", "W/\"a\""); });
  made.get("/part", [bytes] { return response::text(text_of(bytes)).status(206); });
  made.get("/done",
           [bytes] { return response::text(text_of(bytes)).field("Content-Encoding", "x"); });
  made.get("/kept", [bytes] {
    return response::text(text_of(bytes)).field("Cache-Control", "public, no-transform");
  });
  made.get("/varies", [bytes] {
    return response::text(text_of(bytes)).field("Vary", "accept-encoding, Origin");
  });
  made.get("/stream", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("one ");
      co_await to.write("");
      co_await to.write(text_of(100'000));
    });
  });
  made.get("/events", [] {
    return response::events([](http::event_writer& to) -> task<> { co_await to.send("one"); });
  });
  made.get("/both", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await when_all(to.write(std::string(5'000, 'a')), to.write(std::string(5'000, 'b')));
    });
  });
  made.around(with);
  return made;
}

TEST_P(http_compress, takes_what_the_client_prefers) {
  const auto coding = [&](std::string_view codings) {
    return coding_of(answer_to(routes_of(2'000), get(accept(codings))));
  };
  EXPECT_EQ(coding("gzip"), "gzip");
  EXPECT_EQ(coding("GZIP;q=0.1"), "gzip");
  EXPECT_EQ(coding("gzip;q=0"), "");
  EXPECT_EQ(coding("deflate, compress"), "");
  EXPECT_EQ(coding(""), "");
  EXPECT_EQ(coding("identity, gzip;q=0.5"), "");
  EXPECT_EQ(coding("identity;q=0.4, gzip;q=0.5"), "gzip");
  EXPECT_EQ(coding("*;q=0.5, gzip;q=0.4, br;q=0, zstd;q=0"), "");
  EXPECT_EQ(coding("identity;q=0, *;q=0"), "");
  if (!http::has_coding(http::coding::brotli) || !http::has_coding(http::coding::zstd))
    GTEST_SKIP() << "needs brotli and zstd: the rest was tried with gzip";
  EXPECT_EQ(coding("gzip, br, zstd"), "br");
  EXPECT_EQ(coding("gzip, zstd"), "zstd");
  EXPECT_EQ(coding("gzip, br;q=0.9, zstd;q=0.8"), "gzip");
  EXPECT_EQ(coding("*"), "br");
  EXPECT_EQ(coding("*, br;q=0"), "zstd");
}

// A list may come in several fields, and a 304 says what the answer with a body would have said.
TEST_P(http_compress, several_fields_are_one_list) {
  const std::string both = accept("br;q=0, zstd;q=0") + accept("gzip");
  EXPECT_EQ(coding_of(answer_to(routes_of(2'000), get(both))), "gzip");
  const auto ask = [&](std::string_view target) {
    router routes;
    routes.get("/kept", [] {
      return response::text(text_of(2'000))
          .field("Cache-Control", "public")
          .field("Cache-Control", "no-transform");
    });
    routes.get("/varies", [] {
      return response::text(text_of(2'000))
          .field("Vary", "Origin")
          .field("Vary", "Accept-Encoding");
    });
    routes.get("/same", [] { return response(304).field("ETag", "\"a\""); });
    routes.around(http::compress());
    return answer_to(std::move(routes), get(accept("gzip"), target));
  };
  EXPECT_EQ(coding_of(ask("/kept")), "");
  EXPECT_EQ(ask("/varies").find("Vary: Accept-Encoding"),
            ask("/varies").rfind("Vary: Accept-Encoding"));
  const std::string same = ask("/same");
  EXPECT_TRUE(has(same, "Vary: Accept-Encoding")) << same;
  EXPECT_TRUE(has(same, "ETag: W/\"a\"")) << same;
  EXPECT_EQ(coding_of(same), "");
}

TEST_P(http_compress, the_body_is_the_same) {
  for (const std::size_t bytes : {2'000u, 200'000u}) {
    const std::string got = answer_to(routes_of(bytes), get(accept("gzip")));
    EXPECT_TRUE(has(got, "Content-Length: " + std::to_string(body_of(got).size()))) << got;
    EXPECT_TRUE(has(got, "Vary: Accept-Encoding"));
    EXPECT_LT(body_of(got).size(), bytes / 2);
    EXPECT_EQ(unzipped(body_of(got)), text_of(bytes));
  }
  const std::string plain = answer_to(routes_of(2'000), get(""));
  EXPECT_TRUE(has(plain, "Vary: Accept-Encoding")) << plain;
  EXPECT_EQ(body_of(plain), text_of(2'000));
}

TEST_P(http_compress, bounds_of_bytes) {
  const auto coding = [&](std::size_t bytes, std::string_view codings = "gzip") {
    return coding_of(
        answer_to(routes_of(bytes, {.bytes_min = 100, .bytes_max = 300}), get(accept(codings))));
  };
  EXPECT_EQ(coding(99), "");
  EXPECT_EQ(coding(100), "gzip");
  EXPECT_EQ(coding(300), "gzip");
  EXPECT_EQ(coding(301), "");
  EXPECT_EQ(coding(99, "gzip, identity;q=0"), "gzip");
  EXPECT_EQ(coding(0, "gzip, identity;q=0"), "");
}

TEST_P(http_compress, leaves_alone_what_is_no_text_or_has_a_form) {
  const auto ask = [&](std::string_view target) {
    return answer_to(routes_of(2'000), get(accept("gzip"), target));
  };
  for (const char* target : {"/picture", "/part", "/kept"}) {
    const std::string got = ask(target);
    EXPECT_EQ(coding_of(got), "") << target;
    EXPECT_EQ(body_of(got), text_of(2'000)) << target;
  }
  EXPECT_EQ(coding_of(ask("/done")), "x");
  EXPECT_EQ(coding_of(ask("/svg")), "gzip");
}

TEST_P(http_compress, tags_become_weak_and_vary_is_said_once) {
  const auto ask = [&](std::string_view target, std::string_view codings) {
    return answer_to(routes_of(2'000), get(accept(codings), target));
  };
  const std::string strong = ask("/strong", "gzip");
  EXPECT_TRUE(has(strong, "ETag: W/\"a\"")) << strong;
  EXPECT_TRUE(has(strong, "X-Behind: b")) << strong;
  EXPECT_TRUE(has(ask("/weak", "gzip"), "ETag: W/\"a\""));
  EXPECT_TRUE(has(ask("/strong", "x"), "ETag: \"a\""));
  const std::string varies = ask("/varies", "gzip");
  EXPECT_EQ(varies.find("Vary: Accept-Encoding"), std::string::npos) << varies;
  EXPECT_EQ(coding_of(varies), "gzip");
}

TEST_P(http_compress, streams) {
  const auto ask = [&](std::string_view target) {
    return answer_to(routes_of(0), get(accept("gzip"), target));
  };
  const std::string got = ask("/stream");
  EXPECT_EQ(coding_of(got), "gzip");
  EXPECT_EQ(unzipped(from_chunks(body_of(got))), "one " + text_of(100'000));
  const std::string events = ask("/events");
  EXPECT_TRUE(has(events, "Content-Type: text/event-stream")) << events;
  EXPECT_EQ(unzipped(from_chunks(body_of(events))), "data: one\n\n");
  const std::string both = unzipped(from_chunks(body_of(ask("/both"))));
  EXPECT_TRUE(both == std::string(5'000, 'a') + std::string(5'000, 'b') ||
              both == std::string(5'000, 'b') + std::string(5'000, 'a'));
}

TEST_P(http_compress, streams_keep_their_trailer) {
  router made;
  made.get("/", [] {
    return response::stream("text/plain", [](http::body_writer& to) -> task<> {
      co_await to.write("body");
      to.trailer("Sum", "7");
    });
  });
  made.around(http::compress());
  const std::string got = answer_to(std::move(made), get(accept("gzip")));
  EXPECT_EQ(coding_of(got), "gzip");
  EXPECT_TRUE(got.ends_with("\r\n0\r\nSum: 7\r\n\r\n")) << got;
}

TEST_P(http_compress, a_piece_of_a_stream_can_be_read_before_the_next) {
  event seen;
  router made;
  made.get("/", [seen] {
    return response::stream("text/plain", [seen](http::body_writer& to) -> task<> {
      co_await to.write("first");
      co_await seen.wait();
    });
  });
  made.around(http::compress());
  run(std::move(made), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream to = co_await tcp_stream::connect(at);
    co_await to.write_all(get(accept("gzip")));
    std::string got;
    std::array<char, 4096> room;
    const auto is_here = [&] {
      if (got.find("\r\n\r\n") == std::string::npos) return false;
      const std::string chunks = from_chunks(body_of(got));
      return !chunks.empty() && unzipped(chunks) == "first";
    };
    while (!is_here()) {
      const std::size_t bytes = co_await to.read(room);
      if (bytes == 0) break;
      got.append(room.data(), bytes);
    }
    EXPECT_TRUE(is_here()) << got;
    seen.set();
  });
}

TEST_P(http_compress, head_says_what_get_would) {
  const std::string got = answer_to(routes_of(2'000), get(accept("gzip"), "/", "HEAD"));
  EXPECT_EQ(coding_of(got), "gzip");
  EXPECT_EQ(body_of(got), "");
}

TEST(http_encoder, one_text_after_another_for_each_coding) {
  for (const http::coding one : {http::coding::gzip, http::coding::brotli, http::coding::zstd}) {
    if (!http::has_coding(one)) continue;
    const auto with = http::make_encoder(one);
    std::string first, second;
    with->add(text_of(70'000), first, http::encoder::until::end);
    with->reset();
    with->add(text_of(70'000), second, http::encoder::until::end);
    EXPECT_EQ(first, second) << http::name_of(one);
    EXPECT_LT(first.size(), 35'000u) << http::name_of(one);
    std::string none;
    with->reset();
    with->add("", none, http::encoder::until::end);
    EXPECT_FALSE(none.empty()) << http::name_of(one);
  }
}

TROUPE_HTTP_TEST_EACH(http_compress);

}  // namespace
}  // namespace troupe::test
