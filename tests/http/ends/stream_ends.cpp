// When the functions that stream an answer, talk over a WebSocket or hold a request open are ended:
// each such way, over each protocol, with each end. docs/protocols/http_ends.md has the rules.
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "http/h2/h2_peer.hpp"
#include "http/secure/https.hpp"
#include "io/sockets/sockets.hpp"
#include "support/scratch.hpp"
#include "troupe/http/around/compress.hpp"
#include "troupe/http/client.hpp"
#include "troupe/http/websocket.hpp"
#include "troupe/streams/async_generator.hpp"
#include "troupe/task/scope.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

enum class protocol : std::uint8_t { h1, h1_tls, h2 };
// What ends a call: its client closes, half closes, or resets the connection, resets the stream,
// says that it goes; the server is stopped, or its drain time is over.
enum class ending : std::uint8_t { close, half_close, reset, rst_stream, goaway, stop, drained };

const char* name_of(protocol one) {
  constexpr const char* names[] = {"h1", "h1 over TLS", "h2"};
  return names[static_cast<int>(one)];
}
const char* name_of(ending one) {
  constexpr const char* names[] = {"close",  "half_close", "reset",  "rst_stream",
                                   "goaway", "stop",       "drained"};
  return names[static_cast<int>(one)];
}
bool exists(protocol by, ending how) {
  if (how == ending::rst_stream || how == ending::goaway) return by == protocol::h2;
  // An alert of TLS alone ends that half: only a read finds it.
  return how != ending::half_close || by != protocol::h1_tls;
}

// What a function that is held open has seen.
struct held {
  event begun, ended, door;
};
// Holds a call open until the door opens, or the call ends.
task<> hold(held by) {
  const struct told {
    event at;
    ~told() { at.set(); }
  } at_end{by.ended};
  by.begun.set();
  co_await by.door.wait();
}

async_generator<std::string> pieces(held by) {
  co_yield "one";
  task<> holding = hold(by);
  co_await std::move(holding);
}

// A way in which a handler streams its answer or holds a request open.
struct way {
  const char* name;
  std::vector<const char*> covers;  // names in the public headers
  std::function<void(router&, held, const std::string& file)> add;
  enum class asked : std::uint8_t { plain, body, socket } asks = asked::plain;
  bool ends_with_client = true;  // at once, when its client has gone
  bool ends_at_stop = false;     // at once, when the server is stopped
  bool has_function = true;      // that tells when it has begun and ended
};

template <class Body>
void add_stream(router& routes, Body body) {
  routes.get("/", [body] { return response::stream("text/plain", body); });
}

// Handlers that wait.
std::vector<way> handlers() {
  return {
      {"a handler that waits",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by]() -> task<response> {
           task<> holding = hold(by);
           co_await std::move(holding);
           co_return response::text("held");
         });
       },
       way::asked::plain,
       false},
      {"a function around a handler",
       {"next_handler"},
       [](router& to, held by, const std::string&) {
         to.get("/", [] { return response::text("behind"); });
         to.around([by](request& asked, http::next_handler next) -> task<response> {
           task<> holding = hold(by);
           co_await std::move(holding);
           co_return co_await next(asked);
         });
       },
       way::asked::plain,
       false},
      {"a handler that waits for its client, too",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by](const request& asked) -> task<response> {
           const std::stop_token gone = asked.client_gone();
           task<> holding = hold(by);
           task<> both = with_stop(gone, std::move(holding));
           co_await std::move(both);
           co_return response::text("held");
         });
       }},
      {"a handler that reads a body",
       {"request::read"},
       [](router& to, held by, const std::string&) {
         to.post("/", [by](request& asked) -> task<response> {
           const struct told {
             event at;
             ~told() { at.set(); }
           } at_end{by.ended};
           static_cast<void>(co_await asked.read());
           by.begun.set();
           static_cast<void>(co_await asked.read_all());
           co_return response::text("read");
         });
       },
       way::asked::body},
  };
}

// Bodies that a function writes.
std::vector<way> streamed_bodies() {
  return {
      {"a streamed body",
       {"response::stream", "stream_function"},
       [](router& to, held by, const std::string&) {
         add_stream(to, [by](http::body_writer& out) -> task<> {
           co_await out.write("words");
           task<> holding = hold(by);
           co_await std::move(holding);
         });
       }},
      {"a streamed body that is compressed",
       {},
       [](router& to, held by, const std::string&) {
         add_stream(to, [by](http::body_writer& out) -> task<> {
           co_await out.write("words");
           task<> holding = hold(by);
           co_await std::move(holding);
         });
         to.around(http::compress());
       }},
      {"a generator as a body",
       {},
       [](router& to, held by, const std::string&) {
         add_stream(to, [by](http::body_writer& out) -> task<> {
           auto from = pieces(by);
           while (const auto piece = co_await from.next()) co_await out.write(*piece);
         });
       }},
  };
}

// Event streams.
std::vector<way> event_streams() {
  return {
      {"an event stream",
       {"response::events", "event_function"},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::events([by](http::event_writer& out) -> task<> {
             co_await out.send("hello");
             task<> holding = hold(by);
             co_await std::move(holding);
           });
         });
       },
       way::asked::plain,
       true,
       true},
      {"an event stream before its first event",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::events([by](http::event_writer&) -> task<> { return hold(by); });
         });
       },
       way::asked::plain,
       true,
       true},
      {"an event stream that is compressed",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::events([by](http::event_writer& out) -> task<> {
             co_await out.send("hello");
             task<> holding = hold(by);
             co_await std::move(holding);
           });
         });
         to.around(http::compress());
       },
       way::asked::plain,
       true,
       true},
      {"a streamed body of the type of events",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::stream("text/event-stream; charset=utf-8",
                                   [by](http::body_writer& out) -> task<> {
                                     co_await out.write("data: hello\n\n");
                                     task<> holding = hold(by);
                                     co_await std::move(holding);
                                   });
         });
       },
       way::asked::plain,
       true,
       true},
  };
}

// WebSockets, and a file.
std::vector<way> sockets_and_files() {
  return {
      {"a WebSocket that receives",
       {"response::websocket", "websocket_function"},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::websocket([by](http::websocket& peer) -> task<> {
             const struct told {
               event at;
               ~told() { at.set(); }
             } at_end{by.ended};
             by.begun.set();
             try {
               static_cast<void>(co_await peer.receive());
             } catch (const io_error&) {  // the client has reset the connection
             }
           });
         });
       },
       way::asked::socket,
       true,
       true},
      {"a WebSocket that only sends",
       {},
       [](router& to, held by, const std::string&) {
         to.get("/", [by] {
           return response::websocket([by](http::websocket& peer) -> task<> {
             co_await peer.send("hello");
             task<> holding = hold(by);
             co_await std::move(holding);
           });
         });
       },
       way::asked::socket,
       true,
       true},
      {"a file",
       {"response::file"},
       [](router& to, held, const std::string& path) {
         to.get("/", [path]() -> task<response> {
           const file from = co_await file::open(path);
           co_return response::file(from, 0, 20'000'000, "text/plain");
         });
       },
       way::asked::plain,
       true,
       false,
       false},
  };
}

const std::vector<way>& ways() {
  static const std::vector<way> all = [] {
    std::vector<way> found = handlers();
    for (auto more : {streamed_bodies, event_streams, sockets_and_files}) {
      for (way& one : more()) found.push_back(std::move(one));
    }
    return found;
  }();
  return all;
}

// ---- clients ----

std::string h1_request(way::asked asks) {
  const std::string head = " / HTTP/1.1\r\nHost: good.test\r\nAccept-Encoding: gzip\r\n";
  if (asks == way::asked::body) return "POST" + head + "Content-Length: 100\r\n\r\nhalf";
  if (asks == way::asked::plain) return "GET" + head + "\r\n";
  return "GET" + head +
         "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
}
std::string h2_request(way::asked asks) {
  const h2::field_pair coding{"accept-encoding", "gzip"};
  if (asks == way::asked::body)
    return h2::ask(1, h2::post("/", {coding}), false) + h2::frame_of(h2::data, 0, 1, "half");
  if (asks == way::asked::plain) return h2::ask(1, h2::get("/", {coding}));
  return h2::ask(1,
                 {{":method", "CONNECT"},
                  {":protocol", "websocket"},
                  {":scheme", "http"},
                  {":path", "/"},
                  {":authority", "a"},
                  {"sec-websocket-version", "13"}},
                 false);
}

// A client that asks, reads what comes until the function has begun, and goes.
class visitor {
 public:
  visitor(protocol by, tcp_stream&& over) : by_(by), plain_(std::move(over)) {}
  task<> ask(way::asked asks) {
    if (by_ == protocol::h1_tls) {
      static const tls_context trust = tls_context::client(trusting_it());
      secret_.emplace(tls_stream::client(trust, std::move(plain_), std::string("good.test")));
      co_await secret_->handshake();
      const std::string bytes = h1_request(asks);
      co_await secret_->write_all(bytes);
    } else {
      std::string bytes = h1_request(asks);
      if (by_ == protocol::h2) bytes = h2::hello + h2_request(asks);
      co_await plain_.write_all(bytes);
    }
  }
  // The simulated network may have room for no more than 100 bytes.
  task<> read_until(event begun) {
    const auto body = [&](task_scope& both) -> task<> {
      both.spawn(rest());
      co_await begun.wait();
      both.cancel();
    };
    co_await scope(body);
  }
  task<> go(ending how) {
    if (how == ending::rst_stream) {
      const std::string bytes = h2::frame_of(h2::rst_stream, 0, 1, h2::number(h2::cancel, 4));
      co_await plain_.write_all(bytes);
    } else if (how == ending::goaway) {
      const std::string bytes = h2::frame_of(h2::goaway, 0, 0, h2::number(0, 8));
      co_await plain_.write_all(bytes);
    } else if (how == ending::half_close && secret_) {
      co_await secret_->shutdown();
    } else if (how == ending::half_close) {
      plain_.shutdown_write();
    } else {
      if (how == ending::reset) {
        const int fd = secret_ ? secret_->fd() : plain_.fd();
        EXPECT_EQ(io::current_kernel().set_option(fd, SOL_SOCKET, SO_LINGER, 0), 0);
      }
      close();
    }
  }
  // Everything that comes, to the end.
  task<std::string> rest() {
    std::string all;
    std::array<char, 4096> room;
    try {
      for (;;) {
        std::size_t bytes = 0;
        if (secret_) {
          bytes = co_await secret_->read(std::span<char>(room));
        } else {
          bytes = co_await plain_.read(std::span<char>(room));
        }
        if (bytes == 0) break;
        all.append(room.data(), bytes);
        if (by_ == protocol::h2) {
          const std::string answers = answers_to(std::string_view(room.data(), bytes));
          co_await plain_.write_all(answers);
        }
      }
    } catch (const error&) {  // cut off
    }
    co_return all;
  }
  void close() {
    secret_.reset();
    if (plain_.fd() >= 0) plain_.close();
  }

 private:
  // A server that ends waits for the answer to its PING.
  std::string answers_to(std::string_view more) {
    constexpr std::size_t head_bytes = 9;
    std::string answers;
    frames_ += more;
    while (frames_.size() >= head_bytes) {
      const auto at = [this](std::size_t i) { return static_cast<unsigned char>(frames_[i]); };
      const auto bytes = head_bytes + static_cast<std::size_t>(at(0) << 16 | at(1) << 8 | at(2));
      if (frames_.size() < bytes) break;
      if (at(3) == h2::ping && (at(4) & h2::ack) == 0)
        answers +=
            h2::frame_of(h2::ping, h2::ack, 0, frames_.substr(head_bytes, bytes - head_bytes));
      frames_.erase(0, bytes);
    }
    return answers;
  }

  const protocol by_;
  std::string frames_;  // the rest of what has come, by HTTP/2
  tcp_stream plain_;
  std::optional<tls_stream> secret_;
};

class http_stream_ends : public http_conformance {
 protected:
  // Serves one way, lets a client ask and then ends the call. Returns what was wrong.
  std::string outcome(const way& one, protocol by, ending how) {
    held seen;
    router routes;
    const scratch folder;
    const std::string path =
        one.has_function ? "" : folder.put("large", std::string(20'000'000, 'x'));
    one.add(routes, seen, path);
    server_options limits;
    limits.drain_time = how == ending::drained ? std::chrono::nanoseconds(50ms) : 100s;
    http::server web(std::move(routes), limits);
    std::string wrong;
    runtime rt(options());
    rt.spawn(talk(rt, web, one, by, how, seen, wrong));
    try {
      rt.run();
    } catch (const std::exception& e) {
      wrong += std::string("run() throws: ") + e.what();
    }
    return wrong;
  }

 private:
  static task<> talk(runtime& rt, http::server web, const way& one, protocol by, ending how,
                     held seen, std::string& wrong) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    static const tls_context self = tls_context::server(served());
    future<> serving = by == protocol::h1_tls ? rt.spawn(web.serve(std::move(listener), self))
                                              : rt.spawn(web.serve(std::move(listener)));
    tcp_stream made = co_await tcp_stream::connect(at);
    visitor client(by, std::move(made));
    co_await client.ask(one.asks);
    if (one.has_function) {
      task<> reading = client.read_until(seen.begun);
      co_await std::move(reading);
    } else {
      while (web.connections() == 0) co_await sleep_for(1ms);
      co_await sleep_for(5ms);
    }
    const bool is_of_server = how == ending::stop || how == ending::drained;
    // A client that reads what is left: in a simulation it may have room for 100 bytes.
    const bool reads_on = how == ending::stop && one.ends_at_stop;
    future<std::string> left = reads_on ? spawn(client.rest()) : future<std::string>();
    if (is_of_server) {
      web.stop();
    } else {
      task<> going = client.go(how);
      co_await std::move(going);
    }
    const bool ends = how == ending::drained || (how == ending::stop && one.ends_at_stop) ||
                      (!is_of_server && how != ending::goaway && one.ends_with_client);
    task<> checking = check(web, one, ends, seen, wrong);
    co_await std::move(checking);
    seen.door.set();
    if (reads_on) {
      const std::string got = co_await std::move(left);
      if (!ends_well(got, one, by)) wrong += "the answer is cut off: " + got;
    }
    client.close();
    web.stop();
    co_await std::move(serving);
  }
  static task<> check(http::server web, const way& one, bool ends, held seen, std::string& wrong) {
    if (!one.has_function) {
      for (int i = 0; ends && web.connections() > 0 && i < 20'000; ++i) co_await sleep_for(1ms);
      if (ends && web.connections() > 0) wrong += "the connection stays";
      co_return;
    }
    bool has_ended = true;
    try {
      co_await seen.ended.wait().timeout(ends ? std::chrono::nanoseconds(20s) : 20ms);
    } catch (const timed_out&) {
      has_ended = false;
    }
    if (has_ended != ends) wrong += has_ended ? "the call was ended" : "the call was not ended";
  }
  // What a client sees at the end of an event stream or WebSocket that the server has ended.
  static bool ends_well(const std::string& got, const way& one, protocol by) {
    if (by == protocol::h2) {
      // DATA without bytes that ends stream 1, which may come with bytes of a WebSocket's close.
      const std::string end("\0\1\0\0\0\1", 6);
      return got.find(end) != std::string::npos;
    }
    if (one.asks == way::asked::socket) return got.ends_with(std::string("\x88\x02\x03\xe9", 4));
    return got.ends_with("0\r\n\r\n");
  }
};

void check_all(protocol by,
               const std::function<std::string(const way&, protocol, ending)>& outcome) {
  for (const way& one : ways()) {
    for (const ending how : {ending::close, ending::half_close, ending::reset, ending::rst_stream,
                             ending::goaway, ending::stop, ending::drained}) {
      // A file is sent to a client that still reads.
      if (!one.has_function && (how == ending::half_close || how == ending::stop ||
                                how == ending::goaway || how == ending::rst_stream))
        continue;
      if (!exists(by, how)) continue;
      EXPECT_EQ(outcome(one, by, how), "")
          << one.name << " by " << name_of(by) << ": " << name_of(how);
    }
  }
}

TEST_P(http_stream_ends, end_calls_by_http1) {
  check_all(protocol::h1,
            [this](const way& one, protocol by, ending how) { return outcome(one, by, how); });
}
TEST_P(http_stream_ends, end_calls_by_http1_over_tls) {
  check_all(protocol::h1_tls,
            [this](const way& one, protocol by, ending how) { return outcome(one, by, how); });
}
TEST_P(http_stream_ends, end_calls_by_http2) {
  check_all(protocol::h2,
            [this](const way& one, protocol by, ending how) { return outcome(one, by, how); });
}

// The table has each function by which the headers let a handler stream or hold a request.
TEST(http_stream_ends_table, has_every_way_of_the_headers) {
  std::set<std::string> covered;
  for (const way& one : ways()) covered.insert(one.covers.begin(), one.covers.end());
  // Answers whose bytes are there at once, and what clients use (client_upload_ends below).
  const std::set<std::string> others{
      "response::text",  "response::html",    "response::json",
      "response::owned", "response::view",    "response::redirect",
      "upload_function", "request::read_all", "request::read_behind_collected"};
  const std::filesystem::path folder = source_folder() / "include/troupe/http";
  int found = 0;
  const auto check = [&](const std::string& name) {
    ++found;
    EXPECT_TRUE(covered.contains(name) || others.contains(name)) << name << " is in no table";
  };
  const std::regex function(R"(using (\w+) =\s+unique_function<task<)"),
      answer(R"(\n  static response (\w+)\()"), read(R"(\n  task<std::string_view> (\w+)\()");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = scratch::text_of(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at)
      check((*at)[1]);
    if (entry.path().filename() == "response.hpp") {
      for (std::sregex_iterator at(text.begin(), text.end(), answer), end; at != end; ++at)
        check("response::" + (*at)[1].str());
    }
    if (entry.path().filename() == "request.hpp") {
      for (std::sregex_iterator at(text.begin(), text.end(), read), end; at != end; ++at)
        check("request::" + (*at)[1].str());
    }
  }
  EXPECT_GE(found, 12);
}

// ---- a client's function that sends a body ----

class client_upload_ends : public http_conformance {};

// The server closes its connection while the function waits for something else.
TEST_P(client_upload_ends, functions_end_with_their_server) {
  for (const bool is_h2 : {false, true}) {
    for (const bool says_why : {false, true}) {
      held seen;
      std::string failure, status;
      const auto serve = [is_h2, says_why](tcp_listener listener, event begun) -> task<> {
        tcp_stream peer = co_await listener.accept();
        const std::string settings = h2::settings_of({});
        std::string answer;
        if (says_why) answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
        if (says_why && is_h2) {
          answer = h2::ask(1, {{":status", "413"}}) +
                   h2::frame_of(h2::rst_stream, 0, 1, h2::number(0, 4));
        }
        const auto talk = [&](task_scope& both) -> task<> {
          both.spawn(read_to_end(peer));
          if (is_h2) co_await peer.write_all(settings);
          co_await begun.wait();
          co_await peer.write_all(answer);
          peer.shutdown_write();
        };
        co_await scope(talk);
      };
      const auto ask = [&](runtime& rt) -> task<> {
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        const endpoint at = listener.local();
        future<> serving = rt.spawn(serve(std::move(listener), seen.begun));
        http::client_options chosen;
        chosen.http2_prior_knowledge = is_h2;
        std::optional<http::client> web(chosen);
        http::client_request asked("POST", "http://127.0.0.1:" + std::to_string(at.port()) + "/");
        asked.body(
            [seen](http::upload& to) -> task<> {
              co_await to.write("words");
              task<> holding = hold(seen);
              co_await std::move(holding);
            },
            "text/plain");
        try {
          const http::client_response got = co_await web->send(std::move(asked)).timeout(20s);
          status = std::to_string(got.status());
        } catch (const timed_out&) {
          failure = "timed out";
        } catch (const error&) {
          failure = "failed";
        }
        // An idle connection by HTTP/2 need not see at once that its server has ended it.
        web.reset();
        co_await std::move(serving);
      };
      runtime rt(options());
      rt.spawn(ask(rt));
      rt.run();
      EXPECT_EQ(failure, says_why ? "" : "failed") << is_h2;
      EXPECT_EQ(status, says_why ? "413" : "") << is_h2;
      EXPECT_TRUE(seen.ended.is_set());
    }
  }
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_stream_ends);
TROUPE_HTTP_TEST_EACH(client_upload_ends);

}  // namespace troupe::test
