// What a client of HTTP/2 makes of servers that end, refuse, break the rules or flood.
#if __has_include(<nghttp2/nghttp2.h>)

#include "http/client/h2_server.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using h2::told_peer;
using http::client;
using http::client_error;
using http::client_failure;
using http::client_options;
using http::client_request;
using http::client_response;

class client_http2_failures : public h2::peer_conformance {};

// The reason and the fault of the client_error; the status and the body if there is none.
task<std::string> failure_of(http::sending asked) {
  try {
    co_return co_await fetch(std::move(asked));
  } catch (const client_error& e) {
    co_return std::string(text_of(e.reason())) + (e.why() == http::fault::none ? "" : ": ") +
        (e.why() == http::fault::none ? "" : http::text_of(e.why()));
  } catch (const timed_out&) {
    co_return "timed_out";
  }
}

TEST_P(client_http2_failures, a_reset_fails_one_request_only) {
  run(
      [](told_peer& one) -> task<> {
        const std::int32_t first = co_await one.next_request();
        const std::int32_t second = co_await one.next_request();
        co_await one.send(h2::reset_of(first, h2::internal_error));
        co_await one.send(h2::answer_of(second, "fine"));
        const std::int32_t third = co_await one.next_request();
        co_await one.send(h2::ask(third, h2::status_200, false) +
                          h2::frame_of(h2::data, 0, third, "part") +
                          h2::reset_of(third, h2::cancel));
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        auto both = when_all(failure_of(web.get(server.url())), failure_of(web.get(server.url())));
        const auto [first, second] = co_await std::move(both);
        EXPECT_EQ((std::set<std::string>{first, second}),
                  (std::set<std::string>{"reset", "200 fine"}));
        client_response cut = co_await web.get(server.url());
        std::string got, why;
        try {
          for (;;) got += co_await cut.read();
        } catch (const client_error& e) {
          why = text_of(e.reason());
        }
        EXPECT_EQ(got, "part");
        EXPECT_EQ(why, "reset");
        EXPECT_EQ(server.connections(), 1);
      });
}

// GOAWAY: later streams are asked again on another connection, earlier ones end as always. This
// holds for each method, since the server has done nothing of them.
TEST_P(client_http2_failures, goaway_moves_requests_that_were_not_handled) {
  run(
      [](told_peer& one) -> task<> {
        if (one.number == 1) {
          const std::int32_t first = co_await one.next_request();
          co_await one.next_request();
          co_await one.send(h2::goaway_of(static_cast<std::uint32_t>(first)));
          co_await one.send(h2::answer_of(first, "on 1"));
          co_await one.next_request();
        } else {
          const std::int32_t moved = co_await one.next_request();
          co_await one.send(h2::answer_of(moved, "on 2"));
          co_await one.next_request();
        }
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        auto both = when_all(failure_of(web.post(server.url(), "x", "text/plain")),
                             failure_of(web.post(server.url(), "x", "text/plain")));
        const auto [first, second] = co_await std::move(both);
        EXPECT_EQ((std::set<std::string>{first, second}),
                  (std::set<std::string>{"200 on 1", "200 on 2"}));
        EXPECT_EQ(server.connections(), 2);
      });
}

// A kept connection whose server has said GOAWAY, or has closed it, is not used again.
TEST_P(client_http2_failures, a_kept_connection_that_has_ended_is_left) {
  for (const bool says_it : {true, false}) {
    run(
        [says_it](told_peer& one) -> task<> {
          const std::int32_t first = co_await one.next_request();
          co_await one.send(h2::answer_of(first, "fine"));
          if (says_it) co_await one.send(h2::goaway_of(static_cast<std::uint32_t>(first)));
          one.frames().stream().shutdown_write();
          co_await one.frames().end();
        },
        [](h2::scripted_peer& server, client web) -> task<> {
          for (int i = 1; i <= 3; ++i) {
            const std::string got = co_await failure_of(web.post(server.url(), "x", "text/plain"));
            EXPECT_EQ(got, "200 fine");
            co_await sleep_for(20ms);
          }
          EXPECT_EQ(server.connections(), 3);
        });
  }
}

// A kept connection on which something has come that is no end is used on.
TEST_P(client_http2_failures, a_kept_connection_may_have_been_pinged) {
  run(
      [](told_peer& one) -> task<> {
        for (;;) {
          const std::int32_t stream = co_await one.next_request();
          if (stream == 0) co_return;
          co_await one.send(h2::answer_of(stream, "fine"));
          co_await sleep_for(5ms);
          co_await one.send(h2::frame_of(h2::ping, 0, 0, "12345678"));
        }
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        for (int i = 1; i <= 3; ++i) {
          const std::string got = co_await failure_of(web.get(server.url()));
          EXPECT_EQ(got, "200 fine");
          co_await sleep_for(20ms);
        }
        EXPECT_EQ(server.connections(), 1);
      });
}

TEST_P(client_http2_failures, refused_streams_are_asked_again_a_few_times) {
  for (const int refusals : {2, 1'000}) {
    int seen = 0;
    run(
        [&](told_peer& one) -> task<> {
          for (;;) {
            const std::int32_t stream = co_await one.next_request();
            if (stream == 0) co_return;
            std::string says = h2::answer_of(stream, "fine");
            if (++seen <= refusals) says = h2::reset_of(stream, h2::refused_stream);
            co_await one.send(std::move(says));
          }
        },
        [&](h2::scripted_peer& server, client web) -> task<> {
          const std::string got = co_await failure_of(web.post(server.url(), "x", "text/plain"));
          EXPECT_EQ(got, refusals == 2 ? "200 fine" : "refused");
          EXPECT_EQ(seen, refusals == 2 ? 3 : 9);
          EXPECT_EQ(server.connections(), 1);
        });
  }
}

// The same for a body that only the caller's function has: it cannot be sent again.
TEST_P(client_http2_failures, a_refused_upload_is_not_asked_again) {
  run(
      [](told_peer& one) -> task<> {
        const std::int32_t stream = co_await one.next_request();
        co_await one.send(h2::reset_of(stream, h2::refused_stream));
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        client_request asked("POST", server.url());
        auto how = [](http::upload& to) -> task<> {
          for (;;) co_await to.write("piece");
        };
        asked.body(std::move(how), "text/plain");
        const std::string got = co_await failure_of(web.send(std::move(asked)));
        EXPECT_EQ(got, "refused");
      });
}

TEST_P(client_http2_failures, a_connection_that_ends_fails_its_requests) {
  run(
      [](told_peer& one) -> task<> {
        const std::int32_t stream = co_await one.next_request();
        if (one.number == 2)
          co_await one.send(h2::ask(stream, h2::status_200, false) +
                            h2::frame_of(h2::data, 0, stream, "part"));
        if (one.number == 3) co_await one.send(h2::frame_of(h2::ping, 0, 0, "12345678"));
        one.frames().stream().shutdown_write();
        co_await one.frames().end();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        for (const char* const wanted : {"closed", "truncated", "closed"}) {
          const std::string got = co_await failure_of(web.get(server.url()));
          EXPECT_EQ(got, wanted);
        }
        EXPECT_EQ(web.idle(), 0u);
      });
}

// Each of these answers is malformed (RFC 9113, 8.1.1): its request fails, and no other.
TEST_P(client_http2_failures, malformed_answers_fail_their_request) {
  const auto head = [](const h2::field_pairs& more, bool ends = true) {
    h2::field_pairs all = h2::status_200;
    all.insert(all.end(), more.begin(), more.end());
    return [all, ends](std::int32_t stream) { return h2::ask(stream, all, ends); };
  };
  using frames = std::function<std::string(std::int32_t)>;
  const std::vector<frames> all{
      head({{"connection", "close"}}),
      head({{"transfer-encoding", "chunked"}}),
      head({{"Upper", "x"}}),
      head({{"a", "b\r\nc: d"}}),
      [&](std::int32_t stream) {
        return head({{"content-length", "9"}}, false)(stream) +
               h2::frame_of(h2::data, h2::end_stream, stream, "short");
      },
      [](std::int32_t stream) {
        std::string interim;
        for (int i = 0; i < 17; ++i) interim += h2::ask(stream, {{":status", "103"}}, false);
        return interim;
      },
  };
  run(
      [&](told_peer& one) -> task<> {
        for (const frames& wrong : all) {
          const std::int32_t stream = co_await one.next_request();
          co_await one.send(wrong(stream));
        }
        const std::int32_t last = co_await one.next_request();
        co_await one.send(h2::answer_of(last, "fine"));
        co_await one.next_request();
      },
      [&](h2::scripted_peer& server, client web) -> task<> {
        for (std::size_t i = 0; i < all.size(); ++i) {
          const std::string got = co_await failure_of(web.get(server.url()));
          EXPECT_EQ(got, "bad_response: it breaks the rules of HTTP/2") << i;
        }
        const std::string got = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(got, "200 fine");
        EXPECT_EQ(server.connections(), 1);
      });
}

// Whoever closes a kept connection says so (RFC 9113, 6.8).
TEST_P(client_http2_failures, kept_connections_end_with_goaway) {
  std::vector<std::optional<std::uint32_t>> codes;
  const h2::peer_script answers = [&](told_peer& one) -> task<> {
    const std::int32_t stream = co_await one.next_request();
    co_await one.send(h2::answer_of(stream, "fine"));
    codes.push_back(co_await one.frames().end());
  };
  const auto asks = [&](h2::scripted_peer& server, client web) -> task<> {
    const std::string got = co_await failure_of(web.get(server.url()));
    EXPECT_EQ(got, "200 fine");
  };
  run(answers, asks);  // closed by close_idle()
  client_options keeps_none;
  keeps_none.idle_per_origin = 0;
  run(answers, asks, keeps_none);
  EXPECT_EQ(codes, (std::vector<std::optional<std::uint32_t>>(2, h2::no_error)));
}

TEST_P(client_http2_failures, interim_answers_are_skipped_and_trailers_are_read) {
  run(
      [](told_peer& one) -> task<> {
        const std::int32_t stream = co_await one.next_request();
        std::string all;
        for (int i = 0; i < 16; ++i) all += h2::ask(stream, {{":status", "103"}}, false);
        all += h2::ask(stream, h2::status_200, false) + h2::frame_of(h2::data, 0, stream, "body") +
               h2::ask(stream, {{"sum", "7"}, {"sign", "abc"}});
        co_await one.send(std::move(all));
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        client_response answer = co_await web.get(server.url());
        EXPECT_FALSE(answer.trailer().has("sum"));
        const std::string body = co_await answer.read_all();
        EXPECT_EQ(body, "body");
        EXPECT_EQ(answer.trailer()["Sum"], "7");
        EXPECT_EQ(answer.trailer()["sign"], "abc");
      });
}

TEST_P(client_http2_failures, heads_have_limits) {
  client_options few;
  few.head_bytes = 1'000;
  few.fields = 5;
  run(
      [](told_peer& one) -> task<> {
        h2::field_pairs large = h2::status_200, many = h2::status_200;
        large.emplace_back("a", std::string(1'100, 'x'));
        for (int i = 0; i < 6; ++i) many.emplace_back("a", "b");
        const std::int32_t first = co_await one.next_request();
        co_await one.send(h2::ask(first, large));
        const std::int32_t second = co_await one.next_request();
        co_await one.send(h2::ask(second, many));
        const std::int32_t third = co_await one.next_request();
        co_await one.send(h2::answer_of(third, "fine"));
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const std::string large = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(large, std::string("bad_response: ") + text_of(http::fault::head_too_large));
        const std::string many = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(many, std::string("bad_response: ") + text_of(http::fault::too_many_fields));
        const std::string fine = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(fine, "200 fine");
        EXPECT_EQ(server.connections(), 1);
      },
      std::move(few));
}

// Each flood ends its connection, and all requests on it, with an error that says so.
TEST_P(client_http2_failures, floods_end_the_connection) {
  client_options few;
  http::http2_limits& limits = few.http2;
  limits.span = std::chrono::hours(1);
  limits.resets = limits.settings = limits.pings = limits.window_updates = limits.priorities =
      limits.empty_data = limits.other_frames = 5;
  limits.continuations = 3;
  struct flood {
    std::string frames, says;
  };
  const auto repeated = [](const std::string& one) {
    std::string all;
    for (int i = 0; i < 50; ++i) all += one;
    return all;
  };
  const std::vector<flood> all{
      {repeated(h2::settings_of({})), "too many SETTINGS frames"},
      {repeated(h2::frame_of(h2::ping, 0, 0, "12345678")), "too many PING frames"},
      {repeated(h2::frame_of(h2::window_update, 0, 0, h2::number(1, 4))),
       "too many WINDOW_UPDATE frames"},
      {repeated(h2::frame_of(h2::priority, 0, 1, h2::number(0, 5))), "too many PRIORITY frames"},
      {h2::ask(1, h2::status_200, false) + repeated(h2::frame_of(h2::data, 0, 1, "")),
       "too many empty DATA frames"},
      {repeated(h2::frame_of(0x77, 0, 0, "x")), "too many frames that say nothing"},
      {h2::frame_of(h2::headers, 0, 1, h2::block_of(h2::status_200)) +
           repeated(h2::frame_of(h2::continuation, 0, 1, "")),
       "too many CONTINUATION frames"},
      {h2::frame_of(h2::push_promise, h2::end_headers, 1,
                    h2::number(2, 4) + h2::block_of(h2::get("/"))),
       "break the rules"},
      {h2::frame_of(h2::data, 0, 0, "x"), "break the rules"},
  };
  for (const flood& one : all) {
    SCOPED_TRACE(one.says);
    run(
        [&](told_peer& peer) -> task<> {
          const std::int32_t first = co_await peer.next_request();
          const std::int32_t second = co_await peer.next_request();
          if (second == 0) co_return;
          EXPECT_EQ(first, 1);
          co_await peer.send(one.frames);
          const auto code = co_await peer.frames().end();
          EXPECT_TRUE(code.has_value());
        },
        [&](h2::scripted_peer& server, client web) -> task<> {
          const auto why = [&]() -> task<std::string> {
            try {
              co_return co_await fetch(web.get(server.url()));
            } catch (const client_error& e) {
              EXPECT_EQ(e.reason(), client_failure::bad_response);
              EXPECT_EQ(e.why(), http::fault::bad_frames);
              co_return e.what();
            }
          };
          auto both = when_all(why(), why());
          const auto [first, second] = co_await std::move(both);
          EXPECT_NE(first.find(one.says), std::string::npos) << first;
          EXPECT_NE(second.find(one.says), std::string::npos) << second;
          EXPECT_EQ(server.connections(), 1);
          EXPECT_EQ(web.idle(), 0u);
        },
        few);
  }
}

// The server answers with HTTP/1.1 what was asked by prior knowledge.
TEST_P(client_http2_failures, a_server_that_speaks_no_http2_is_an_error) {
  run(
      [](told_peer& one) -> task<> {
        one.first = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const std::string got = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(got, "bad_response: it breaks the rules of HTTP/2");
      });
}

// A server that answers before it has all of the body, and wants no more of it.
TEST_P(client_http2_failures, an_answer_before_the_whole_request_is_one) {
  for (const bool resets : {true, false}) {
    run(
        [resets](told_peer& one) -> task<> {
          const std::int32_t stream = co_await one.next_request();
          std::string says = h2::answer_of(stream, "big");
          if (resets) says += h2::reset_of(stream, h2::no_error);
          co_await one.send(std::move(says));
          co_await one.next_request();
        },
        [](h2::scripted_peer& server, client web) -> task<> {
          const std::string got =
              co_await failure_of(web.post(server.url(), std::string(1'000'000, 'x'), ""));
          EXPECT_EQ(got, "200 big");
        });
  }
}

TEST_P(client_http2_failures, each_phase_has_its_time) {
  client_options soon;
  soon.head_time = soon.write_time = 300ms;
  soon.body_rate = 1'000'000;
  soon.body_grace = 300ms;
  run(
      [](told_peer& one) -> task<> {
        co_await one.next_request();
        const std::int32_t second = co_await one.next_request();
        co_await one.send(h2::ask(second, h2::status_200, false) +
                          h2::frame_of(h2::data, 0, second, "part"));
        co_await one.next_request();
        co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const std::string head = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(head, "timed_out");
        const std::string body = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(body, "too_slow");
        const std::string sent =
            co_await failure_of(web.post(server.url(), std::string(1'000'000, 'x'), ""));
        EXPECT_EQ(sent, "timed_out");
        EXPECT_EQ(server.connections(), 1);
      },
      std::move(soon));
}

// A connection on which nothing at all came back while a request waited gets no more requests.
TEST_P(client_http2_failures, a_silent_server_is_asked_on_a_new_connection) {
  client_options soon;
  soon.head_time = 1100ms;
  run(
      [](told_peer& one) -> task<> {
        if (one.number == 1) {
          one.first = "";
          one.frames().replies = false;
        }
        std::int32_t stream = co_await one.next_request();
        if (one.number == 2) co_await one.send(h2::answer_of(stream, "fine"));
        while (stream != 0) stream = co_await one.next_request();
      },
      [](h2::scripted_peer& server, client web) -> task<> {
        const std::string silent = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(silent, "timed_out");
        const std::string got = co_await failure_of(web.get(server.url()));
        EXPECT_EQ(got, "200 fine");
        EXPECT_EQ(server.connections(), 2);
      },
      std::move(soon));
}

TROUPE_CLIENT_TEST_EACH(client_http2_failures);

}  // namespace
}  // namespace troupe::test

#endif
