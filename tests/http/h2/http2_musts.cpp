// What RFC 9113 demands of a server, a test for each (docs/protocols/http2.md).
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using h2::ask;
using h2::frame_of;
using http::response;
using http::router;

router must_routes() {
  router routes;
  routes.get("/", [] { return response::text("hello"); });
  routes.get("/hidden", [] { return response::text("hidden"); });
  routes.get("/big", [] { return response::text(std::string(100'000, 'x')); });
  routes.post("/", [](http::request& asked) -> task<response> {
    const std::string_view all = co_await asked.read_all();
    co_return response::text(std::to_string(all.size()));
  });
  routes.post("/never", [](http::request& asked) -> task<response> {
    const event never;
    co_await never.wait().stop(asked.client_gone());
    co_return response::text("never");
  });
  return routes;
}

class http2_musts : public http_conformance {
 protected:
  // The whole connection ends with this code.
  void expect_end(const std::string& bytes, std::uint32_t code) {
    run(must_routes(), [&](runtime&, http::server web, endpoint at) -> task<> {
      const auto got = co_await h2::end_of(at, bytes);
      EXPECT_EQ(got, code);
      EXPECT_EQ(web.http2().protocol_errors, 1u);
    });
  }
  // The stream is reset with this code, and the connection lives on.
  void expect_reset(const std::string& frames, std::uint32_t code, std::int32_t stream = 1) {
    const std::string next = ask(stream + 2, h2::get("/"));
    run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      const auto one = co_await h2::peer::connect(at, h2::hello + frames);
      const h2::answer got = co_await one->answer_to(stream);
      EXPECT_EQ(got.reset, code) << "status " << got.status;
      co_await one->send(next);
      const h2::answer second = co_await one->answer_to(stream + 2);
      EXPECT_EQ(second.body, "hello");
    });
  }
  void expect_malformed(const h2::field_pairs& head) {
    expect_reset(ask(1, head), h2::protocol_error);
  }
  void expect_status(const h2::field_pairs& head, const std::string& status) {
    run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      const std::string frames = ask(1, head);
      const h2::answer got = co_await h2::answer_to(at, frames);
      EXPECT_EQ(got.status, status);
    });
  }
  void expect_alive(const std::string& frames) {
    run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
      const auto one = co_await h2::peer::connect(at, h2::hello + frames);
      const bool is_alive = co_await one->is_alive();
      EXPECT_TRUE(is_alive);
    });
  }
};

// ---- 3.4: the preface ----

TEST_P(http2_musts, the_server_begins_with_settings) {
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    const auto first = co_await one->next();
    EXPECT_TRUE(first.has_value());
    if (!first) co_return;
    EXPECT_EQ(first->type, h2::settings);
    EXPECT_EQ(first->flags, 0);
  });
}
TEST_P(http2_musts, a_preface_without_settings_is_an_error) {
  expect_end(h2::magic + frame_of(h2::ping, 0, 0, "12345678"), h2::protocol_error);
}

// ---- 4: frames ----

TEST_P(http2_musts, frames_of_unknown_types_are_ignored) {
  expect_alive(frame_of(99, 0xff, 5, "anything"));
}
TEST_P(http2_musts, unknown_flags_and_the_reserved_bit_are_ignored) {
  expect_alive(frame_of(h2::ping, 0xf0, 0, "12345678") +
               frame_of(h2::settings, 0x40, static_cast<std::int32_t>(0x80000000), ""));
}
TEST_P(http2_musts, a_frame_that_is_too_large_is_an_error) {
  expect_end(h2::hello + frame_of(h2::data, 0, 1, std::string(16'385, 'x')), h2::frame_size_error);
}
TEST_P(http2_musts, a_damaged_head_is_an_error_of_the_connection) {
  expect_end(
      h2::hello + frame_of(h2::headers, h2::end_headers | h2::end_stream, 1, "\xff\xff\xff\xff"),
      h2::compression_error);
}
TEST_P(http2_musts, nothing_comes_between_the_frames_of_a_head) {
  const std::string block = h2::block_of(h2::get("/"));
  expect_end(h2::hello + frame_of(h2::headers, h2::end_stream, 1, block) +
                 frame_of(h2::ping, 0, 0, "12345678"),
             h2::protocol_error);
  expect_end(h2::hello + frame_of(h2::headers, h2::end_stream, 1, block) +
                 frame_of(h2::continuation, h2::end_headers, 3, ""),
             h2::protocol_error);
}

// ---- 5: streams ----

TEST_P(http2_musts, frames_of_an_idle_stream_are_an_error) {
  expect_end(h2::hello + frame_of(h2::data, 0, 1, "x"), h2::protocol_error);
  expect_end(h2::hello + frame_of(h2::rst_stream, 0, 1, h2::number(8, 4)), h2::protocol_error);
  expect_end(h2::hello + frame_of(h2::window_update, 0, 1, h2::number(8, 4)), h2::protocol_error);
}
TEST_P(http2_musts, streams_of_clients_have_odd_numbers) {
  expect_end(h2::hello + ask(2, h2::get("/")), h2::protocol_error);
}
TEST_P(http2_musts, a_lower_number_opens_no_stream) {
  expect_end(h2::hello + ask(5, h2::get("/")) + ask(3, h2::get("/")), h2::protocol_error);
  expect_end(h2::hello + ask(3, h2::get("/")) + ask(1, h2::get("/")), h2::protocol_error);
  expect_end(h2::hello + ask(1, h2::get("/")) + ask(9, h2::get("/")) + ask(13, h2::get("/")) +
                 ask(7, h2::get("/")),
             h2::protocol_error);
}
// A number may be left out; and the trailer of a request has its number, whatever came since.
TEST_P(http2_musts, numbers_may_be_left_out) {
  run(must_routes(), [&](runtime&, http::server web, endpoint at) -> task<> {
    const std::string bytes =
        h2::hello + ask(1, h2::post("/"), false) + ask(7, h2::get("/")) + ask(11, h2::get("/")) +
        frame_of(h2::headers, h2::end_headers | h2::end_stream, 1, h2::block_of({{"sum", "7"}}));
    const auto one = co_await h2::peer::connect(at, bytes);
    const h2::answer got = co_await one->answer_to(1);
    EXPECT_EQ(got.status, "200");
    EXPECT_EQ(web.http2().streams, 3u);
  });
}
TEST_P(http2_musts, nothing_follows_the_end_of_a_request) {
  // The stream is half-closed, for its answer waits for a window.
  expect_end(h2::hello + ask(1, h2::get("/big")) + frame_of(h2::data, 0, 1, "x"),
             h2::stream_closed);
}
TEST_P(http2_musts, a_window_that_grows_too_large_is_an_error) {
  const std::string most = h2::number(0x7fffffff, 4);
  expect_end(h2::hello + frame_of(h2::window_update, 0, 0, most), h2::flow_control_error);
  const std::string update = frame_of(h2::window_update, 0, 1, most);
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    // The answer cannot end before both have come: the connection's window is too small for that.
    const std::string bytes = h2::hello + ask(1, h2::get("/big")) + update + update;
    const auto one = co_await h2::peer::connect(at, bytes);
    const h2::answer got = co_await one->answer_to(1);
    EXPECT_EQ(got.reset, h2::flow_control_error);
    const std::string next =
        frame_of(h2::window_update, 0, 0, h2::number(100'000, 4)) + ask(3, h2::get("/"));
    co_await one->send(next);
    const h2::answer second = co_await one->answer_to(3);
    EXPECT_EQ(second.body, "hello");
  });
}
TEST_P(http2_musts, more_data_than_the_window_allows_is_an_error) {
  std::string frames = ask(1, h2::post("/never"), false);
  for (int i = 0; i < 5; ++i) frames += frame_of(h2::data, 0, 1, std::string(16'384, 'x'));
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at, h2::hello + frames);
    const h2::answer got = co_await one->answer_to(1);
    EXPECT_TRUE(got.reset == h2::flow_control_error || got.goaway == h2::flow_control_error);
  });
}
TEST_P(http2_musts, a_smaller_first_window_holds_for_open_streams) {
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const std::string small = h2::magic + h2::settings_of({{4, 10}}) + ask(1, h2::get("/big"));
    const auto one = co_await h2::peer::connect(at, small);
    const auto first = co_await one->next_of(h2::data);
    EXPECT_TRUE(first.has_value());
    if (!first) co_return;
    EXPECT_EQ(first->payload.size(), 10u);
    const std::string larger = h2::settings_of({{4, 25}});
    co_await one->send(larger);
    const auto second = co_await one->next_of(h2::data);
    EXPECT_TRUE(second.has_value());
    EXPECT_EQ(second ? second->payload.size() : 0, 15u);
  });
}

// ---- 6: each kind of frame ----

TEST_P(http2_musts, data_belongs_to_a_stream) {
  expect_end(h2::hello + frame_of(h2::data, 0, 0, "x"), h2::protocol_error);
}
TEST_P(http2_musts, padding_is_shorter_than_its_frame) {
  expect_end(h2::hello + ask(1, h2::post("/"), false) +
                 frame_of(h2::data, h2::padded, 1, std::string("\5abc", 4)),
             h2::protocol_error);
}
TEST_P(http2_musts, headers_belong_to_a_stream) {
  expect_end(h2::hello + ask(0, h2::get("/")), h2::protocol_error);
}
TEST_P(http2_musts, rst_stream_belongs_to_a_stream_and_has_four_bytes) {
  expect_end(h2::hello + frame_of(h2::rst_stream, 0, 0, h2::number(8, 4)), h2::protocol_error);
  expect_end(h2::hello + ask(1, h2::post("/"), false) + frame_of(h2::rst_stream, 0, 1, "xyz"),
             h2::frame_size_error);
}
TEST_P(http2_musts, settings_belong_to_the_connection) {
  expect_end(h2::hello + frame_of(h2::settings, 0, 1, ""), h2::protocol_error);
}
TEST_P(http2_musts, settings_have_six_bytes_each_and_their_answer_none) {
  expect_end(h2::hello + frame_of(h2::settings, 0, 0, "12345"), h2::frame_size_error);
  expect_end(h2::hello + frame_of(h2::settings, h2::ack, 0, "123456"), h2::frame_size_error);
}
TEST_P(http2_musts, settings_are_answered) {
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const auto one = co_await h2::peer::connect(at);
    const auto answered = co_await one->next_of(h2::settings, h2::ack);
    EXPECT_TRUE(answered.has_value());
  });
}
TEST_P(http2_musts, settings_have_their_ranges) {
  expect_end(h2::magic + h2::settings_of({{2, 2}}), h2::protocol_error);
  expect_end(h2::magic + h2::settings_of({{4, 0x80000000}}), h2::flow_control_error);
  expect_end(h2::magic + h2::settings_of({{5, 16'383}}), h2::protocol_error);
  expect_end(h2::magic + h2::settings_of({{5, 16'777'216}}), h2::protocol_error);
}
TEST_P(http2_musts, unknown_settings_are_ignored) { expect_alive(h2::settings_of({{0x1234, 7}})); }
TEST_P(http2_musts, clients_do_not_push) {
  expect_end(h2::hello + ask(1, h2::post("/"), false) +
                 frame_of(h2::push_promise, h2::end_headers, 1,
                          h2::number(2, 4) + h2::block_of(h2::get("/"))),
             h2::protocol_error);
}
TEST_P(http2_musts, pings_are_answered_with_their_bytes) {
  run(must_routes(), [&](runtime&, http::server, endpoint at) -> task<> {
    const std::string bytes = h2::hello + frame_of(h2::ping, 0, 0, "8 bytes!");
    const auto one = co_await h2::peer::connect(at, bytes);
    const auto got = co_await one->next_of(h2::ping, h2::ack);
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(got ? got->payload : "", "8 bytes!");
  });
}
TEST_P(http2_musts, pings_belong_to_the_connection_and_have_eight_bytes) {
  expect_end(h2::hello + frame_of(h2::ping, 0, 1, "12345678"), h2::protocol_error);
  expect_end(h2::hello + frame_of(h2::ping, 0, 0, "1234567"), h2::frame_size_error);
}
TEST_P(http2_musts, goaway_belongs_to_the_connection) {
  expect_end(h2::hello + frame_of(h2::goaway, 0, 1, std::string(8, '\0')), h2::protocol_error);
}
TEST_P(http2_musts, window_updates_have_four_bytes_and_are_not_zero) {
  expect_end(h2::hello + frame_of(h2::window_update, 0, 0, "123"), h2::frame_size_error);
  expect_end(h2::hello + frame_of(h2::window_update, 0, 0, h2::number(0, 4)), h2::protocol_error);
}
TEST_P(http2_musts, continuation_follows_a_head) {
  expect_end(h2::hello + frame_of(h2::continuation, h2::end_headers, 1, ""), h2::protocol_error);
}

// ---- 8: messages. Also what a request hides from a proxy that makes HTTP/1.1 of it ----

TEST_P(http2_musts, names_of_fields_have_no_capital_letters) {
  expect_malformed(h2::get("/", {{"X-Name", "value"}}));
}
TEST_P(http2_musts, names_and_values_have_no_line_ends_and_no_zero_bytes) {
  const std::string request = "\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
  expect_malformed(h2::get("/", {{"x", "a\r\nb: c"}}));
  expect_malformed(h2::get("/", {{"x", "a" + request}}));
  expect_malformed(h2::get("/", {{"x", "a\nb"}}));
  expect_malformed(h2::get("/", {{"x", "a\rb"}}));
  expect_malformed(h2::get("/", {{"x", std::string("a\0b", 3)}}));
  expect_malformed(h2::get("/", {{"x\r\ny", "a"}}));
  expect_malformed(h2::get("/", {{"x: y", "a"}}));
  expect_malformed(h2::get("/", {{"x y", "a"}}));
  expect_malformed(h2::get("/", {{"", "a"}}));
}
TEST_P(http2_musts, values_have_no_space_around_them) {
  expect_malformed(h2::get("/", {{"x", " a"}}));
  expect_malformed(h2::get("/", {{"x", "a\t"}}));
}
TEST_P(http2_musts, fields_of_the_connection_are_malformed) {
  expect_malformed(h2::get("/", {{"connection", "close"}}));
  expect_malformed(h2::get("/", {{"keep-alive", "timeout=5"}}));
  expect_malformed(h2::get("/", {{"proxy-connection", "close"}}));
  expect_malformed(h2::get("/", {{"upgrade", "websocket"}}));
  expect_malformed(h2::post("/", {{"transfer-encoding", "chunked"}}));
  expect_malformed(h2::get("/", {{"te", "gzip"}}));
  expect_status(h2::get("/", {{"te", "trailers"}}), "200");
}
TEST_P(http2_musts, pseudo_fields_are_known_there_once_and_in_front) {
  expect_malformed(h2::get("/", {{":unknown", "x"}}));
  expect_malformed(h2::get("/", {{":status", "200"}}));
  expect_malformed(h2::get("/", {{":path", "/hidden"}}));
  expect_malformed(h2::get("/", {{":method", "POST"}}));
  expect_malformed({{":method", "GET"}, {":scheme", "http"}, {"x", "y"}, {":path", "/"}});
}
TEST_P(http2_musts, requests_have_a_method_a_scheme_and_a_path) {
  expect_malformed({{":scheme", "http"}, {":authority", "a"}, {":path", "/"}});
  expect_malformed({{":method", "GET"}, {":authority", "a"}, {":path", "/"}});
  expect_malformed({{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}});
  expect_malformed(h2::get(""));
}
TEST_P(http2_musts, pseudo_fields_hide_no_second_request) {
  const std::string request = "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /hidden";
  expect_malformed(h2::get(request));
  expect_malformed({{":method", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"},
                    {":scheme", "http"},
                    {":authority", "a"},
                    {":path", "/hidden"}});
  expect_malformed(
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a\r\nx: y"}, {":path", "/"}});
  expect_malformed(h2::get("/hidden HTTP/1.1"));
  expect_malformed(
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a b"}, {":path", "/"}});
  expect_status(h2::get("/#hidden"), "400");
  expect_status({{":method", "GET"}, {":scheme", "http"}, {":authority", "a@b"}, {":path", "/"}},
                "400");
}
TEST_P(http2_musts, the_host_is_the_authority) {
  expect_malformed(h2::get("/", {{"host", "b"}}));
  expect_malformed(h2::get("/", {{"host", "a"}, {"host", "a"}}));
  expect_status(h2::get("/", {{"host", "a"}}), "200");
}
TEST_P(http2_musts, trailers_have_no_pseudo_fields) {
  expect_reset(
      ask(1, h2::post("/"), false) + frame_of(h2::headers, h2::end_headers | h2::end_stream, 1,
                                              h2::block_of({{":path", "/hidden"}})),
      h2::protocol_error);
}
TEST_P(http2_musts, trailers_end_the_stream) {
  expect_reset(ask(1, h2::post("/"), false) +
                   frame_of(h2::headers, h2::end_headers, 1, h2::block_of({{"x", "y"}})),
               h2::protocol_error);
}
TEST_P(http2_musts, the_length_of_a_body_is_what_it_says) {
  const auto body = [](const std::string& length, const std::string& bytes) {
    return ask(1, h2::post("/", {{"content-length", length}}), false) +
           frame_of(h2::data, h2::end_stream, 1, bytes);
  };
  expect_reset(body("3", "four"), h2::protocol_error);
  expect_reset(body("5", "four"), h2::protocol_error);
  expect_reset(ask(1, h2::post("/", {{"content-length", "4"}})), h2::protocol_error);
  expect_malformed(h2::post("/", {{"content-length", "4"}, {"content-length", "4"}}));
  expect_malformed(h2::post("/", {{"content-length", "+4"}}));
  expect_malformed(h2::post("/", {{"content-length", "4, 4"}}));
}
TEST_P(http2_musts, connect_is_refused_as_this_is_no_proxy) {
  expect_status({{":method", "CONNECT"}, {":authority", "a:443"}}, "501");
}

TROUPE_HTTP_TEST_EACH(http2_musts);

}  // namespace
}  // namespace troupe::test

#endif
