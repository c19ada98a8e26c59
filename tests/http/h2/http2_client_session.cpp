// The client's session of HTTP/2, without I/O: what it makes of the frames of a server, right or
// wrong, and what it answers.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/h2/framing/client_session.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "http/h2/h2_peer.hpp"

namespace troupe::test {
namespace {

using http::h2::client_session;
using http::h2::excess;
using http::h2::stream_end;

const std::string no_settings = h2::settings_of({});

std::string head(std::int32_t stream, const h2::field_pairs& fields, bool ends = false) {
  return h2::ask(stream, fields, ends);
}
std::string body(std::int32_t stream, std::string_view bytes, bool ends = false) {
  return h2::frame_of(h2::data, ends ? h2::end_stream : 0, stream, bytes);
}
std::string reset(std::int32_t stream, std::uint32_t code) {
  return h2::frame_of(h2::rst_stream, 0, stream, h2::number(code, 4));
}
std::string goaway(std::uint32_t last, std::uint32_t code) {
  return h2::frame_of(h2::goaway, 0, 0, h2::number(last, 4) + h2::number(code, 4));
}

// A client, and what it has been told of each stream, in words.
class told_client final : private http::h2::client_session_events {
 public:
  explicit told_client(const http::http2_limits& limits = few(), std::size_t head_bytes = 4096)
      : session(client_session::make({limits, {head_bytes, 20, 0}})) {
    session->tell(*this);
  }

  static http::http2_limits few() {
    http::http2_limits limits;
    limits.span = std::chrono::hours(1);
    limits.resets = limits.settings = limits.pings = limits.window_updates = limits.priorities =
        limits.empty_data = limits.other_frames = 5;
    limits.continuations = 3;
    return limits;
  }

  std::int32_t ask(const std::string& method, bool has_body = false) {
    http::h2::header_lines lines;
    lines.add(":method", method);
    lines.add(":scheme", "http");
    lines.add(":authority", "a");
    lines.add(":path", "/");
    return session->request(lines, has_body);
  }
  void hear(const std::string& bytes) { session->receive(bytes, 1); }
  // All that is to be sent, without the preface and the first SETTINGS.
  std::vector<h2::frame> said() {
    http::output out;
    while (session->send(out, 1 << 20)) {
    }
    std::string_view all = out.view();
    if (all.starts_with(h2::magic)) all.remove_prefix(h2::magic.size());
    std::vector<h2::frame> made;
    while (all.size() >= 9) {
      h2::frame one;
      const std::size_t bytes = h2::number_in(std::string(1, '\0') + std::string(all.substr(0, 3)));
      one.type = static_cast<std::uint8_t>(all[3]);
      one.flags = static_cast<std::uint8_t>(all[4]);
      one.stream = static_cast<std::int32_t>(h2::number_in(all.substr(5)));
      one.payload = std::string(all.substr(9, bytes));
      all.remove_prefix(9 + bytes);
      made.push_back(std::move(one));
    }
    return made;
  }
  // The code of the GOAWAY that is to be sent.
  std::optional<std::uint32_t> says_goaway() {
    for (const h2::frame& one : said())
      if (one.type == h2::goaway) return h2::number_in(std::string_view(one.payload).substr(4));
    return std::nullopt;
  }

  const std::unique_ptr<client_session> session;
  std::map<std::int32_t, std::string> story;
  std::map<std::int32_t, std::string> uploads;  // what is left of them; none: it waits

 private:
  void on_asked(std::int32_t) override {}
  void on_head(std::int32_t stream, http::h2::head_block&& block, bool ends) override {
    std::string& to = story[stream];
    to += std::to_string(block.status()) + ' ';
    if (block.wrong() != http::fault::none) to += "wrong ";
    for (const http::field one : block.fields())
      to += std::string(one.name) + '=' + std::string(one.value) + ' ';
    if (ends) to += "end ";
  }
  void on_body(std::int32_t stream, std::string_view piece) override {
    story[stream] += '[' + std::string(piece) + "] ";
  }
  void on_end(std::int32_t stream, http::h2::head_block&& trailer) override {
    for (const http::field one : trailer.fields())
      story[stream] += std::string(one.name) + '=' + std::string(one.value) + ' ';
    story[stream] += "end ";
  }
  void on_closed(std::int32_t stream, stream_end how, std::uint32_t why) override {
    constexpr const char* names[] = {"complete", "reset", "refused", "malformed"};
    story[stream] += names[static_cast<int>(how)];
    if (how == stream_end::reset) story[stream] += ' ' + std::to_string(why);
  }
  std::size_t more_of(std::int32_t stream, std::span<char> to, bool& ends) override {
    std::string& left = uploads[stream];
    const std::size_t bytes = std::min(left.size(), to.size());
    std::copy_n(left.begin(), bytes, to.begin());
    left.erase(0, bytes);
    ends = bytes != 0 && left.empty();
    return bytes;
  }
};

TEST(http2_client_session, begins_with_the_preface_and_forbids_push) {
  told_client web;
  http::output out;
  web.session->send(out, 1 << 20);
  ASSERT_TRUE(out.view().starts_with(h2::magic));
  EXPECT_NE(out.view().find(h2::number(2, 2) + h2::number(0, 4)), std::string::npos);
  EXPECT_TRUE(web.session->takes_requests());
}

// One exchange: what the server sends on stream 1, and what the caller is told.
struct told {
  const char* method;
  std::string frames;
  const char* story;
};

void expect(const std::vector<told>& all) {
  for (const told& one : all) {
    told_client web;
    web.hear(no_settings);
    ASSERT_EQ(web.ask(one.method), 1);
    web.said();
    web.hear(one.frames);
    web.said();
    EXPECT_EQ(web.story[1], one.story);
    EXPECT_EQ(web.session->broken(), excess::none);
    EXPECT_TRUE(web.session->takes_requests());
  }
}

TEST(http2_client_session, reads_answers_of_each_kind) {
  const h2::field_pairs ok{{":status", "200"}};
  expect({
      {"GET", head(1, ok, true), "200 end complete"},
      {"GET", head(1, {{":status", "200"}, {"a", "b"}}) + body(1, "xy") + body(1, "z", true),
       "200 a=b [xy] [z] end complete"},
      {"GET", head(1, ok) + body(1, "x") + head(1, {{"sum", "7"}}, true),
       "200 [x] sum=7 end complete"},
      {"GET", head(1, {{":status", "103"}, {"link", "x"}}) + head(1, ok, true),
       "103 link=x 200 end complete"},
      {"HEAD", head(1, {{":status", "200"}, {"content-length", "9"}}, true),
       "200 content-length=9 end complete"},
      {"GET", head(1, {{":status", "304"}, {"content-length", "9"}}, true),
       "304 content-length=9 end complete"},
      {"GET", head(1, {{":status", "200"}, {"set-cookie", "a"}, {"set-cookie", "b"}}, true),
       "200 set-cookie=a set-cookie=b end complete"},
  });
}

// RFC 9113, 8.1.1: a malformed answer is an error of its stream, and of no other.
TEST(http2_client_session, refuses_malformed_answers) {
  const h2::field_pairs ok{{":status", "200"}};
  const auto with = [](const std::string& name, const std::string& value) {
    return head(1, {{":status", "200"}, {name, value}}, true);
  };
  expect({
      {"GET", head(1, {{":status", "200"}, {"content-length", "3"}}) + body(1, "xy", true),
       "200 content-length=3 [xy] malformed"},
      {"GET", head(1, {{":status", "200"}, {"content-length", "1"}}) + body(1, "xy", true),
       "200 content-length=1 malformed"},
      {"HEAD", head(1, ok) + body(1, "xy", true), "200 malformed"},
      {"GET", with("connection", "close"), "malformed"},
      {"GET", with("transfer-encoding", "chunked"), "malformed"},
      {"GET", with("keep-alive", "1"), "malformed"},
      {"GET", with("upgrade", "x"), "malformed"},
      {"GET", with("proxy-connection", "x"), "malformed"},
      {"GET", with("Upper", "x"), "malformed"},
      {"GET", with("a", "b\r\nc: d"), "malformed"},
      {"GET", with("content-length", "x"), "malformed"},
      {"GET", with(":path", "/"), "malformed"},
      {"GET", head(1, {{"a", "b"}}, true), "malformed"},
      {"GET", head(1, {{":status", "200"}, {":status", "201"}}, true), "malformed"},
      {"GET", head(1, {{":status", "1x"}}, true), "malformed"},
      {"GET", head(1, {{":status", "101"}}), "malformed"},
      {"GET", head(1, {{":status", "103"}}, true), "malformed"},
      {"GET", head(1, ok) + head(1, {{"sum", "7"}}), "200 malformed"},
      {"GET", head(1, ok) + head(1, {{":status", "200"}}, true), "200 malformed"},
  });
}

TEST(http2_client_session, tells_resets_from_refusals) {
  expect({{"GET", reset(1, h2::refused_stream), "refused"},
          {"GET", reset(1, h2::internal_error), "reset 2"},
          {"GET", head(1, {{":status", "200"}}) + reset(1, h2::cancel), "200 reset 8"}});
}

TEST(http2_client_session, a_reset_of_the_caller_is_no_error_of_the_server) {
  told_client web;
  web.hear(no_settings);
  web.ask("GET");
  web.said();
  web.session->reset(1, http::h2::code::cancel);
  bool found = false;
  for (const h2::frame& one : web.said())
    found |= one.type == h2::rst_stream && h2::number_in(one.payload) == h2::cancel;
  EXPECT_TRUE(found);
  EXPECT_EQ(web.story[1], "complete");
  web.hear(head(1, {{":status", "200"}}) + body(1, "late"));
  EXPECT_EQ(web.story[1], "complete");
  EXPECT_TRUE(web.session->takes_requests());
}

// RFC 9113, 6.8: streams up to the last one of GOAWAY end as always, later ones were not handled.
TEST(http2_client_session, goaway_refuses_later_streams_and_completes_earlier_ones) {
  told_client web;
  web.hear(no_settings);
  for (int i = 0; i < 3; ++i) web.ask("GET");
  web.said();
  web.hear(goaway(0x7fffffff, h2::no_error));
  EXPECT_FALSE(web.session->takes_requests());
  web.hear(goaway(3, h2::no_error));
  EXPECT_EQ(web.story[5], "refused");
  web.hear(head(1, {{":status", "200"}}, true) + head(3, {{":status", "201"}}, true));
  web.said();
  EXPECT_EQ(web.story[1], "200 end complete");
  EXPECT_EQ(web.story[3], "201 end complete");
  EXPECT_TRUE(web.session->is_over());
  EXPECT_EQ(web.session->broken(), excess::none);
}

TEST(http2_client_session, requests_that_wait_for_a_stream_are_refused_by_goaway) {
  told_client web;
  web.hear(h2::settings_of({{3, 1}}));
  EXPECT_EQ(web.session->streams_max(), 1u);
  web.ask("GET");
  web.ask("GET");
  web.said();
  web.hear(goaway(1, h2::no_error));
  web.said();
  EXPECT_EQ(web.story[1], "");
  web.hear(head(1, {{":status", "200"}}, true));
  web.said();
  EXPECT_EQ(web.story[1], "200 end complete");
  EXPECT_EQ(web.story[3], "refused");
}

TEST(http2_client_session, uploads_keep_to_the_windows_of_the_server) {
  told_client web;
  web.hear(h2::settings_of({{4, 10}}));
  web.uploads[1] = std::string(25, 'x');
  web.ask("POST", true);
  const auto sent = [&] {
    std::size_t bytes = 0;
    for (const h2::frame& one : web.said())
      if (one.type == h2::data) bytes += one.payload.size();
    return bytes;
  };
  EXPECT_EQ(sent(), 10u);
  web.hear(h2::frame_of(h2::window_update, 0, 1, h2::number(5, 4)));
  EXPECT_EQ(sent(), 5u);
  web.hear(h2::frame_of(h2::window_update, 0, 1, h2::number(100, 4)));
  EXPECT_EQ(sent(), 10u);
}

// What a caller does not read stays at the server: no window is given for it.
TEST(http2_client_session, gives_windows_as_the_caller_reads) {
  http::http2_limits small;
  small.stream_window = 1024;
  told_client web(small);
  web.said();
  web.hear(no_settings + h2::frame_of(h2::settings, h2::ack, 0, ""));
  web.ask("GET");
  web.ask("GET");
  web.said();
  const std::string full(1024, 'x');
  web.hear(head(1, {{":status", "200"}}) + body(1, full) + head(3, {{":status", "200"}}));
  const auto updates = [&](std::int32_t stream) {
    std::uint32_t bytes = 0;
    for (const h2::frame& one : web.said())
      if (one.type == h2::window_update && one.stream == stream)
        bytes += h2::number_in(one.payload);
    return bytes;
  };
  EXPECT_EQ(updates(1), 0u);
  web.hear(body(3, full, true));
  web.said();
  EXPECT_TRUE(web.story[3].ends_with("end complete"));
  web.session->consume(1, 1024);
  EXPECT_EQ(updates(1), 1024u);
  web.hear(body(1, full + "x", true));
  web.said();
  EXPECT_TRUE(web.story[1].ends_with("malformed"));
}

TEST(http2_client_session, a_head_that_is_too_large_is_told) {
  told_client web(told_client::few(), 256);
  web.hear(no_settings);
  web.ask("GET");
  web.said();
  web.hear(head(1, {{":status", "200"}, {"a", std::string(300, 'x')}}));
  EXPECT_EQ(web.story[1], "200 wrong ");
}

// What a server does too often ends the connection; at the limit it does not.
TEST(http2_client_session, each_flood_ends_the_connection) {
  const auto frame = [](int type, std::string payload, std::int32_t stream = 0, int flags = 0) {
    return h2::frame_of(type, flags, stream, payload);
  };
  struct flood {
    const char* name;
    std::size_t most;
    excess as;
    std::string one;
  };
  const std::vector<flood> all{
      {"settings", 4, excess::settings, no_settings},  // one has come already
      {"pings", 5, excess::pings, frame(h2::ping, "12345678")},
      // two for the stream
      {"window updates", 7, excess::window_updates, frame(h2::window_update, h2::number(1, 4))},
      {"priorities", 7, excess::priorities, frame(h2::priority, h2::number(0, 5), 1)},
      {"empty data", 5, excess::empty_data, frame(h2::data, "", 1)},
      {"unknown frames", 5, excess::other_frames, frame(0x77, "x")},
      {"resets", 6, excess::resets, reset(1, h2::cancel)},
      // the head itself, and others for the stream
      {"heads", 9, excess::other_frames, head(1, {{":status", "103"}})},
  };
  for (const flood& one : all) {
    SCOPED_TRACE(one.name);
    told_client web;
    web.hear(no_settings);
    web.ask("GET");
    web.said();
    const bool has_head = one.as == excess::empty_data;
    if (has_head) web.hear(head(1, {{":status", "200"}}));
    for (std::size_t i = 0; i < one.most; ++i) web.hear(one.one);
    EXPECT_EQ(web.session->broken(), excess::none);
    web.hear(one.one);
    EXPECT_EQ(web.session->broken(), one.as);
    EXPECT_EQ(web.says_goaway(), h2::enhance_your_calm);
    EXPECT_TRUE(web.session->is_over());
  }
}

// Streams that are open for long, as those of WebSockets, may all end at once, by a reset with
// NO_ERROR (RFC 9113, 8.1).
TEST(http2_client_session, each_stream_may_be_answered_and_reset_however_old_it_is) {
  http::http2_limits limits = told_client::few();
  limits.span = std::chrono::nanoseconds(10);
  told_client web(limits);
  web.hear(no_settings);
  constexpr std::size_t streams = 20;
  std::string ends, resets;
  for (std::size_t i = 0; i < streams; ++i) {
    const std::int32_t stream = web.ask("POST", true);
    ends += head(stream, {{":status", "200"}}) + body(stream, "bye", true);
    resets += reset(stream, h2::no_error);
  }
  web.said();
  for (const std::int64_t now : {100, 200})  // these spans know nothing of the streams' beginning
    web.session->receive(h2::frame_of(h2::ping, 0, 0, "12345678"), now);
  web.session->receive(ends + resets, 300);
  EXPECT_EQ(web.session->broken(), excess::none);
  for (std::size_t i = 0; i < limits.resets; ++i) web.session->receive(reset(1, h2::cancel), 300);
  EXPECT_EQ(web.session->broken(), excess::none);
  web.session->receive(reset(1, h2::cancel), 300);
  EXPECT_EQ(web.session->broken(), excess::resets);
}

TEST(http2_client_session, heads_without_an_end_end_the_connection) {
  told_client web;
  web.hear(no_settings);
  web.ask("GET");
  web.said();
  web.hear(h2::frame_of(h2::headers, 0, 1, h2::block_of({{":status", "200"}})));
  for (int i = 0; i < 4; ++i) web.hear(h2::frame_of(h2::continuation, 0, 1, ""));
  EXPECT_EQ(web.session->broken(), excess::continuations);
  EXPECT_EQ(web.says_goaway(), h2::enhance_your_calm);

  told_client second;
  second.hear(no_settings);
  second.ask("GET");
  second.said();
  second.hear(h2::frame_of(h2::headers, 0, 1, std::string(8000, '\0')));
  EXPECT_EQ(second.session->broken(), excess::header_list);
}

// Few bytes that refer to a large field of the table, again and again.
TEST(http2_client_session, a_bomb_of_fields_ends_the_connection) {
  told_client web(told_client::few(), 1024);
  web.hear(no_settings);
  web.ask("GET");
  web.said();
  // Field 62 of the table is then "a: xxx...".
  const std::string entry =
      std::string(1, '\x40') + h2::hpack_text("a") + h2::hpack_text(std::string(900, 'x'));
  web.hear(h2::frame_of(h2::headers, h2::end_headers, 1,
                        std::string(1, '\x88') + entry + std::string(20, '\xbe')));
  EXPECT_EQ(web.session->broken(), excess::header_list);
  EXPECT_EQ(web.says_goaway(), h2::enhance_your_calm);
}

TEST(http2_client_session, errors_of_the_connection_end_it) {
  const std::vector<std::pair<std::string, std::uint32_t>> all{
      {h2::frame_of(h2::push_promise, h2::end_headers, 1,
                    h2::number(2, 4) + h2::block_of(h2::get("/"))),
       h2::protocol_error},
      {h2::frame_of(h2::settings, 0, 0, "12345"), h2::frame_size_error},
      {h2::settings_of({{2, 1}}), h2::protocol_error},  // servers do not allow push
      {h2::frame_of(h2::ping, 0, 0, "1234567"), h2::frame_size_error},
      {h2::frame_of(h2::data, 0, 0, "x"), h2::protocol_error},
      {h2::frame_of(h2::data, 0, 1, "before its head"), h2::protocol_error},
      {h2::frame_of(h2::data, 0, 2, "x"), h2::protocol_error},
      {h2::frame_of(h2::data, 0, 7, "x"), h2::protocol_error},
      {h2::frame_of(h2::headers, h2::end_headers, 1, "\xff\xff\xff\xff\xff\xff"),
       h2::compression_error},
      {h2::frame_of(h2::continuation, h2::end_headers, 1, ""), h2::protocol_error},
      {h2::frame_of(h2::window_update, 0, 0, h2::number(0x7fffffff, 4)), h2::flow_control_error},
      {h2::frame_of(h2::data, 0, 1, std::string(16385, 'x')), h2::frame_size_error},
      {head(2, {{":status", "200"}}), h2::protocol_error},
      // RFC 9218, 7.1
      {h2::frame_of(h2::priority_update, 0, 0, h2::number(1, 4) + "u=1"), h2::protocol_error},
  };
  for (const auto& [bytes, code] : all) {
    told_client web;
    web.hear(no_settings);
    web.ask("GET");
    web.said();
    web.hear(bytes);
    EXPECT_EQ(web.says_goaway(), code) << &bytes - &all[0].first;
    EXPECT_NE(web.session->broken(), excess::none);
    EXPECT_FALSE(web.session->takes_requests());
    EXPECT_TRUE(web.session->is_over());
  }
  told_client no_http2;
  no_http2.hear("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_TRUE(no_http2.says_goaway().has_value());
  EXPECT_EQ(no_http2.session->broken(), excess::protocol_error);
}

}  // namespace
}  // namespace troupe::test

#endif
