// What clients of HTTP/2 may send before a handler reads it, at each limit and one byte past it.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;

class http2_windows : public http_conformance {};

std::string data_of(std::int32_t stream, std::size_t bytes, bool ends = false) {
  return h2::frame_of(h2::data, ends ? h2::end_stream : 0, stream, std::string(bytes, 'x'));
}

// How many bytes the server allows on that stream, in answer to what it has got so far.
task<std::size_t> window_given(h2::peer& by, std::int32_t stream) {
  std::size_t bytes = 0;
  // The answer to a ping may overtake other frames, but not that to the next one.
  for (int pings = 0; pings < 2; ++pings) {
    co_await by.send(h2::frame_of(h2::ping, 0, 0, "how much"));
    for (;;) {
      const std::optional<h2::frame> one = co_await by.next();
      if (!one) co_return bytes;
      if (one->type == h2::ping && (one->flags & h2::ack) != 0) break;
      if (one->type == h2::window_update && one->stream == stream)
        bytes += h2::number_in(one->payload);
    }
  }
  co_return bytes;
}

TEST_P(http2_windows, of_a_stream) {
  troupe::event may_end;
  router routes;
  routes.post("/", [may_end](request&) -> task<response> {
    co_await may_end.wait();
    co_return response::text("no");
  });
  http::server_options limits;
  limits.http2.stream_window = 2'000;
  run(
      std::move(routes),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        const auto one = co_await h2::peer::connect(at);
        EXPECT_TRUE(co_await one->is_alive());  // and has heard that the client knows the window
        co_await one->send(h2::ask(1, h2::post("/"), false) + data_of(1, 2'000));
        EXPECT_TRUE(co_await one->is_alive());
        EXPECT_EQ(web.http2().protocol_errors, 0u);
        co_await one->send(data_of(1, 1));
        const h2::answer got = co_await one->answer_to(1);
        EXPECT_TRUE(got.reset == h2::flow_control_error || got.goaway == h2::flow_control_error);
        may_end.set();
      },
      limits);
}

// Beyond the limit only the oldest of the requests may send on.
TEST_P(http2_windows, of_the_bodies_that_are_collected) {
  http::server_options limits;
  limits.http2.stream_window = 2'000;
  limits.http2.collected_bytes = 3'000;
  for (const bool is_beyond : {false, true}) {
    router routes;
    routes.post("/", [](const request& asked) {
      return response::text(std::to_string(asked.body().size()));
    });
    run(
        std::move(routes),
        [&](runtime&, http::server, endpoint at) -> task<> {
          const auto one = co_await h2::peer::connect(at);
          EXPECT_TRUE(co_await one->is_alive());
          co_await one->send(h2::ask(1, h2::post("/"), false) + h2::ask(3, h2::post("/"), false));
          std::size_t given = 0;
          for (int i = 0; i < (is_beyond ? 2 : 1); ++i) {
            co_await one->send(data_of(1, 1'500));
            given += co_await window_given(*one, 1);
          }
          EXPECT_GE(given, is_beyond ? 2'000u : 1'000u);
          co_await one->send(data_of(3, 1'500));
          given = co_await window_given(*one, 3);
          EXPECT_EQ(given != 0, !is_beyond) << given;
          co_await one->send(data_of(1, 0, true));
          const h2::answer first = co_await one->answer_to(1);
          EXPECT_EQ(first.body, is_beyond ? "3000" : "1500");
          co_await one->send(data_of(3, 0, true));
          const h2::answer second = co_await one->answer_to(3);
          EXPECT_EQ(second.body, "1500");
        },
        limits);
  }
}

TROUPE_HTTP_TEST_EACH(http2_windows);

}  // namespace
}  // namespace troupe::test

#endif
