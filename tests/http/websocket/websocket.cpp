// WebSockets and server-sent events, as bytes.
#include <sys/socket.h>

#include <vector>

#include "http/frames.hpp"
#include "support/http.hpp"
#include "support/websocket_echo.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http_websocket : public http_conformance {
 protected:
  // What the echoing server sends for these frames, and how the connection was closed.
  struct outcome {
    std::string sent;
    int code = 0;
    std::string reason;
  };
  outcome converse(std::string frames, http::websocket_options limits = {}) {
    outcome got;
    router routes;
    routes.get("/", [&got, limits] {
      return response::websocket(
          [&got](http::websocket& peer) -> task<> {
            co_await echo_messages(peer);
            got.code = peer.close_code();
            got.reason = peer.close_reason();
          },
          limits);
    });
    run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
      const std::string all = co_await exchange(at, shake + frames);
      got.sent = all.substr(all.find("\r\n\r\n") + 4);
    });
    return got;
  }
  static inline const std::string shake =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "
      "WebSocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
};

TEST_P(http_websocket, the_handshake) {
  router routes;
  routes.get("/", [] {
    return response::websocket([](http::websocket& peer) -> task<> { co_await peer.send("x"); });
  });
  EXPECT_EQ(answer_to(std::move(routes), shake),
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" +
                plain(0x81, "x") + closing(1000));
}

TEST_P(http_websocket, requests_that_ask_otherwise) {
  const auto asked = [this](const std::string& without, const std::string& instead) {
    router routes;
    routes.get("/",
               [] { return response::websocket([](http::websocket&) -> task<> { co_return; }); });
    std::string bytes = shake;
    bytes.replace(bytes.find(without), without.size(), instead);
    bytes.replace(bytes.find("keep-alive"), 10, "close");
    return answer_to(std::move(routes), bytes).substr(9, 3);
  };
  EXPECT_EQ(asked("Upgrade: WebSocket", "Upgrade: h2c"), "426");
  EXPECT_EQ(asked("Version: 13", "Version: 12"), "426");
  EXPECT_EQ(asked("HTTP/1.1", "HTTP/1.0"), "426");
  EXPECT_EQ(asked(", Upgrade", ""), "426");
  // A client that asks for the connection to be closed gets it closed when the WebSocket ends.
  // Lists may be spread over several fields.
  EXPECT_EQ(asked("Upgrade: WebSocket", "Upgrade: websocket"), "101");
  EXPECT_EQ(asked("Upgrade: WebSocket", "Upgrade: h2c\r\nUpgrade: foo, WebSocket"), "101");
  EXPECT_EQ(asked(", Upgrade", "\r\nConnection: foo, upgrade"), "101");
  EXPECT_EQ(asked("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBs"), "400");
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_EQ(asked(key, ""), "400");
  EXPECT_EQ(asked(key, key + key), "400") << "the same key twice";
  EXPECT_EQ(asked(key, key + "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"), "400");
  EXPECT_EQ(asked(key, key + "Sec-WebSocket-Key:\r\n"), "400");
  EXPECT_EQ(asked(key, key + "Sec-WebSocket-Version: 13\r\n"), "400");
}

// The field Upgrade needs the word `upgrade` in the field Connection (RFC 7230, 6.7).
TEST_P(http_websocket, who_has_to_upgrade_is_told_so) {
  router routes;
  routes.get("/",
             [] { return response::websocket([](http::websocket&) -> task<> { co_return; }); });
  const std::string got =
      answer_to(std::move(routes), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 426 ")) << got;
  EXPECT_NE(
      got.find("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"),
      std::string::npos)
      << got;
}

TEST_P(http_websocket, messages_of_all_lengths) {
  for (const std::size_t bytes : {0u, 1u, 125u, 126u, 65535u, 65536u, 200'000u}) {
    const std::string text(bytes, 'x');
    const outcome got = converse(masked(0x81, text) + masked(0x82, text) + bye);
    EXPECT_TRUE(got.sent == plain(0x81, text) + plain(0x82, text) + closing(1000)) << bytes;
    EXPECT_EQ(got.code, 1000);
  }
}

TEST_P(http_websocket, fragments_with_a_ping_between) {
  const outcome got = converse(masked(0x01, "a\xc3") + masked(0x89, "are you there") +
                               masked(0x00, "\xa4") + masked(0x80, "c") + bye);
  EXPECT_EQ(got.sent, plain(0x8A, "are you there") +
                          plain(0x81,
                                "a\xc3\xa4"
                                "c") +
                          closing(1000));
}

TEST_P(http_websocket, closes) {
  EXPECT_EQ(converse(masked(0x88, number(3000) + "reason")).reason, "reason");
  EXPECT_EQ(converse(masked(0x88, number(3000))).code, 3000);
  EXPECT_EQ(converse(masked(0x88, "")).code, 1005);
  EXPECT_EQ(converse(masked(0x88, "")).sent, plain(0x88, ""));
}

TEST_P(http_websocket, closes_that_may_not_be_sent_are_refused) {
  int refused = 0;
  router routes;
  routes.get("/", [&refused] {
    return response::websocket([&refused](http::websocket& peer) -> task<> {
      const std::pair<int, std::string> wrong[] = {
          {1005, ""}, {999, ""}, {1000, std::string(124, 'x')}, {1000, "\xff"}};
      for (const auto& [code, reason] : wrong) {
        try {
          std::string copy = reason;
          co_await peer.close(code, std::move(copy));
        } catch (const usage_error&) {
          ++refused;
        }
      }
      co_await peer.close(1000, "enough");
    });
  });
  const std::string answer = answer_to(std::move(routes), shake);
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), plain(0x88, number(1000) + "enough"));
}

TEST_P(http_websocket, breaches_of_the_protocol) {
  struct breach {
    const char* what;
    std::string frames;
    int code;
  };
  const breach breaches[] = {
      {"not masked", plain(0x81, "x"), 1002},
      {"a reserved bit", masked(0xC1, "x"), 1002},
      {"an unknown code", masked(0x83, "x"), 1002},
      {"an unknown control code", masked(0x8B, "x"), 1002},
      {"a control frame in fragments", masked(0x09, "x"), 1002},
      {"a control frame that is too long", masked(0x89, std::string(126, 'x')), 1002},
      {"a continuation of nothing", masked(0x80, "x"), 1002},
      {"a message in a message", masked(0x01, "x") + masked(0x81, "x"), 1002},
      {"no UTF-8", masked(0x81, "\xff"), 1007},
      {"a surrogate", masked(0x81, "\xed\xa0\x80"), 1007},
      {"an overlong form", masked(0x81, "\xc0\x80"), 1007},
      {"above the last one", masked(0x81, "\xf4\x90\x80\x80"), 1007},
      {"an unfinished letter", masked(0x81, "\xe4\xb8"), 1007},
      {"a close of one byte", masked(0x88, "x"), 1002},
      {"a close code that may not be sent", masked(0x88, number(1005)), 1002},
      {"a close code below all", masked(0x88, number(999)), 1002},
      {"a close reason that is no UTF-8", masked(0x88, number(1000) + "\xff"), 1007},
      {"a length in more bytes than it needs", std::string("\x81\xFE\x00\x01", 4) + "abcd" + "x",
       1002},
      {"a negative length", std::string("\x82\xFF\x80\0\0\0\0\0\0\0", 10) + "abcd", 1002},
  };
  for (const breach& one : breaches) {
    const outcome got = converse(one.frames + bye);
    EXPECT_EQ(got.sent, closing(one.code)) << one.what;
    EXPECT_EQ(got.code, one.code) << one.what;
  }
}

TEST_P(http_websocket, a_message_as_large_as_may_be_and_one_byte_more) {
  http::websocket_options limits;
  limits.message_bytes = 1000;
  EXPECT_EQ(converse(masked(0x82, std::string(1000, 'x')) + bye, limits).code, 1000);
  EXPECT_EQ(converse(masked(0x82, std::string(1001, 'x')) + bye, limits).code, 1009);
  EXPECT_EQ(converse(masked(0x02, std::string(999, 'x')) + masked(0x80, "y") + bye, limits).code,
            1000);
  EXPECT_EQ(converse(masked(0x02, std::string(999, 'x')) + masked(0x80, "yz") + bye, limits).code,
            1009);
}

TEST_P(http_websocket, one_that_fails_says_so_and_is_a_failure) {
  router routes;
  routes.get("/", [] {
    return response::websocket([](http::websocket& peer) -> task<> {
      co_await peer.send("x");
      throw std::runtime_error("thrown by a conversation");
    });
  });
  std::string got;
  runtime rt(options());
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    got = co_await exchange(at, shake);
  };
  rt.spawn(serve_while(rt, http::server(std::move(routes)), talk));
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_TRUE(got.ends_with(plain(0x81, "x") + closing(1011))) << got;
}

// One branch sends while another one sees the close: by the peer, by the peer's breach of the
// protocol, or by the server's stop.
TEST_P(http_websocket, who_sends_behind_a_close_of_others_has_not_failed) {
  for (const std::string& last : {bye, masked(0xF1, ""), std::string()}) {
    router routes;
    bool refused = false;
    routes.get("/", [&refused] {
      return response::websocket([&refused](http::websocket& peer) -> task<> {
        const auto hears = [](http::websocket& from) -> task<> {
          while (co_await from.receive()) {
          }
        };
        const auto tells = [](http::websocket& to, bool& gone) -> task<> {
          try {
            for (;;) {
              co_await to.send("x");
              co_await sleep_for(100us);
            }
          } catch (const error&) {  // io_error by a send, or else cancelled
            gone = true;
            throw;
          }
        };
        co_await when_all(hears(peer), tells(peer, refused));
      });
    });
    run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(shake);
      co_await read_until(peer, "\r\n\r\n");
      if (last.empty()) {
        web.stop();
      } else {
        co_await peer.write_all(last);
      }
      co_await read_to_end(peer);
    });
    EXPECT_TRUE(refused) << last.size();
  }
}

TEST_P(http_websocket, who_sends_behind_a_close_of_its_own_has_failed) {
  router routes;
  routes.get("/", [] {
    return response::websocket([](http::websocket& peer) -> task<> {
      co_await peer.close();
      while (co_await peer.receive()) {
      }
      co_await peer.send("x");
    });
  });
  runtime rt(options());
  const auto talk = [&](runtime&, http::server, endpoint at) -> task<> {
    co_await exchange(at, shake + bye);
  };
  rt.spawn(serve_while(rt, http::server(std::move(routes)), talk));
  EXPECT_THROW(rt.run(), io_error);
}

// The read of a receive() fails, and the server is stopped before the receive() goes on.
TEST_P(http_websocket, a_reset_that_meets_the_stop_of_the_server_is_no_failure) {
  for (const bool is_told : {false, true}) {
    for (int turns = 0; turns < 16; ++turns) {
      router routes;
      routes.get("/", [] {
        return response::websocket([](http::websocket& peer) -> task<> {
          while (co_await peer.receive()) {
          }
        });
      });
      run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
        std::vector<tcp_stream> peers;
        for (int i = 0; i < 4; ++i) {
          peers.push_back(co_await tcp_stream::connect(at));
          co_await peers.back().write_all(shake + masked(0x01, "begun"));
          co_await read_until(peers.back(), "\r\n\r\n");
        }
        if (is_told) web.stop();
        const linger at_once{1, 0};
        for (tcp_stream& peer : peers) {
          if (is_told) co_await read_until(peer, closing(1001));
          ::setsockopt(peer.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        }
        peers.clear();
        for (int i = 0; i < turns; ++i) co_await yield();
        web.stop();
      });
    }
  }
}

// A receive() is given up between any two bytes of the peer's.
TEST_P(http_websocket, a_receive_that_is_given_up_loses_nothing) {
  const std::string frames = masked(0x01, "frag") + masked(0x89, "ping one") + masked(0x00, "men") +
                             masked(0x80, "ts") + masked(0x82, std::string(130, 'x')) +
                             masked(0x8A, "") + masked(0x81, "") + masked(0x89, "") + bye;
  int given_up = 0;
  std::vector<std::string> got;
  int code = 0;
  router routes;
  routes.get("/", [&] {
    return response::websocket([&](http::websocket& peer) -> task<> {
      const auto take = [](http::websocket& from, std::vector<std::string>& to) -> task<bool> {
        const auto came = co_await from.receive();
        if (came) to.emplace_back(came->data);
        co_return came.has_value();
      };
      const auto soon = []() -> task<> { co_await sleep_for(100us); };
      for (;;) {
        auto either = when_any(take(peer, got), soon());
        const auto how = co_await std::move(either);
        if (how.index() == 1) ++given_up;
        if (how.index() == 0 && !std::get<0>(how)) break;
      }
      code = peer.close_code();
    });
  });
  std::string sent;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(shake);
    co_await read_until(peer, "\r\n\r\n");
    for (std::size_t i = 0; i < frames.size(); ++i) {
      co_await peer.write_all(std::string_view(frames).substr(i, 1));
      co_await sleep_for(200us);
    }
    sent = co_await read_to_end(peer);
  });
  EXPECT_EQ(got, (std::vector<std::string>{"fragments", std::string(130, 'x'), ""}));
  EXPECT_EQ(sent, plain(0x8A, "ping one") + plain(0x8A, "") + closing(1000));
  EXPECT_EQ(code, 1000);
  EXPECT_GT(given_up, 10);
}

// A message that has come when its receive() is given up belongs to the next receive(). A breach of
// the protocol is not lost, either: the peer is told.
TEST_P(http_websocket, what_comes_as_a_receive_is_given_up_is_not_lost) {
  std::vector<std::string> got;
  int code = 0;
  router routes;
  routes.get("/", [&] {
    return response::websocket([&](http::websocket& peer) -> task<> {
      const auto at_once = []() -> task<> { co_return; };
      for (;;) {
        const auto came = co_await peer.receive();
        if (!came) break;
        got.emplace_back(came->data);
        for (int i = 0; i < 3; ++i) {
          auto either = when_any(at_once(), peer.receive());
          const auto how = co_await std::move(either);
          EXPECT_EQ(how.index(), 0u);
        }
      }
      code = peer.close_code();
    });
  });
  std::string sent;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    sent = co_await exchange(at, shake + masked(0x81, "one") + masked(0x01, "t") +
                                     masked(0x80, "wo") + masked(0x81, "three") + masked(0x83, ""));
  });
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(code, 1002);
  EXPECT_TRUE(sent.ends_with("\r\n\r\n" + closing(1002)));
}

// The function does not receive again.
TEST_P(http_websocket, a_breach_is_told_though_the_receive_was_given_up) {
  router routes;
  routes.get("/", [] {
    return response::websocket([](http::websocket& peer) -> task<> {
      const auto at_once = []() -> task<> { co_return; };
      const auto nap = []() -> task<> { co_await sleep_for(1ms); };
      co_await peer.receive();
      for (;;) {
        auto either = when_any(at_once(), peer.receive());
        co_await std::move(either);
        if (peer.close_code() != 0) co_return;
        auto later = when_any(nap(), peer.receive());
        co_await std::move(later);
      }
    });
  });
  std::string sent;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    sent = co_await exchange(at, shake + masked(0x81, "one") + masked(0x83, ""));
  });
  EXPECT_TRUE(sent.ends_with("\r\n\r\n" + closing(1002)));
}

// Otherwise the peer would take the next message for the rest of the one before.
TEST_P(http_websocket, behind_a_message_that_was_given_up_in_the_middle_nothing_is_sent) {
  constexpr std::size_t bytes = 30'000'000;
  bool refused = false;
  event over;
  router routes;
  routes.get("/", [&] {
    return response::websocket([&](http::websocket& peer) -> task<> {
      const auto much = [](http::websocket& to) -> task<> {
        co_await to.send_binary(std::string(bytes, 'x'));
      };
      const auto soon = []() -> task<> { co_await sleep_for(20ms); };
      auto either = when_any(much(peer), soon());
      const auto how = co_await std::move(either);
      EXPECT_EQ(how.index(), 1u);
      try {
        co_await peer.send("next");
      } catch (const io_error&) {
        refused = true;
      }
      over.set();
    });
  });
  std::string sent;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(shake);
    co_await read_until(peer, "\r\n\r\n");
    co_await over.wait();
    sent = co_await read_to_end(peer);
  });
  EXPECT_TRUE(refused);
  const std::string head = plain(0x82, std::string(bytes, 'x')).substr(0, 10);
  ASSERT_TRUE(sent.starts_with(head));
  EXPECT_LT(sent.size(), bytes);
  EXPECT_EQ(sent.find_first_not_of('x', 10), std::string::npos);
}

// The peer may be slow as long as it takes some bytes.
TEST_P(http_websocket, a_peer_that_is_slow_gets_a_large_message_whole) {
  constexpr std::size_t bytes = 16'000'000, a_step = 256 * 1024;
  http::server_options limits;
  limits.write_time = 1s;
  router routes;
  routes.get("/", [&] {
    return response::websocket([](http::websocket& peer) -> task<> {
      co_await peer.send_binary(std::string(bytes, 'x'));
    });
  });
  std::size_t got = 0;
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        tcp_stream peer = co_await tcp_stream::connect(at);
        co_await peer.write_all(shake);
        co_await read_until(peer, "\r\n\r\n");
        std::string room(a_step, '\0');
        try {
          for (std::size_t came = 1; came != 0; got += came) {
            co_await sleep_for(20ms);  // in all longer than the limit
            came = co_await peer.read(std::span<char>(room));
          }
        } catch (const io_error&) {
        }
      },
      limits);
  EXPECT_EQ(got, 10 + bytes + 4);
}

TEST_P(http_websocket, a_peer_that_goes_without_a_word) {
  int code = 0;
  router routes;
  routes.get("/", [&code] {
    return response::websocket([&code](http::websocket& peer) -> task<> {
      const auto came = co_await peer.receive();
      if (!came) code = peer.close_code();
    });
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(shake);
    co_await read_until(peer, "\r\n\r\n");
    peer.shutdown_write();
    co_await read_to_end(peer);
  });
  EXPECT_EQ(code, 1006);
}

TEST_P(http_websocket, a_silent_peer_is_asked_and_then_given_up) {
  http::websocket_options limits;
  limits.ping_after = 20ms;
  const outcome got = converse("", limits);
  EXPECT_EQ(got.sent, plain(0x89, ""));
  EXPECT_EQ(got.code, 1006);
}

// This holds, too, for a task that also waits for something else, and so receives in short
// attempts.
TEST_P(http_websocket, a_silent_peer_is_given_up_by_who_polls) {
  http::websocket_options limits;
  limits.ping_after = 400ms;
  int code = 0, given_up = 0;
  router routes;
  routes.get("/", [&code, &given_up, limits] {
    return response::websocket(
        [&code, &given_up](http::websocket& peer) -> task<> {
          const auto take = [](http::websocket& from) -> task<> { co_await from.receive(); };
          const auto soon = []() -> task<> { co_await sleep_for(5ms); };
          while (peer.close_code() == 0) {
            auto either = when_any(take(peer), soon());
            const auto how = co_await std::move(either);
            if (how.index() == 1) ++given_up;
          }
          code = peer.close_code();
        },
        limits);
  });
  std::string sent;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(shake);
    co_await read_until(peer, "\r\n\r\n");
    sent = co_await read_to_end(peer);
  });
  EXPECT_EQ(sent, plain(0x89, ""));
  EXPECT_EQ(code, 1006);
  EXPECT_GT(given_up, 5);
}

// A message that a peer has begun must come at the pace of a body, or the connection ends. It makes
// no difference how it is begun, or what comes in between.
TEST_P(http_websocket, an_unfinished_message_does_not_wait_without_end) {
  http::server_options limits;
  limits.body_grace = 20ms;
  limits.body_rate = 100'000;
  const std::string whole = masked(0x82, std::string(1000, 'x'));
  struct way {
    std::string begun, more;  // `more` is sent again and again
  };
  for (const way& one :
       {way{"\x82", ""}, way{whole.substr(0, 3), ""}, way{whole.substr(0, 500), ""},
        way{masked(0x02, "fragment"), ""}, way{masked(0x89, "ping").substr(0, 7), ""},
        way{masked(0x02, "fragment"), masked(0x89, "ping")},
        way{masked(0x02, "fragment"), masked(0x00, "f")}, way{whole + whole + "\x82", ""},
        way{masked(0x82, std::string(100'000, 'x')).substr(0, 20), "x"}}) {
    for (const bool polls : {false, true}) {
      int code = 0, whole_ones = 0;
      router routes;
      routes.get("/", [&, polls] {
        return response::websocket([&, polls](http::websocket& peer) -> task<> {
          while (peer.close_code() == 0) {
            const auto take = [&whole_ones](http::websocket& from) -> task<> {
              const auto came = co_await from.receive();
              if (came) ++whole_ones;
            };
            const auto soon = []() -> task<> { co_await sleep_for(3ms); };
            if (!polls) {
              co_await take(peer);
              continue;
            }
            auto either = when_any(take(peer), soon());
            static_cast<void>(co_await std::move(either));
          }
          code = peer.close_code();
        });
      });
      std::string sent;
      run(
          std::move(routes),
          [&](runtime&, http::server, endpoint at) -> task<> {
            tcp_stream peer = co_await tcp_stream::connect(at);
            // A simulated peer may have room for 100 bytes, and the server for as many.
            future<std::string> reading = spawn(read_to_end(peer));
            try {
              co_await peer.write_all(shake + one.begun);
              while (!one.more.empty()) {
                co_await peer.write_all(one.more);
                co_await sleep_for(1ms);
              }
            } catch (const io_error&) {  // the server has closed the connection
            }
            sent = co_await std::move(reading);
          },
          limits);
      EXPECT_EQ(code, 1008) << one.begun << one.more;
      EXPECT_EQ(whole_ones, one.begun.size() > whole.size() ? 2 : 0);
      EXPECT_TRUE(!one.more.empty() || sent.ends_with(closing(1008))) << sent;
    }
  }
}

// Between messages a peer may be silent, and whole messages may be as small as they like.
TEST_P(http_websocket, whole_messages_may_come_as_seldom_as_they_like) {
  http::server_options limits;
  limits.body_grace = 5ms;
  limits.body_rate = 1'000'000;
  router routes;
  int count = 0, code = 0;
  routes.get("/", [&] {
    return response::websocket([&](http::websocket& peer) -> task<> {
      while (co_await peer.receive()) ++count;
      code = peer.close_code();
    });
  });
  run(
      std::move(routes),
      [&](runtime&, http::server, endpoint at) -> task<> {
        tcp_stream peer = co_await tcp_stream::connect(at);
        co_await peer.write_all(shake);
        co_await read_until(peer, "\r\n\r\n");  // a simulated one may have room for 100 bytes
        for (int i = 0; i < 5; ++i) {
          co_await sleep_for(10ms);
          co_await peer.write_all(masked(0x81, "x") + masked(0x8a, "unasked"));
        }
        co_await peer.write_all(bye);
        static_cast<void>(co_await read_to_end(peer));
      },
      limits);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(code, 1000);
}

// A message in parts that come in time is taken whole. Without a rate it may take as long as it
// likes.
TEST_P(http_websocket, a_message_in_parts_is_taken_whole) {
  for (const bool without_rate : {false, true}) {
    http::server_options limits;
    limits.body_grace = without_rate ? 1ns : std::chrono::nanoseconds(1h);
    limits.body_rate = without_rate ? 0 : 1;
    std::string got;
    router routes;
    routes.get("/", [&got] {
      return response::websocket([&got](http::websocket& peer) -> task<> {
        while (const auto came = co_await peer.receive()) got += std::string(came->data) + ";";
      });
    });
    run(
        std::move(routes),
        [&](runtime&, http::server, endpoint at) -> task<> {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(shake);
          for (const char one : masked(0x81, "in parts") + masked(0x81, "again") + bye) {
            co_await peer.write_all(std::string(1, one));
            co_await sleep_for(1ms);
          }
          static_cast<void>(co_await read_to_end(peer));
        },
        limits);
    EXPECT_EQ(got, "in parts;again;");
  }
}

TEST_P(http_websocket, server_sent_events) {
  router routes;
  routes.get("/", [] {
    return response::events([](http::event_writer& to) -> task<> {
      http::event_message one("two\nlines");
      one.event = "kind";
      one.id = "7";
      one.retry_ms = 100;
      co_await to.send(std::move(one));
      co_await to.comment("alive");
      co_await to.send("x");
      const std::string text = "a text that is longer than a string holds by itself";
      co_await to.send(text);
      task<> later = to.send(std::string_view("kept until it is awaited"));
      co_await std::move(later);
      co_await to.send(http::event_message("last"));
    });
  });
  EXPECT_EQ(answer_to(std::move(routes), "GET / HTTP/1.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: "
            "no-cache\r\nConnection: close\r\n\r\n"
            "event: kind\nid: 7\nretry: 100\ndata: two\ndata: lines\n\n: alive\n\ndata: x\n\n"
            "data: a text that is longer than a string holds by itself\n\ndata: kept until it is "
            "awaited\n\ndata: last\n\n");
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_websocket);

}  // namespace troupe::test
