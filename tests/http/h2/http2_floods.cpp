// What a client of HTTP/2 does too often ends its connection with GOAWAY (ENHANCE_YOUR_CALM), and
// is counted. Each limit is tested at it and one past it.
#if __has_include(<nghttp2/nghttp2.h>)

#include <functional>

#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;

router flood_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.post("/", [](http::request& asked) -> task<response> {
    const std::string_view all = co_await asked.read_all();
    co_return response::text(std::to_string(all.size()));
  });
  return routes;
}

class http2_floods : public http_conformance {
 protected:
  using counted = std::uint64_t http::http2_counts::*;

  // Sends `first`, and then `one(i)` for i from 0 on: `most` of them are served, one more ends the
  // connection.
  void expect_limit(const http::server_options& limits, const std::string& first, std::size_t most,
                    counted as, const std::function<std::string(std::size_t)>& one) {
    run(
        flood_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          std::string bytes = h2::hello + first;
          for (std::size_t i = 0; i < most; ++i) bytes += one(i);
          const auto peer = co_await h2::peer::connect(at, bytes);
          peer->replies = false;  // an answer to SETTINGS would count
          const auto alive = co_await peer->next_of(h2::settings, h2::ack);
          EXPECT_TRUE(alive.has_value());
          EXPECT_EQ(web.http2().*as, 0u);
          const std::string more = one(most);
          co_await peer->send_what_fits(more);
          const auto code = co_await peer->end();
          EXPECT_EQ(code, h2::enhance_your_calm);
          EXPECT_EQ(web.http2().*as, 1u);
        },
        limits);
  }

  static http::server_options few() {
    http::server_options limits;
    limits.http2.span = std::chrono::hours(1);
    limits.http2.resets = limits.http2.settings = limits.http2.pings = 5;
    limits.http2.window_updates = limits.http2.priorities = limits.http2.empty_data = 5;
    limits.http2.other_frames = 5;
    limits.http2.continuations = 3;
    return limits;
  }
};

using h2::frame_of;

TEST_P(http2_floods, of_pings) {
  expect_limit(few(), "", 5, &http::http2_counts::pings,
               [](std::size_t) { return frame_of(h2::ping, 0, 0, "12345678"); });
}

// The greeting has the first of them.
TEST_P(http2_floods, of_settings) {
  expect_limit(few(), "", 4, &http::http2_counts::settings,
               [](std::size_t) { return h2::settings_of({}); });
}

TEST_P(http2_floods, of_priorities) {
  expect_limit(few(), "", 5, &http::http2_counts::priorities, [](std::size_t i) {
    return i % 2 == 0 ? frame_of(h2::priority, 0, 3, std::string("\0\0\0\0\7", 5))
                      : frame_of(h2::priority_update, 0, 0, std::string("\0\0\0\1u=1", 7));
  });
}

TEST_P(http2_floods, of_window_updates) {
  expect_limit(few(), "", 5, &http::http2_counts::window_updates,
               [](std::size_t) { return frame_of(h2::window_update, 0, 0, h2::number(1, 4)); });
}

TEST_P(http2_floods, of_unknown_frames) {
  expect_limit(few(), "", 5, &http::http2_counts::other_frames,
               [](std::size_t) { return frame_of(77, 0, 0, "what?"); });
}

TEST_P(http2_floods, of_empty_data) {
  expect_limit(few(), h2::ask(1, h2::post("/"), false), 5, &http::http2_counts::empty_data,
               [](std::size_t i) {
                 return i % 2 == 0 ? frame_of(h2::data, 0, 1, "")
                                   : frame_of(h2::data, h2::padded, 1, std::string("\3\0\0\0", 4));
               });
}

// CVE-2023-44487
TEST_P(http2_floods, of_resets) {
  expect_limit(few(), "", 5, &http::http2_counts::resets, [](std::size_t i) {
    const auto stream = static_cast<std::int32_t>(2 * i + 1);
    return h2::ask(stream, h2::get("/"), false) +
           frame_of(h2::rst_stream, 0, stream, h2::number(h2::cancel, 4));
  });
}

// CVE-2025-8671: the client makes the server reset its streams.
TEST_P(http2_floods, of_streams_that_the_server_has_to_reset) {
  expect_limit(few(), "", 5, &http::http2_counts::resets, [](std::size_t i) {
    const auto stream = static_cast<std::int32_t>(2 * i + 1);
    return h2::ask(stream, h2::get("/"), false) +
           frame_of(h2::window_update, 0, stream, h2::number(0x7fffffff, 4));
  });
}

// CVE-2024-28182
TEST_P(http2_floods, of_continuations) {
  for (std::size_t count = 3; count <= 4; ++count) {
    const std::string block = h2::block_of(h2::get("/"));
    std::string frames = frame_of(h2::headers, h2::end_stream, 1, block);
    for (std::size_t i = 0; i + 1 < count; ++i) frames += frame_of(h2::continuation, 0, 1, "");
    frames += frame_of(h2::continuation, h2::end_headers, 1, "");
    run(
        flood_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          const auto peer = co_await h2::peer::connect(at, h2::hello + frames);
          if (count == 3) {
            const h2::answer got = co_await peer->answer_to(1);
            EXPECT_EQ(got.body, "hello");
          } else {
            const auto code = co_await peer->end();
            EXPECT_EQ(code, h2::enhance_your_calm);
          }
          EXPECT_EQ(web.http2().continuations, count == 3 ? 0u : 1u);
        },
        few());
  }
}

// A list that is a little too long is answered 431 (http2_requests). One that is much too long ends
// the connection: by its bytes as they come, or by what they stand for.
TEST_P(http2_floods, of_header_lists) {
  http::server_options limits = few();
  limits.head_bytes = 1024;
  const std::string long_block = h2::block_of(h2::get("/", {{"a", std::string(4000, 'x')}}));
  // The first field goes to the table, and each of the others is one byte that refers to it.
  std::string bomb = h2::block_of(h2::get("/"));
  bomb += "\x40" + h2::hpack_text("a") + h2::hpack_text(std::string(900, 'x'));
  bomb += std::string(20, '\xbe');
  for (const std::string& block : {long_block, bomb}) {
    run(
        flood_routes(),
        [&](runtime&, http::server web, endpoint at) -> task<> {
          const std::string frames =
              frame_of(h2::headers, h2::end_headers | h2::end_stream, 1, block);
          const auto code = co_await h2::end_of(at, h2::hello + frames);
          EXPECT_EQ(code, h2::enhance_your_calm);
          EXPECT_EQ(web.http2().header_lists, 1u);
        },
        limits);
  }
}

// A client that downloads gives windows and measures by pings as often as data comes.
TEST_P(http2_floods, are_not_what_a_download_needs) {
  http::server_options limits = few();
  router routes;
  routes.get("/", [] { return response::text(std::string(2'000'000, 'x')); });
  run(
      std::move(routes),
      [&](runtime&, http::server web, endpoint at) -> task<> {
        const auto peer = co_await h2::peer::connect(at, h2::hello + h2::ask(1, h2::get("/")));
        std::size_t bytes = 0;
        while (bytes < 2'000'000) {
          const auto some = co_await peer->next_of(h2::data);
          EXPECT_TRUE(some.has_value());
          if (!some) co_return;
          bytes += some->payload.size();
          const std::string more = h2::number(some->payload.size(), 4);
          co_await peer->send(frame_of(h2::window_update, 0, 0, more) +
                              frame_of(h2::window_update, 0, 1, more) +
                              frame_of(h2::ping, 0, 0, "measures"));
        }
        EXPECT_EQ(web.http2().window_updates, 0u);
        EXPECT_EQ(web.http2().pings, 0u);
      },
      limits);
}

// Many frames at once, from a client that does not read.
TEST_P(http2_floods, end_also_for_clients_that_do_not_read) {
  run(flood_routes(), [&](runtime&, http::server web, endpoint at) -> task<> {
    std::string flood = h2::hello;
    for (int i = 0; i < 20'000; ++i) flood += frame_of(h2::ping, 0, 0, "12345678");
    const auto code = co_await h2::end_of(at, flood);
    EXPECT_TRUE(!code || code == h2::enhance_your_calm);
    while (web.connections() != 0) co_await sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(web.http2().pings + web.http2().unread_answers, 1u);
  });
}

TROUPE_HTTP_TEST_EACH(http2_floods);

}  // namespace
}  // namespace troupe::test

#endif
