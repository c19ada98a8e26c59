// WebSockets over HTTP/2 (RFC 8441): the same function talks over a stream.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;

router chat_routes() {
  router routes;
  http::websocket_options options;
  options.subprotocols = {"chat"};
  const auto echo = [](http::websocket& peer) -> task<> {
    for (;;) {
      const auto said = co_await peer.receive();
      if (!said) co_return;
      co_await peer.send("you said " + std::string(said->data));
    }
  };
  routes.get("/chat", [echo, options] { return response::websocket(echo, options); });
  routes.get("/", [] { return response::text("hello"); });
  return routes;
}

// The frame of a client, masked with zeros.
std::string said_by_client(int first, std::string_view text) {
  return std::string{static_cast<char>(first), static_cast<char>(0x80 | text.size())} +
         std::string(4, '\0') + std::string(text);
}
std::string said_by_server(int first, std::string_view text) {
  return std::string{static_cast<char>(first), static_cast<char>(text.size())} + std::string(text);
}
h2::field_pairs connect_to(const std::string& path, const std::string& version = "13") {
  return {{":method", "CONNECT"}, {":protocol", "websocket"},
          {":scheme", "http"},    {":path", path},
          {":authority", "a"},    {"sec-websocket-version", version},
          {"origin", "http://a"}, {"sec-websocket-protocol", "x, chat"}};
}
std::string connect_frame(std::int32_t stream, const std::string& path) {
  return h2::ask(stream, connect_to(path), false);
}

class http2_websocket : public http_conformance {
 protected:
  static task<std::string> data_on(h2::peer& from, std::int32_t stream, std::size_t bytes) {
    std::string all;
    while (all.size() < bytes) {
      const auto some = co_await from.next_of(h2::data);
      if (!some) break;
      if (some->stream == stream) all += some->payload;
    }
    co_return all;
  }
};

TEST_P(http2_websocket, talks_beside_requests_and_closes) {
  run(chat_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at, h2::hello + connect_frame(1, "/chat"));
    const auto head = co_await one->next_of(h2::headers);
    EXPECT_TRUE(head.has_value());
    if (!head) co_return;
    const h2::field_pairs fields = one->fields_in(*head);
    EXPECT_EQ(fields.front().second, "200");
    EXPECT_EQ(fields.back().first, "sec-websocket-protocol");
    EXPECT_EQ(fields.back().second, "chat");
    EXPECT_EQ(head->flags & h2::end_stream, 0);

    const std::string said = h2::frame_of(h2::data, 0, 1, said_by_client(0x81, "hi"));
    co_await one->send(said);
    const std::string expected = said_by_server(0x81, "you said hi");
    const std::string got = co_await data_on(*one, 1, expected.size());
    EXPECT_EQ(got, expected);
    const std::string beside = h2::ask(3, h2::get("/"));
    co_await one->send(beside);
    const h2::answer other = co_await one->answer_to(3);
    EXPECT_EQ(other.body, "hello");

    const std::string close =
        h2::frame_of(h2::data, h2::end_stream, 1, said_by_client(0x88, "\x03\xe8"));
    co_await one->send(close);
    const h2::answer end = co_await one->answer_to(1);
    EXPECT_EQ(end.body, said_by_server(0x88, "\x03\xe8"));
    EXPECT_TRUE(end.is_complete);
  });
}

TEST_P(http2_websocket, is_told_when_the_server_stops) {
  run(chat_routes(), [&](runtime&, http::server web, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at, h2::hello + connect_frame(1, "/chat"));
    const auto head = co_await one->next_of(h2::headers);
    EXPECT_TRUE(head.has_value());
    web.stop();
    const std::string expected = said_by_server(0x88, "\x03\xe9");
    const std::string got = co_await data_on(*one, 1, expected.size());
    EXPECT_EQ(got, expected);
  });
}

TEST_P(http2_websocket, is_refused_where_there_is_none) {
  const auto status = [&](const h2::field_pairs& head, bool ends = false) {
    h2::answer got;
    run(chat_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      const std::string frames = h2::ask(1, head, ends);
      got = co_await h2::answer_to(at, frames);
    });
    return got.status;
  };
  EXPECT_EQ(status(connect_to("/none")), "404");
  EXPECT_EQ(status(connect_to("/chat", "12")), "426");
  EXPECT_EQ(status(h2::get("/chat"), true), "426");
  h2::field_pairs other = connect_to("/chat");
  other[1].second = "connect-udp";
  EXPECT_EQ(status(other), "501");
}

TROUPE_HTTP_TEST_EACH(http2_websocket);

}  // namespace
}  // namespace troupe::test

#endif
