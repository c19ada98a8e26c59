// What a client keeps of its WebSockets' messages is counted, and bounded for each origin: the
// largest ends at once, whether its task waits for the rest or has given that up
// (docs/protocols/accounts.md).
#if __has_include(<nghttp2/nghttp2.h>)

#include <malloc.h>

#include <memory>
#include <string>
#include <vector>

#include "http/client/h2_server.hpp"
#include "http/frames.hpp"
#include "http/routing/response_parts.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using http::client_error;
using http::client_failure;
using peer_ptr = std::unique_ptr<http::websocket>;

constexpr std::size_t count = 24;
constexpr std::size_t part_bytes = 200 * 1024;
constexpr std::size_t budget = std::size_t{1} << 20;

// A message of 1 MB of which only a part comes; `is_whole`: a message of that part.
std::string begun_message(bool is_whole) {
  const std::string part(part_bytes, 'x');
  if (is_whole) return plain(0x82, part);
  return static_cast<char>(0x82) + length_of(1'000'000, 0) + part;
}

// Whether time is virtual: of the test that runs.
bool is_simulated = false;
// How long all that a server has sent is on its way.
std::chrono::milliseconds transit() { return is_simulated ? 500ms : 100ms; }

// The bytes of the heap in use; 0 where a sanitizer has a heap of its own, and in a simulation,
// whose sockets lie in it.
std::size_t heap_bytes() {
  if (is_simulated) return 0;
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

enum class user : std::uint8_t {
  waits,     // its receive() waits for the rest
  gives_up,  // its receive() was given up, and none follows
  reads,     // it has the message, and does not ask for the next one
};

task<std::string> outcome_of_receive(http::websocket& socket, std::chrono::milliseconds patience) {
  try {
    const auto message = co_await with_deadline(patience, socket.receive());
    co_return message ? "message" : "end";
  } catch (const client_error& e) {
    co_return e.reason() == client_failure::too_much_kept ? "too much kept" : e.what();
  } catch (const timed_out&) {
    co_return "timed out";
  }
}
task<> note_outcome(http::websocket& socket, std::size_t& ended) {
  const std::string how = co_await outcome_of_receive(socket, 50 * transit());
  EXPECT_TRUE(how == "too much kept" || how == "timed out") << how;
  ended += how == "too much kept" ? 1 : 0;
}

http::client_options frugal(bool by_http2) {
  http::client_options chosen;
  chosen.http2_prior_knowledge = by_http2;
  chosen.buffer_bytes = chosen.buffer_bytes_per_origin = budget;
  chosen.body_rate = 0;
  return chosen;
}

// The sockets are used in that way, while their server sends parts.
task<> keep_messages(http::client web, std::string url, user way) {
  const std::size_t before = heap_bytes();
  std::vector<peer_ptr> all;
  std::size_t ended = 0;
  std::vector<future<>> waiting;
  for (std::size_t i = 0; i < count; ++i) {
    peer_ptr socket = co_await web.websocket(url);
    all.push_back(std::move(socket));
    if (way == user::waits) {
      waiting.push_back(spawn(note_outcome(*all.back(), ended)));
      continue;
    }
    const std::string how =
        co_await outcome_of_receive(*all.back(), way == user::reads ? 20s : transit());
    const bool is_good = how == (way == user::reads ? "message" : "timed out");
    EXPECT_TRUE(is_good || how == "too much kept") << how;
    ended += how == "too much kept" ? 1 : 0;
  }
  if (way == user::waits) co_await sleep_for(20 * transit());
  const std::size_t after = heap_bytes();
  // Messages that the program reads stay, and each further socket ends while they do: 16 MiB of
  // them may stay beyond the limit.
  const std::size_t most = way == user::reads ? 2 * budget : budget;
  EXPECT_LT(after, before + most + (std::size_t{3} << 20)) << ended;
  for (future<>& end : waiting) co_await std::move(end);
  if (way != user::waits) {
    for (const peer_ptr& socket : all) {
      const std::string how = co_await outcome_of_receive(*socket, transit());
      EXPECT_TRUE(how == "too much kept" || how == "timed out") << how;
      if (how == "too much kept") ++ended;
    }
  }
  EXPECT_GE(ended, count - budget / part_bytes - 1);
  EXPECT_LT(ended, 2 * count);
  all.clear();
  // The client is as good as new.
  const peer_ptr later = co_await web.websocket(url);
  const std::string how = co_await outcome_of_receive(*later, way == user::reads ? 20s : transit());
  EXPECT_EQ(how, way == user::reads ? "message" : "timed out");
}

constexpr user ways[] = {user::waits, user::gives_up, user::reads};

template <user Way>
task<> keep_by_http1(scripted_server& server, http::client web) {
  task<> keeps = keep_messages(web, "ws" + server.url().substr(4), Way);
  co_await std::move(keeps);
}
constexpr decltype(&keep_by_http1<user::waits>) by_http1[] = {
    &keep_by_http1<user::waits>, &keep_by_http1<user::gives_up>, &keep_by_http1<user::reads>};

class websocket_account : public client_conformance {};

TEST_P(websocket_account, by_http1_the_largest_ends_at_once) {
  is_simulated = !threaded();
  for (const user way : ways) {
    const auto says = [way](const std::string& request) -> scripted_answer {
      const std::size_t at = request.find("Sec-WebSocket-Key: ") + 19;
      return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
             "websocket\r\nSec-WebSocket-Accept: " +
             http::websocket_answer_to(request.substr(at, 24)) + "\r\n\r\n" +
             begun_message(way == user::reads);
    };
    run(says, by_http1[static_cast<std::size_t>(way)], frugal(false));
  }
}

class websocket_account_http2 : public h2::peer_conformance {};

TEST_P(websocket_account_http2, by_http2_the_largest_ends_at_once) {
  is_simulated = !threaded();
  for (const user way : ways) {
    run(
        [way](h2::told_peer& peer) -> task<> {
          peer.first = h2::settings_of({{8, 1}});
          for (;;) {
            const std::int32_t stream = co_await peer.next_request();
            if (stream == 0) co_return;
            std::string bytes = h2::ask(stream, h2::status_200, false);
            const std::string message = begun_message(way == user::reads);
            for (std::string_view rest = message; !rest.empty();) {
              const std::string_view piece = rest.substr(0, 16 * 1024);
              bytes += h2::frame_of(h2::data, 0, stream, std::string(piece));
              rest.remove_prefix(piece.size());
            }
            co_await peer.send(std::move(bytes));
          }
        },
        [way](h2::scripted_peer& server, http::client web) -> task<> {
          task<> keeps = keep_messages(web, "ws" + server.url().substr(4), way);
          co_await std::move(keeps);
        },
        frugal(true));
  }
}

TROUPE_CLIENT_TEST_EACH(websocket_account);
TROUPE_CLIENT_TEST_EACH(websocket_account_http2);

}  // namespace
}  // namespace troupe::test

#endif
