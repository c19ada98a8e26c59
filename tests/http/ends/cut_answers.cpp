// An answer that is not whole must not look whole. Where the end of the connection is the end of
// the body, only a reset can say so. docs/protocols/http_ends.md has the rule.
#include <sys/socket.h>

#include <functional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "http/secure/https.hpp"
#include "io/sockets/sockets.hpp"
#include "support/http.hpp"
#include "troupe/http/client.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

// How the end of a connection looks to its client.
struct seen_end {
  std::string got, how;
};

template <class Stream>
task<> read_rest(Stream& from, seen_end& to) {
  std::array<char, 4096> room;
  to.how = "end";
  try {
    for (;;) {
      const std::size_t bytes = co_await from.read(std::span<char>(room));
      if (bytes == 0) break;
      to.got.append(room.data(), bytes);
    }
  } catch (const tls_error& e) {
    to.how = e.reason() == tls_failure::truncated ? "truncated" : e.what();
  } catch (const io_error& e) {
    to.how = e.code() == std::errc::connection_reset ? "reset" : e.what();
  }
}

// A way in which a function stops writing its answer before the answer is whole.
struct cut {
  const char* name;
  std::function<task<>(http::body_writer&, std::binary_semaphore& seen)> write;
  bool stops = false;     // the server is stopped, and its drain time passes
  bool threaded = false;  // needs threads
  bool is_slow = false;   // the client reads only when the server has ended the connection
};

const std::vector<cut>& cuts() {
  static const std::vector<cut> all{
      {"its function throws",
       [](http::body_writer& to, std::binary_semaphore&) -> task<> {
         co_await to.write("words");
         throw http::refused(http::fault::truncated);
       }},
      {"its function throws before the first byte",
       [](http::body_writer&, std::binary_semaphore&) -> task<> {
         throw http::refused(http::fault::truncated);
         co_return;
       }},
      {"the drain time is over",
       [](http::body_writer& to, std::binary_semaphore&) -> task<> {
         co_await to.write("words");
         const event never;
         co_await never.wait();
       },
       true},
      {"the drain time is over for a function that cannot be cancelled",
       [](http::body_writer& to, std::binary_semaphore& seen) -> task<> {
         co_await to.write("words");
         auto until_seen = [&seen] { seen.acquire(); };
         co_await blocking(std::move(until_seen));
       },
       true, true},
      {"the client takes too little",
       [](http::body_writer& to, std::binary_semaphore&) -> task<> {
         const std::string much(100'000, 'x');
         for (int i = 0; i < 1000; ++i) co_await to.write(much);
       },
       false, false, true},
  };
  return all;
}

struct asked {
  const char* name;
  const char* request;
  bool secure;
  bool by_close;  // the end of the connection would be the end of the body
};
const std::vector<asked>& requests() {
  static const std::vector<asked> all{
      {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", false, true},
      {"HTTP/1.0, kept alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false, true},
      {"HTTP/1.0 over TLS", "GET / HTTP/1.0\r\n\r\n", true, true},
      {"HTTP/1.1", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, false},
      {"HTTP/1.1 over TLS", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, false},
  };
  return all;
}

class http_cut_answers : public http_conformance {
 protected:
  seen_end outcome(const cut& how, const asked& by) {
    std::binary_semaphore seen{0};
    router routes;
    routes.get("/", [&] {
      return response::stream("text/plain",
                              [&](http::body_writer& to) { return how.write(to, seen); });
    });
    server_options limits;
    limits.drain_time = 30ms;
    if (how.is_slow) limits.write_time = 30ms;
    seen_end made;
    runtime rt(options());
    rt.spawn(talk(rt, http::server(std::move(routes), limits), how, by, seen, made));
    rt.run();
    return made;
  }

 private:
  static task<> talk(runtime& rt, http::server web, const cut& how, const asked& by,
                     std::binary_semaphore& seen, seen_end& made) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    static const tls_context self = tls_context::server(served()),
                             trust = tls_context::client(trusting_it());
    future<> serving = by.secure ? rt.spawn(web.serve(std::move(listener), self))
                                 : rt.spawn(web.serve(std::move(listener)));
    tcp_stream plain = co_await tcp_stream::connect(at);
    if (by.secure) {
      tls_stream peer = tls_stream::client(trust, std::move(plain), std::string("good.test"));
      co_await peer.handshake();
      task<> talking = ask_on(peer, web, how, by, made);
      co_await std::move(talking);
    } else {
      task<> talking = ask_on(plain, web, how, by, made);
      co_await std::move(talking);
    }
    seen.release();
    web.stop();
    co_await std::move(serving);
  }
  template <class Stream>
  static task<> ask_on(Stream& peer, http::server web, const cut& how, const asked& by,
                       seen_end& made) {
    co_await peer.write_all(std::string_view(by.request));
    if (how.stops) {  // when the head has come
      std::array<char, 1> byte;
      co_await peer.read(std::span<char>(byte));
      web.stop();
    }
    while (how.is_slow && web.connections() == 0) co_await sleep_for(1ms);
    while (how.is_slow && web.connections() != 0) co_await sleep_for(1ms);
    task<> rest = read_rest(peer, made);
    co_await std::move(rest);
  }
};

TEST_P(http_cut_answers, do_not_look_whole) {
  for (const cut& how : cuts()) {
    if (how.threaded && !threaded()) continue;
    for (const asked& by : requests()) {
      const seen_end made = outcome(how, by);
      const std::string in = std::string(how.name) + " by " + by.name;
      EXPECT_FALSE(made.got.ends_with("0\r\n\r\n")) << in;
      if (by.by_close) {
        EXPECT_EQ(made.how, "reset") << in;
      } else if (by.secure) {
        EXPECT_NE(made.how, "end") << in;
      }
    }
  }
}

TEST_P(http_cut_answers, whole_answers_end_without_a_reset) {
  const cut none{"nothing", [](http::body_writer& to, std::binary_semaphore&) -> task<> {
                   for (int i = 0; i < 20; ++i) co_await to.write("many words, one after another");
                 }};
  for (const asked& by : requests()) {
    if (!by.by_close) continue;
    const seen_end made = outcome(none, by);
    EXPECT_EQ(made.how, "end") << by.name;
    EXPECT_EQ(made.got.size() - made.got.find("\r\n\r\n") - 4, 20 * 29u) << by.name;
  }
}

// ---- the client ----

struct sent {
  const char* name;
  std::string bytes;
  bool resets;
  const char* outcome;
};
const std::vector<sent>& answers() {
  static const std::vector<sent> all{
      {"HTTP/1.0, an end", "HTTP/1.0 200 OK\r\n\r\nwords", false, "200 words"},
      {"HTTP/1.0, a reset", "HTTP/1.0 200 OK\r\n\r\nwords", true, "truncated, truncated"},
      {"HTTP/1.0, a reset behind the head", "HTTP/1.0 200 OK\r\n\r\n", true,
       "truncated, truncated"},
      {"HTTP/1.1, an end", "HTTP/1.1 200 OK\r\n\r\nwords", false, "200 words"},
      {"HTTP/1.1, a reset", "HTTP/1.1 200 OK\r\n\r\nwords", true, "truncated, truncated"},
      {"a length, an end", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwords", false,
       "truncated, truncated"},
      {"a length, a reset", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwords", true,
       "truncated, truncated"},
      {"chunks, an end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n",
       false, "truncated, truncated"},
      {"chunks, a reset", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n",
       true, "truncated, truncated"},
      {"a whole answer before a reset", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwords", true,
       "200 words"},
      {"a part of a head, a reset", "HTTP/1.1 200 OK\r\nConte", true, "truncated"},
  };
  return all;
}

class http_client_cut_answers : public http_conformance {
 protected:
  std::string outcome(const sent& what) {
    std::string made;
    runtime rt(options());
    rt.spawn(ask(rt, what, made));
    rt.run();
    return made;
  }

 private:
  static task<> serve(tcp_listener listener, const sent& what) {
    tcp_stream peer = co_await listener.accept();
    static_cast<void>(co_await read_until(peer, "\r\n\r\n"));
    if (what.resets) io::current_kernel().set_option(peer.fd(), SOL_SOCKET, SO_LINGER, 0);
    co_await peer.write_all(std::string_view(what.bytes));
  }
  static task<std::string> read(http::client_response& from) {
    try {
      co_return co_await from.read_all();
    } catch (const http::client_error& e) {
      co_return e.reason() == http::client_failure::truncated ? "truncated" : e.what();
    }
  }
  static task<> ask(runtime& rt, const sent& what, std::string& made) {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    future<> serving = rt.spawn(serve(std::move(listener), what));
    const http::client web;
    try {
      http::client_response answer =
          co_await web.get("http://127.0.0.1:" + std::to_string(at.port()) + "/");
      made = co_await read(answer);
      if (made == "truncated") {  // a second read must not take it for whole
        const std::string again = co_await read(answer);
        made += ", " + again;
      } else {
        made = std::to_string(answer.status()) + " " + made;
      }
    } catch (const http::client_error& e) {
      made = e.reason() == http::client_failure::truncated ? "truncated" : e.what();
    }
    co_await std::move(serving);
  }
};

TEST_P(http_client_cut_answers, are_typed_errors) {
  for (const sent& what : answers()) EXPECT_EQ(outcome(what), what.outcome) << what.name;
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_cut_answers);
TROUPE_HTTP_TEST_EACH(http_client_cut_answers);

}  // namespace troupe::test
