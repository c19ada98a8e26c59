// The client's WebSockets: with our server, and with servers that break the protocol.
#include <array>
#include <random>
#include <set>

#include "http/client/scripted.hpp"
#include "http/frames.hpp"
#include "http/routing/response_parts.hpp"
#include "support/http.hpp"
#include "support/websocket_echo.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using http::websocket_options;
using namespace std::chrono_literals;
using namespace std::string_literals;
using peer_ptr = std::unique_ptr<http::websocket>;

std::vector<std::string> texts() {
  std::minstd_rand random(5);
  std::vector<std::string> all{"", "x", "Hello", "Hello"};
  for (const std::size_t bytes : {125u, 126u, 65'535u, 65'536u, 200'000u}) {
    std::string one(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i)
      one[i] = i < 40 || random() % 4 == 0 ? static_cast<char>('a' + random() % 26) : one[i - 37];
    all.push_back(one);
    all.push_back(std::move(one));  // a second time, so that the compression context matters
  }
  return all;
}

task<> say_all(http::websocket& to) {
  for (std::string& one : texts()) {
    const std::string wanted = one;
    co_await to.send(std::move(one));
    const auto text = co_await to.receive();
    EXPECT_TRUE(text && text->is_text && text->data == wanted) << wanted.size();
    std::string bytes = "\xff" + wanted;
    co_await to.send_binary(std::move(bytes));
    const auto binary = co_await to.receive();
    EXPECT_TRUE(binary && !binary->is_text && binary->data == "\xff" + wanted) << wanted.size();
  }
  co_await to.close(3000, "enough");
  const auto last = co_await to.receive();
  EXPECT_FALSE(last);
  EXPECT_EQ(to.close_code(), 3000);
}

std::vector<websocket_options> choices() {
  std::vector<websocket_options> all(1);
  for (int choice = 0; choice < 6; ++choice) {
    websocket_options made;
    made.deflate.emplace();
    made.deflate->server_no_context_takeover = (choice & 1) != 0;
    made.deflate->client_no_context_takeover = (choice & 2) != 0;
    made.deflate->server_max_window_bits = choice < 3 ? 15 : 9 + choice % 3;
    made.deflate->client_max_window_bits = choice < 3 ? 15 : 12 - choice % 3;
    made.deflate->least_bytes = choice % 2 == 0 ? 1 : 64;
    all.push_back(std::move(made));
  }
  return all;
}

class http_websocket_client : public http_conformance {};

TEST_P(http_websocket_client, client_and_server_understand_each_other_whatever_they_choose) {
  router routes;
  const std::vector<websocket_options> all = choices();
  for (std::size_t i = 0; i < all.size(); ++i) {
    routes.get("/" + std::to_string(i),
               [one = all[i]] { return response::websocket(echo_messages, one); });
  }
  // All pairs of choices on one backend; on each of the others some, since they share that code.
  const std::size_t step = threaded() && GetParam().on.workers == 1 ? 1 : 3;
  int deflated = 0, wanted = 0;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t other = i % step; other < all.size(); other += step) {
        const websocket_options& offered = all[other];
        wanted += all[i].deflate && offered.deflate ? 1 : 0;
        std::string url = "ws://127.0.0.1:" + std::to_string(at.port()) + "/" + std::to_string(i);
        const peer_ptr peer = co_await web.websocket(std::move(url), offered);
        EXPECT_EQ(peer->deflate().has_value(), all[i].deflate && offered.deflate);
        if (peer->deflate()) {
          ++deflated;
          EXPECT_EQ(peer->deflate()->server_max_window_bits,
                    std::min(all[i].deflate->server_max_window_bits,
                             offered.deflate->server_max_window_bits));
          EXPECT_EQ(peer->deflate()->client_max_window_bits,
                    std::min(all[i].deflate->client_max_window_bits,
                             offered.deflate->client_max_window_bits));
          EXPECT_EQ(peer->deflate()->server_no_context_takeover,
                    all[i].deflate->server_no_context_takeover ||
                        offered.deflate->server_no_context_takeover);
        }
        co_await say_all(*peer);
      }
    }
  });
  EXPECT_EQ(deflated, wanted);
  EXPECT_GE(deflated, step == 1 ? 36 : 10);
}

TEST_P(http_websocket_client, both_sides_see_the_subprotocol) {
  websocket_options speaks;
  speaks.subprotocols = {"b", "c"};
  router routes;
  // The subprotocol that the server chose, and the one that the client saw.
  std::string chosen, seen;
  routes.get("/", [&] {
    return response::websocket(
        [&](http::websocket& peer) -> task<> {
          chosen += peer.subprotocol() + ";";
          co_return;
        },
        speaks);
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    const std::string url = "ws://127.0.0.1:" + std::to_string(at.port()) + "/";
    websocket_options offered;
    for (const std::vector<std::string>& names :
         std::vector<std::vector<std::string>>{{"a", "c", "b"}, {"c"}, {"a"}, {}}) {
      offered.subprotocols = names;
      const peer_ptr peer = co_await web.websocket(url, offered);
      seen += peer->subprotocol() + ";";
      while (co_await peer->receive()) {
      }
    }
    offered.subprotocols = {"a"};
    offered.require_subprotocol = true;
    std::string how;
    try {
      co_await web.websocket(url, offered);
    } catch (const http::client_error& e) {
      how = text_of(e.reason());
    }
    EXPECT_EQ(how, "bad_handshake");
  });
  EXPECT_EQ(seen, "b;c;;;");
  EXPECT_EQ(chosen, "b;c;;;;");
}

TEST_P(http_websocket_client, fields_of_the_request_arrive_and_other_answers_are_told) {
  router routes;
  routes.get("/", [](const http::request& asked) -> response {
    if (asked.field("Authorization") != "Bearer 7")
      return response::text("who are you?").status(401);
    return response::websocket(echo_messages);
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    const std::string url = "http://127.0.0.1:" + std::to_string(at.port()) + "/";
    http::client_request asked("GET", url);
    asked.field("Authorization", "Bearer 7").field("Origin", "http://a");
    const peer_ptr peer = co_await web.websocket(std::move(asked));
    co_await peer->close();
    int status = 0;
    std::string how;
    try {
      co_await web.websocket(url);
    } catch (const http::client_error& e) {
      how = text_of(e.reason());
      status = e.status();
    }
    EXPECT_EQ(how, "not_upgraded");
    EXPECT_EQ(status, 401);
    int wrong = 0;
    for (const char* method : {"POST", "get"}) {
      http::client_request other(method, url);
      try {
        co_await web.websocket(std::move(other));
      } catch (const usage_error&) {
        ++wrong;
      }
    }
    http::client_request own("GET", url);
    own.field("sec-websocket-protocol", "a");
    try {
      co_await web.websocket(std::move(own));
    } catch (const usage_error&) {
      ++wrong;
    }
    try {
      co_await web.websocket("gopher://127.0.0.1/");
    } catch (const http::client_error& e) {
      if (e.reason() == http::client_failure::bad_url) ++wrong;
    }
    EXPECT_EQ(wrong, 4);
  });
}

// Several branches of the client send, and one of them is given up.
TEST_P(http_websocket_client, several_branches_send_and_hear) {
  router routes;
  routes.get("/", [] { return response::websocket(echo_messages); });
  std::size_t heard = 0;
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    const std::string url = "ws://127.0.0.1:" + std::to_string(at.port()) + "/";
    const peer_ptr peer = co_await web.websocket(url);
    const auto say = [](http::websocket& to, char letter) -> task<> {
      for (int i = 0; i < 100; ++i) co_await to.send(std::string(300, letter));
    };
    const auto hear = [](http::websocket& from, std::size_t& count) -> task<> {
      while (count < 300) {
        const auto came = co_await from.receive();
        if (!came) break;
        EXPECT_EQ(came->data.find_first_not_of(came->data.front()), std::string_view::npos);
        ++count;
      }
    };
    co_await when_all(say(*peer, 'a'), say(*peer, 'b'), say(*peer, 'c'), hear(*peer, heard));
    co_await peer->close();
    while (co_await peer->receive()) {
    }
    EXPECT_EQ(peer->close_code(), 1000);
  });
  EXPECT_EQ(heard, 300u);
}

// RFC 6455, 5.5.2: a client that receives answers pings by itself.
TEST_P(http_websocket_client, a_ping_of_the_server_is_answered) {
  websocket_options asks;
  asks.ping_after = 200ms;
  int code = 0;
  router routes;
  routes.get("/", [&code, asks] {
    return response::websocket(
        [&code](http::websocket& peer) -> task<> {
          while (co_await peer.receive()) {
          }
          code = peer.close_code();
        },
        asks);
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    http::client web;
    const std::string url = "ws://127.0.0.1:" + std::to_string(at.port()) + "/";
    const peer_ptr peer = co_await web.websocket(url);
    const auto hear = [](http::websocket& from) -> task<> { co_await from.receive(); };
    const auto leave = [](http::websocket& to) -> task<> {
      co_await sleep_for(1s);  // several pings
      co_await to.close(3000, "enough");
    };
    co_await when_all(hear(*peer), leave(*peer));
  });
  EXPECT_EQ(code, 3000);
}

TROUPE_HTTP_TEST_EACH(http_websocket_client);

// Servers that send what the test tells them to.
class http_websocket_client_failures : public client_conformance {
 protected:
  // The answer to a request, with further `lines` in its head, and the frames behind it.
  static std::string accepting(const std::string& request, const std::string& lines,
                               const std::string& frames = "") {
    const std::size_t at = request.find("Sec-WebSocket-Key: ") + 19;
    return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
           "websocket\r\nSec-WebSocket-Accept: " +
           http::websocket_answer_to(request.substr(at, 24)) + "\r\n" + lines + "\r\n" + frames;
  }
  static std::string path_of(const std::string& request) {
    return request.substr(5, request.find(' ', 5) - 5);
  }
};

task<std::string> open_at(http::client web, std::string url, websocket_options options) {
  try {
    const peer_ptr peer = co_await web.websocket(std::move(url), std::move(options));
    co_return "open";
  } catch (const http::client_error& e) {
    co_return text_of(e.reason());
  } catch (const timed_out&) {
    co_return "timed_out";
  } catch (const io_error&) {
    co_return "io_error";
  }
}

TEST_P(http_websocket_client_failures, an_answer_that_was_not_offered_is_refused) {
  static const std::vector<std::pair<std::string, std::string>> answers{
      {"", "open"},
      {"Sec-WebSocket-Protocol: \r\n", "open"},
      {"Sec-WebSocket-Extensions: , ,\r\n", "open"},
      {"Sec-WebSocket-Protocol: a\r\n", "open"},
      {"Sec-WebSocket-Protocol: c\r\n", "bad_handshake"},
      {"Sec-WebSocket-Protocol: A\r\n", "bad_handshake"},
      {"Sec-WebSocket-Protocol: a, b\r\n", "bad_handshake"},
      {"Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n", "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12; "
       "server_no_context_takeover\r\n",
       "open"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=8; "
       "server_no_context_takeover; "
       "client_no_context_takeover; client_max_window_bits=8\r\n",
       "open"},
      {"Sec-WebSocket-Extensions: permessage-deflate\r\n", "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=13; "
       "server_no_context_takeover\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12; "
       "server_no_context_takeover; client_max_window_bits\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12; "
       "server_no_context_takeover; what\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12; "
       "server_no_context_takeover, permessage-deflate; "
       "server_max_window_bits=12; server_no_context_takeover\r\n",
       "bad_handshake"},
      {"Sec-WebSocket-Extensions: foo\r\n", "bad_handshake"},
      {"Sec-WebSocket-Extensions: ;\r\n", "bad_handshake"},
      {"Sec-WebSocket-Accept: x\r\n", "bad_handshake"},
  };
  const auto says = [](const std::string& request) -> scripted_answer {
    return {accepting(request, answers[std::stoul(path_of(request))].first), true};
  };
  run(says, [](scripted_server& server, http::client web) -> task<> {
    websocket_options options;
    options.subprotocols = {"a", "b"};
    options.deflate.emplace();
    options.deflate->server_max_window_bits = 12;
    options.deflate->server_no_context_takeover = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string how = co_await open_at(web, server.url("/" + std::to_string(i)), options);
      EXPECT_EQ(how, answers[i].second) << answers[i].first;
      const std::string bare = co_await open_at(web, server.url("/" + std::to_string(i)), {});
      EXPECT_EQ(bare, i < 3 ? "open" : "bad_handshake") << answers[i].first;
    }
    const std::string sent = server.requests().front();
    EXPECT_NE(sent.find("\r\nSec-WebSocket-Protocol: a, b\r\n"), std::string::npos) << sent;
    EXPECT_NE(sent.find("\r\nSec-WebSocket-Extensions: permessage-deflate; "
                        "server_no_context_takeover; server_max_window_bits=12; "
                        "client_max_window_bits\r\n"),
              std::string::npos)
        << sent;
  });
}

TEST_P(http_websocket_client_failures, what_is_no_answer_to_an_upgrade) {
  static const std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  static const std::vector<std::pair<std::string, std::string>> answers{
      {head + "\r\n", "bad_handshake"},
      {head + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", "bad_handshake"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "not_upgraded"},
      {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "not_upgraded"},
      {"nonsense\r\n\r\n", "bad_response"},
      {"HTTP/1.1 10", "truncated"},
      {"", "closed"},
  };
  const auto says = [](const std::string& request) -> scripted_answer {
    return {answers[std::stoul(path_of(request))].first, true};
  };
  run(says, [](scripted_server& server, http::client web) -> task<> {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string how = co_await open_at(web, server.url("/" + std::to_string(i)), {});
      EXPECT_EQ(how, answers[i].second) << answers[i].first;
    }
  });
}

TEST_P(http_websocket_client_failures, breaches_of_the_protocol_by_a_server) {
  static const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  struct breach {
    const char* what;
    std::string frames;
    std::string heard;
    int code;
  };
  static const std::vector<breach> breaches{
      {"none", plain(0x81, "x") + plain(0x88, number(1000)), "x;", 1000},
      {"masked", masked(0x81, "x"), "", 1002},
      {"a masked ping", masked(0x89, "x"), "", 1002},
      {"a reserved bit", plain(0xA1, "x"), "", 1002},
      {"a continuation of nothing", plain(0x80, "x"), "", 1002},
      {"no UTF-8", plain(0x81, "\xff"), "", 1007},
      {"compressed",
       plain(0xC1, hello) + plain(0xC1, "\xf2\x00\x11\x00\x00"s) + plain(0x88, number(1000)),
       "Hello;Hello;", 1000},
      {"compressed badly", plain(0xC1, "\xff\xff"s), "", 1007},
      {"a bit on a ping", plain(0xC9, ""), "", 1002},
      {"too large", plain(0x82, std::string(2'000, 'x')), "", 1009},
      {"nothing", "", "", 1006},
      {"a part of a frame", plain(0x81, "xyz").substr(0, 3), "", 1006},
  };
  const auto says = [](const std::string& request) -> scripted_answer {
    return {accepting(request, "Sec-WebSocket-Extensions: permessage-deflate\r\n",
                      breaches[std::stoul(path_of(request))].frames),
            true};
  };
  run(says, [](scripted_server& server, http::client web) -> task<> {
    websocket_options options;
    options.deflate.emplace();
    options.message_bytes = 1'000;
    for (std::size_t i = 0; i < breaches.size(); ++i) {
      const peer_ptr peer = co_await web.websocket(server.url("/" + std::to_string(i)), options);
      std::string heard;
      try {
        while (const auto came = co_await peer->receive()) heard += std::string(came->data) + ";";
      } catch (const io_error&) {  // the connection ended before the client could be told
      }
      EXPECT_EQ(heard, breaches[i].heard) << breaches[i].what;
      EXPECT_EQ(peer->close_code(), breaches[i].code) << breaches[i].what;
    }
  });
}

// Answers handshakes, and keeps the first bytes that each client sends behind its own.
task<> keep_frames(tcp_listener& from, std::vector<std::string>& keys,
                   std::vector<std::string>& frames, std::string (*answer)(const std::string&)) {
  for (int i = 0; i < 2; ++i) {
    tcp_stream peer = co_await from.accept();
    std::string got;
    std::array<char, 1000> buffer;
    while (!got.contains("\r\n\r\n")) {
      const std::size_t bytes = co_await peer.read(buffer);
      got.append(buffer.data(), bytes);
    }
    keys.push_back(got.substr(got.find("Sec-WebSocket-Key: ") + 19, 24));
    co_await peer.write_all(answer(got));
    std::array<char, 22> two;  // frames of 5 bytes
    co_await peer.read_exact(two);
    frames.emplace_back(two.data(), 11);
    frames.emplace_back(two.data() + 11, 11);
  }
}

// RFC 6455, 4.1 and 5.3.
TEST_P(http_websocket_client_failures, each_key_and_each_mask_is_new) {
  std::vector<std::string> keys, frames;
  runtime rt(options());
  const auto talk = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const std::string url = "ws://127.0.0.1:" + std::to_string(listener.local().port()) + "/";
    future<> serving = spawn(keep_frames(
        listener, keys, frames, [](const std::string& request) { return accepting(request, ""); }));
    http::client web;
    for (int i = 0; i < 2; ++i) {
      const peer_ptr peer = co_await web.websocket(url);
      for (int message = 0; message < 2; ++message) co_await peer->send("hello");
    }
    co_await std::move(serving);
  };
  rt.spawn(talk());
  rt.run();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_NE(keys[0], keys[1]);
  for (const std::string& key : keys) EXPECT_TRUE(key.ends_with("==")) << key;  // of 16 bytes
  std::set<std::string> masks;
  for (const std::string& frame : frames) {
    EXPECT_EQ(frame.substr(0, 2), "\x81\x85");
    masks.insert(frame.substr(2, 4));
  }
  EXPECT_EQ(masks.size(), 4u);
}

// zlib has no window of 8 bits, so the messages are sent without compression.
TEST_P(http_websocket_client_failures,
       a_client_that_is_told_to_use_a_window_of_8_bits_sends_its_messages_as_they_are) {
  const auto says = [](const std::string& request) -> scripted_answer {
    return accepting(request,
                     "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=8\r\n");
  };
  run(says, [](scripted_server& server, http::client web) -> task<> {
    websocket_options options;
    options.deflate.emplace();
    const peer_ptr peer = co_await web.websocket(server.url(), options);
    EXPECT_EQ(peer->deflate()->client_max_window_bits, 8);
    co_await peer->send(std::string(1000, 'x'));
  });
}

TEST_P(http_websocket_client_failures, a_handshake_has_its_time) {
  const auto says = [](const std::string&) -> scripted_answer { return ""; };
  http::client_options chosen;
  chosen.head_time = 20ms;
  run(
      says,
      [](scripted_server& server, http::client web) -> task<> {
        const std::string how = co_await open_at(web, server.url(), {});
        EXPECT_EQ(how, "timed_out");
        bool late = false;
        try {
          co_await web.websocket(server.url()).timeout(10ms);
        } catch (const timed_out&) {
          late = true;
        }
        EXPECT_TRUE(late);
      },
      chosen);
}

TROUPE_CLIENT_TEST_EACH(http_websocket_client_failures);

}  // namespace
}  // namespace troupe::test
