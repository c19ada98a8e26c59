// What the two ends of a WebSocket agree on: subprotocols, and permessage-deflate.
#include <zlib.h>

#include <cerrno>

#include "http/client/scripted.hpp"
#include "http/frames.hpp"
#include "http/routing/response_parts.hpp"
#include "http/websocket/handshake/deflate.hpp"
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

std::string request_with(const std::string& lines) {
  return "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
         "websocket\r\nSec-WebSocket-Version: 13\r\n" +
         lines + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}

websocket_options with_deflate() {
  websocket_options made;
  made.deflate.emplace();
  made.deflate->least_bytes = 1;
  return made;
}

class http_websocket_terms : public http_conformance {
 protected:
  static router routes(websocket_options options) {
    router made;
    made.get("/", [options] { return response::websocket(echo_messages, options); });
    return made;
  }
  // Returns the head of the answer, and what follows it.
  std::pair<std::string, std::string> ask(const std::string& lines,
                                          const websocket_options& options,
                                          const std::string& frames = bye) {
    const std::string all = answer_to(routes(options), request_with(lines) + frames);
    const std::size_t end = all.find("\r\n\r\n");
    return {all.substr(0, end + 2), all.substr(end + 4)};
  }
  // Returns the value of this field, or "" if there is none. If the status is not 101, returns the
  // status.
  std::string answered(const std::string& lines, const websocket_options& options,
                       const std::string& name) {
    const std::string head = ask(lines, options, bye).first;
    if (!head.starts_with("HTTP/1.1 101 ")) return head.substr(9, 3);
    const std::size_t at = head.find("\r\n" + name + ": ");
    return at == std::string::npos ? ""
                                   : head.substr(at + name.size() + 4,
                                                 head.find("\r\n", at + 2) - at - name.size() - 4);
  }
  std::string protocol(const std::string& lines, const websocket_options& options) {
    return answered(lines, options, "Sec-WebSocket-Protocol");
  }
  std::string deflate(const std::string& offer, const websocket_options& options) {
    return answered("Sec-WebSocket-Extensions: " + offer + "\r\n", options,
                    "Sec-WebSocket-Extensions");
  }
  // Sends frames of a client that has agreed on permessage-deflate, and returns what comes back.
  std::string converse(const std::string& frames, const websocket_options& options,
                       const std::string& more = "") {
    const auto [head, sent] =
        ask("Sec-WebSocket-Extensions: permessage-deflate" + more + "\r\n", options, frames);
    EXPECT_NE(head.find("permessage-deflate"), std::string::npos) << head;
    return sent;
  }
};

TEST_P(http_websocket_terms, the_server_chooses_the_subprotocol_that_it_prefers) {
  websocket_options options;
  options.subprotocols = {"chat.v2", "chat.v1"};
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: chat.v1, chat.v2\r\n", options), "chat.v2");
  EXPECT_EQ(
      protocol("Sec-WebSocket-Protocol: chat.v3\r\nsec-websocket-protocol:  chat.v1 \r\n", options),
      "chat.v1");
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: ,chat.v1,,\r\n", options),
            "chat.v1");  // RFC 2616 allows empty elements
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: CHAT.v1\r\n", options), "");
  EXPECT_EQ(protocol("", options), "");
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: chat.v1\r\n", {}), "");
}

TEST_P(http_websocket_terms, without_a_common_subprotocol_a_server_may_refuse) {
  websocket_options options;
  options.subprotocols = {"chat.v2", "chat.v1"};
  options.require_subprotocol = true;
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: chat.v1\r\n", options), "chat.v1");
  for (const char* lines :
       {"Sec-WebSocket-Protocol: other\r\nConnection: close\r\n", "Connection: close\r\n"}) {
    const auto [head, body] = ask(lines, options, "");
    EXPECT_TRUE(head.starts_with("HTTP/1.1 400 ")) << head;
    EXPECT_EQ(
        body,
        "this WebSocket speaks chat.v2, chat.v1: offer one of them in Sec-WebSocket-Protocol\n");
  }
}

TEST_P(http_websocket_terms, malformed_lists_are_refused) {
  for (const websocket_options& options : {websocket_options(), with_deflate()}) {
    for (const char* list : {"a b", "a;b", "a, a", "\"a\"", "a/b", "a,b c", "\xc3\xa4"}) {
      EXPECT_EQ(protocol("Sec-WebSocket-Protocol: "s + list + "\r\nConnection: close\r\n", options),
                "400")
          << list;
    }
    EXPECT_EQ(
        protocol("Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\nConnection: close\r\n",
                 options),
        "400");
    for (const char* list : {";", ", ;", "a b", "a;", ";a", "a;b=", "a;=b", "a;b=\"", "a;b=\"c d\"",
                             "a;b=\"\"", "a;b=c d", "a=b", "a;b;;c"}) {
      EXPECT_EQ(answered("Sec-WebSocket-Extensions: "s + list + "\r\nConnection: close\r\n",
                         options, "x"),
                "400")
          << list;
    }
  }
}

// A list whose elements are all empty counts as no list (RFC 7230, 7).
TEST_P(http_websocket_terms, empty_lists_are_no_lists) {
  websocket_options options = with_deflate();
  options.subprotocols = {"chat"};
  for (const char* list : {"", ",", " , ,\t,"}) {
    EXPECT_EQ(protocol("Sec-WebSocket-Protocol: "s + list + "\r\n", options), "") << list;
    EXPECT_EQ(deflate(list, options), "") << list;
    const std::string empty =
        "Sec-WebSocket-Protocol: "s + list + "\r\nSec-WebSocket-Extensions: " + list + "\r\n";
    EXPECT_EQ(protocol(empty + "Sec-WebSocket-Protocol: chat\r\n", options), "chat") << list;
    EXPECT_EQ(answered(empty + "Sec-WebSocket-Extensions: permessage-deflate\r\n", options,
                       "Sec-WebSocket-Extensions"),
              "permessage-deflate")
        << list;
  }
  options.require_subprotocol = true;
  EXPECT_EQ(protocol("Sec-WebSocket-Protocol: ,\r\nConnection: close\r\n", options), "400");
}

TEST_P(http_websocket_terms, options_that_no_handshake_could_say_are_refused) {
  const auto refused = [](auto change) {
    websocket_options options;
    options.deflate.emplace();
    change(options);
    EXPECT_THROW(response::websocket(echo_messages, options), option_error);
  };
  refused([](websocket_options& of) { of.subprotocols = {"a b"}; });
  refused([](websocket_options& of) { of.subprotocols = {""}; });
  refused([](websocket_options& of) { of.subprotocols = {"a", "b", "a"}; });
  refused([](websocket_options& of) { of.subprotocols = {"a\r\nX: y"}; });
  refused([](websocket_options& of) { of.require_subprotocol = true; });
  refused([](websocket_options& of) { of.deflate->server_max_window_bits = 8; });
  refused([](websocket_options& of) { of.deflate->client_max_window_bits = 16; });
  refused([](websocket_options& of) { of.deflate->level = 0; });
  refused([](websocket_options& of) { of.deflate->memory_level = 10; });
}

TEST_P(http_websocket_terms, compression_is_off_unless_the_server_wants_it) {
  EXPECT_EQ(deflate("permessage-deflate", {}), "");
  EXPECT_EQ(deflate("x-webkit-deflate-frame", with_deflate()), "");
  EXPECT_EQ(answered("", with_deflate(), "Sec-WebSocket-Extensions"), "");
}

TEST_P(http_websocket_terms, offers_of_compression) {
  const std::pair<const char*, const char*> offers[] = {
      {"permessage-deflate", "permessage-deflate"},
      {"foo; a=\"b\", permessage-deflate", "permessage-deflate"},
      {"permessage-deflate; client_max_window_bits", "permessage-deflate"},
      {"permessage-deflate; client_max_window_bits=10",
       "permessage-deflate; client_max_window_bits=10"},
      {"permessage-deflate; client_max_window_bits=\"8\"",
       "permessage-deflate; client_max_window_bits=8"},
      {"permessage-deflate;server_max_window_bits=9",
       "permessage-deflate; server_max_window_bits=9"},
      {"permessage-deflate; server_max_window_bits=15",
       "permessage-deflate; server_max_window_bits=15"},
      {"permessage-deflate; server_no_context_takeover",
       "permessage-deflate; server_no_context_takeover"},
      {"permessage-deflate; client_no_context_takeover",
       "permessage-deflate; client_no_context_takeover"},
      // An offer that RFC 7692 does not allow is declined, and the next offer is looked at.
      {"permessage-deflate; server_max_window_bits", ""},
      {"permessage-deflate; server_max_window_bits=8", ""},
      {"permessage-deflate; server_max_window_bits=16", ""},
      {"permessage-deflate; server_max_window_bits=09", ""},
      {"permessage-deflate; client_max_window_bits=7", ""},
      {"permessage-deflate; client_max_window_bits=+9", ""},
      {"permessage-deflate; client_max_window_bits=10; client_max_window_bits=10", ""},
      {"permessage-deflate; server_no_context_takeover=1", ""},
      {"permessage-deflate; client_no_context_takeover; client_no_context_takeover", ""},
      {"permessage-deflate; what", ""},
      {"permessage-deflate; server_max_window_bits=8, permessage-deflate; "
       "server_max_window_bits=10",
       "permessage-deflate; server_max_window_bits=10"},
      {"permessage-deflate; what, permessage-deflate", "permessage-deflate"},
  };
  for (const auto& [offer, answer] : offers)
    EXPECT_EQ(deflate(offer, with_deflate()), answer) << offer;
  websocket_options options = with_deflate();
  options.deflate->server_no_context_takeover = options.deflate->client_no_context_takeover = true;
  options.deflate->server_max_window_bits = 11;
  options.deflate->client_max_window_bits = 12;
  const std::string both =
      "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
  EXPECT_EQ(deflate("permessage-deflate", options), both + "; server_max_window_bits=11");
  EXPECT_EQ(deflate("permessage-deflate; client_max_window_bits", options),
            both + "; server_max_window_bits=11; client_max_window_bits=12");
  EXPECT_EQ(
      deflate("permessage-deflate; server_max_window_bits=10; client_max_window_bits=9", options),
      both + "; server_max_window_bits=10; client_max_window_bits=9");
}

// The examples of RFC 7692, 7.2.3.
TEST_P(http_websocket_terms, the_examples_of_the_standard) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s, again = "\xf2\x00\x11\x00\x00"s;
  const std::string first = plain(0xC1, hello), next = plain(0xC1, again);
  EXPECT_EQ(converse(masked(0xC1, hello) + bye, with_deflate()), first + closing(1000));
  EXPECT_EQ(converse(masked(0x41, hello.substr(0, 3)) + masked(0x80, hello.substr(3)) + bye,
                     with_deflate()),
            first + closing(1000));
  EXPECT_EQ(converse(masked(0xC1, hello) + masked(0xC1, again) + bye, with_deflate()),
            first + next + closing(1000));
  EXPECT_EQ(
      converse(masked(0xC1, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s) + bye, with_deflate()),
      first + closing(1000));
  EXPECT_EQ(converse(masked(0xC1, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s) + bye, with_deflate()),
            first + closing(1000));
  EXPECT_EQ(converse(masked(0xC1, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s) + bye,
                     with_deflate()),
            first + closing(1000));
  // An empty message, which the server sends without compression, and the empty last fragment of
  // another message.
  EXPECT_EQ(converse(masked(0xC1, "\x00"s) + bye, with_deflate()), plain(0x81, "") + closing(1000));
  EXPECT_EQ(converse(masked(0x41, hello + "\x00\x00\xff\xff"s) + masked(0x80, "\x00"s) + bye,
                     with_deflate()),
            first + closing(1000));
  // Without context takeover both messages are sent in the same form.
  EXPECT_EQ(converse(masked(0xC1, hello) + masked(0xC1, again) + bye, with_deflate(),
                     "; server_no_context_takeover"),
            plain(0x81, "Hello") + plain(0x81, "Hello") + closing(1000));
}

TEST_P(http_websocket_terms, messages_that_are_not_compressed_and_short_ones) {
  websocket_options options = with_deflate();
  options.deflate->least_bytes = 6;
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  EXPECT_EQ(converse(masked(0xC1, hello) + masked(0x81, "plain") + masked(0x01, "fr") +
                         masked(0x80, "ag") + bye,
                     options),
            plain(0x81, "Hello") + plain(0x81, "plain") + plain(0x81, "frag") + closing(1000));
  const std::string long_text(300, 'x');
  const std::string sent = converse(masked(0x82, long_text) + bye, options);
  EXPECT_EQ(sent.substr(0, 1), "\xc2");
  EXPECT_LT(sent.size(), 30u);
}

TEST_P(http_websocket_terms, control_frames_between_compressed_fragments) {
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  std::string frames;
  for (std::size_t i = 0; i < hello.size(); ++i) {
    const bool is_last = i + 1 == hello.size();
    frames += masked((i == 0 ? 0x41 : 0) | (is_last ? 0x80 : 0), hello.substr(i, 1));
    if (!is_last) frames += masked(0x89, std::to_string(i)) + masked(0x8A, "x") + masked(0, "");
  }
  std::string pongs;
  for (std::size_t i = 0; i + 1 < hello.size(); ++i) pongs += plain(0x8A, std::to_string(i));
  EXPECT_EQ(converse(frames + bye, with_deflate()), pongs + plain(0xC1, hello) + closing(1000));
}

TEST_P(http_websocket_terms, breaches_of_the_extension) {
  struct breach {
    const char* what;
    std::string frames;
    int code;
  };
  const std::string hello = "\xf2\x48\xcd\xc9\xc9\x07\x00"s;
  const breach breaches[] = {
      {"the bit on a continuation",
       masked(0x41, hello.substr(0, 2)) + masked(0xC0, hello.substr(2)), 1002},
      {"the bit on a continuation of a plain message", masked(0x01, "x") + masked(0xC0, hello),
       1002},
      {"the bit on a ping", masked(0xC9, ""), 1002},
      {"the bit on a pong", masked(0xCA, ""), 1002},
      {"the bit on a close", masked(0xC8, number(1000)), 1002},
      {"the second bit", masked(0xA1, hello), 1002},
      {"the third bit", masked(0x91, hello), 1002},
      {"all bits", masked(0xF1, hello), 1002},
      {"a reserved code", masked(0xC3, hello), 1002},
      {"no deflate", masked(0xC1, "\xff\xff\xff"), 1007},
      {"a block of a reserved kind", masked(0xC1, "\x07"), 1007},
      {"a distance beyond the window", masked(0xC1, "\xf2\x00\x11\x00\x00"s), 1007},
      {"the middle of a block", masked(0xC1, hello.substr(0, 4)), 1007},
      {"no UTF-8", masked(0xC1, "\x00\x01\x00\xfe\xff\xff\x00"s), 1007},
      {"an unfinished letter", masked(0xC1, "\x00\x02\x00\xfd\xff\xe4\xb8\x00"s), 1007},
  };
  for (const breach& one : breaches)
    EXPECT_EQ(converse(one.frames + bye, with_deflate()), closing(one.code)) << one.what;
  // A letter that is split over two fragments is valid.
  const std::string letter =
      masked(0x41, "\x00\x01\x00\xfe\xff\xc3"s) + masked(0x80, "\x00\x01\x00\xfe\xff\xa4\x00"s);
  EXPECT_EQ(converse(letter + bye, with_deflate()).substr(0, 1), "\xc1");
  // Compression was not agreed on.
  EXPECT_EQ(ask("", with_deflate(), masked(0xC1, hello) + bye).second, closing(1002));
  EXPECT_EQ(
      ask("Sec-WebSocket-Extensions: permessage-deflate\r\n", {}, masked(0xC1, hello) + bye).second,
      closing(1002));
}

// Compresses a text by zlib alone.
std::string deflated(const std::string& text, int bits = 15) {
  z_stream made{};
  deflateInit2(&made, 9, Z_DEFLATED, -bits, 9, Z_DEFAULT_STRATEGY);
  std::string to(text.size() + 1000, '\0');
  made.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  made.avail_in = static_cast<uInt>(text.size());
  made.next_out = reinterpret_cast<Bytef*>(to.data());
  made.avail_out = static_cast<uInt>(to.size());
  deflate(&made, Z_SYNC_FLUSH);
  to.resize(to.size() - made.avail_out - 4);
  deflateEnd(&made);
  return to;
}

TEST_P(http_websocket_terms, the_limit_counts_what_is_inflated) {
  websocket_options options = with_deflate();
  options.message_bytes = 10'000;
  const auto code_of = [&](const std::string& frames) {
    const std::string sent = converse(frames + bye, options);
    return sent.substr(sent.size() - 4);
  };
  EXPECT_EQ(code_of(masked(0xC2, deflated(std::string(10'000, 'x')))), closing(1000));
  EXPECT_EQ(code_of(masked(0xC2, deflated(std::string(10'001, 'x')))), closing(1009));
  const std::string bomb = deflated(std::string(8'000'000, 'x'));
  EXPECT_LT(bomb.size(), options.message_bytes);
  EXPECT_EQ(converse(masked(0xC2, bomb) + bye, options), closing(1009));
  EXPECT_EQ(
      converse(masked(0x42, bomb.substr(0, 50)) + masked(0x80, bomb.substr(50)) + bye, options),
      closing(1009));
  // Blocks without bytes: many in one frame, and then in a long row of frames.
  EXPECT_EQ(converse(masked(0xC2, std::string(30'000, '\0')) + bye, options), closing(1009));
  std::string many = masked(0x42, "\x00\x00\x00\xff\xff"s);
  for (int i = 0; i < 5'000; ++i) many += masked(0x00, "\x00\x00\x00\xff\xff"s);
  EXPECT_EQ(converse(many + bye, options), closing(1009));
}

TEST_P(http_websocket_terms, a_client_with_the_smallest_window_is_understood) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i * i % 1000) + " ";
  const std::string frame = masked(0xC1, deflated(text, 9));
  const std::string sent =
      converse(frame + bye, with_deflate(), "; client_max_window_bits=9; server_max_window_bits=9");
  EXPECT_EQ(sent.substr(0, 1), "\xc1");
  EXPECT_EQ(sent.substr(sent.size() - 4), closing(1000));
}

// Accepts what is sent when the gate is open, or refuses it.
struct gated final : http::transport {
  task<std::size_t> receive(std::span<char>, std::chrono::nanoseconds) override { co_return 0; }
  task<> send(std::string_view) override { co_return; }
  task<std::uint64_t> send_file(const file&, std::uint64_t, std::uint64_t) override { co_return 0; }
  task<> send_owned(std::string bytes) override {
    co_await gate.wait();
    if (std::exchange(refuses, false)) throw io_error("send", "a test", ENOBUFS);
    sent += bytes;
  }
  event gate;
  bool refuses = false;
  std::string sent;
};

// The test gives up one send while it waits for its turn, and lets another one fail before a byte
// is sent. No later message may refer to either of them.
TEST_P(http_websocket_terms, what_was_not_sent_is_part_of_no_context) {
  runtime rt(options());
  const auto whole = []() -> task<> {
    const std::string text = "a text that is long enough to be referred to";
    gated over;
    http::websocket_terms terms;
    terms.deflate = with_deflate().deflate;
    http::websocket peer(over, "", with_deflate(), terms);
    int given_up = 0, refused = 0;
    const auto say = [](http::websocket& to, std::string what) -> task<> {
      co_await to.send(std::move(what));
    };
    const auto give_up = [&](http::websocket& to) -> task<> {
      const auto soon = []() -> task<> { co_await sleep_for(1ms); };
      auto either = when_any(say(to, text), soon());
      const auto how = co_await std::move(either);
      if (how.index() == 1) ++given_up;
      over.gate.set();
    };
    co_await when_all(say(peer, "first"), give_up(peer), say(peer, "second"));
    over.refuses = true;
    try {
      co_await peer.send(text);
    } catch (const io_error&) {
      ++refused;
    }
    co_await peer.send(text);
    EXPECT_EQ(given_up, 1);
    EXPECT_EQ(refused, 1);
    std::string heard;
    http::message_inflater in(15, true);
    for (std::string_view left = over.sent; !left.empty();) {
      const auto bytes = static_cast<std::size_t>(left[1]);
      EXPECT_EQ(left[0], '\xc1');
      EXPECT_EQ(in.add(left.substr(2, bytes), heard, 1000), http::inflate_result::whole);
      EXPECT_EQ(in.finish(heard, 1000), http::inflate_result::whole);
      heard += ';';
      left.remove_prefix(2 + bytes);
    }
    EXPECT_EQ(heard, "first;second;" + text + ";");
  };
  rt.spawn(whole());
  rt.run();
}

TROUPE_HTTP_TEST_EACH(http_websocket_terms);

}  // namespace
}  // namespace troupe::test
