// Priorities of RFC 9218: by the field of a request, and by PRIORITY_UPDATE. And how idle
// connections end.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::response;
using http::router;

class http2_priorities : public http_conformance {
 protected:
  static constexpr std::size_t body_bytes = 200'000;

  // Asks for two bodies while no window is open, opens it, and returns the order of the ends.
  std::vector<std::int32_t> order_of(const std::string& first, const std::string& second,
                                     const std::string& update = "") {
    router routes;
    routes.get("/", [] { return response::text(std::string(body_bytes, 'x')); });
    std::vector<std::int32_t> order;
    run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
      const auto asked = [](const std::string& how) {
        return h2::get("/", how.empty() ? h2::field_pairs() : h2::field_pairs{{"priority", how}});
      };
      const std::string closed = h2::magic + h2::settings_of({{4, 0}});
      const std::string asks = h2::ask(1, asked(first)) + h2::ask(3, asked(second)) + update;
      const auto one = co_await h2::peer::connect(at, closed + asks);
      for (int heads = 0; heads < 2; ++heads) co_await one->next_of(h2::headers);
      // Both streams can go on at once.
      const std::string opened = h2::frame_of(h2::window_update, 0, 0, h2::number(1'000'000, 4)) +
                                 h2::settings_of({{4, 1'000'000}});
      co_await one->send(opened);
      while (order.size() < 2) {
        const auto end = co_await one->next_of(h2::data, h2::end_stream);
        if (!end) break;
        order.push_back(end->stream);
      }
    });
    return order;
  }
  static std::string update_of(std::int32_t stream, const std::string& how) {
    return h2::frame_of(h2::priority_update, 0, 0,
                        h2::number(static_cast<std::uint32_t>(stream), 4) + how);
  }
};

TEST_P(http2_priorities, urgent_answers_come_first) {
  const std::vector<std::int32_t> as_asked{1, 3}, other{3, 1};
  EXPECT_EQ(order_of("", ""), as_asked);
  EXPECT_EQ(order_of("u=5", "u=1"), other);
  EXPECT_EQ(order_of("u=1", "u=5"), as_asked);
  EXPECT_EQ(order_of("", "", update_of(3, "u=0")), other);
  EXPECT_EQ(order_of("u=5", "u=1", update_of(1, "u=0")), as_asked);
  EXPECT_EQ(order_of("u=9", "what?"), as_asked);  // what is malformed is ignored
}

TEST_P(http2_priorities, updates_belong_to_the_connection) {
  run(router(), [&](runtime&, http::server, endpoint at) -> task<> {
    std::string wrong = h2::hello + update_of(1, "u=0");
    wrong[wrong.size() - 8] = 1;  // the number of the frame's stream
    const auto code = co_await h2::end_of(at, wrong);
    EXPECT_EQ(code, h2::protocol_error);
  });
}

TEST_P(http2_priorities, updates_name_a_stream) {
  run(router(), [&](runtime&, http::server, endpoint at) -> task<> {
    for (const std::uint32_t number : {0u, 0x80000000u}) {  // the first bit means nothing
      const std::string wrong = h2::hello + update_of(static_cast<std::int32_t>(number), "u=0");
      const auto code = co_await h2::end_of(at, wrong);
      EXPECT_EQ(code, h2::protocol_error) << number;
    }
    // The number comes in two pieces.
    const std::string wrong = h2::hello + update_of(0, "u=0");
    const auto one = co_await h2::peer::connect(at, wrong.substr(0, wrong.size() - 5));
    co_await one->next_of(h2::settings, h2::ack);
    co_await one->send_what_fits(wrong.substr(wrong.size() - 5));
    const auto code = co_await one->end();
    EXPECT_EQ(code, h2::protocol_error);
    // One that is too short for a number.
    const auto size =
        co_await h2::end_of(at, h2::hello + h2::frame_of(h2::priority_update, 0, 0, "123"));
    EXPECT_EQ(size, h2::frame_size_error);
  });
}

TROUPE_HTTP_TEST_EACH(http2_priorities);

// A client hears of the end of an idle connection, whether it has asked something or not.
class http2_ends : public http_conformance {};

TEST_P(http2_ends, idle_connections_end_with_goaway) {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  http::server_options limits;
  limits.idle_time = 50ms;
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        for (const bool asks : {false, true}) {
          const std::string first = h2::hello + (asks ? h2::ask(1, h2::get("/")) : "");
          const auto one = co_await h2::peer::connect(at, first);
          const auto code = co_await one->end();
          EXPECT_EQ(code, h2::no_error);
        }
      },
      limits);
}

TROUPE_HTTP_TEST_EACH(http2_ends);

}  // namespace
}  // namespace troupe::test

#endif
