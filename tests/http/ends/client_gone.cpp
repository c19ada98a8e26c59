// Which client asks, and whether it is still there: request::peer() and request::client_gone().
#include <sys/socket.h>

#include <chrono>
#include <optional>

#include "io/sockets/sockets.hpp"
#include "support/counted.hpp"
#include "support/http.hpp"
#include "support/scratch.hpp"
#include "tls/certificates.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/tls/stream.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using namespace std::chrono_literals;

class http_client_gone : public http_conformance {};

const std::string wait_for_me = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

// What the handlers have seen.
struct seen {
  std::atomic<int> begun{0}, gone{0}, stayed{0};
  event started, noticed, go_on;
};

// "/wait" waits until its client has gone or until the test lets it continue. So does the function
// that "/stream" streams from.
router waiting(seen& by) {
  const auto wait = [&by](std::stop_token gone) -> task<> {
    const counted alive;
    ++by.begun;
    by.started.set();
    bool is_gone = false;
    try {
      co_await by.go_on.wait().stop(gone);
    } catch (const cancelled&) {
      if (!gone.stop_requested()) throw;
      is_gone = true;
    }
    ++(is_gone ? by.gone : by.stayed);
    by.noticed.set();
  };
  router routes;
  routes.get("/wait", [wait](const request& asked) -> task<response> {
    co_await wait(asked.client_gone());
    co_return response::text("waited");
  });
  routes.post("/wait", [wait](request& asked) -> task<response> {
    const std::stop_token gone = asked.client_gone();
    const std::string_view body = co_await asked.read_all();
    co_await wait(gone);
    co_return response::text(std::string(body));
  });
  const auto stream = [wait](std::stop_token gone) {
    return response::stream("text/plain", [wait, gone](http::body_writer& to) -> task<> {
      co_await to.write("begun");
      co_await wait(gone);
    });
  };
  routes.get("/stream", [stream](const request& asked) { return stream(asked.client_gone()); });
  // Neither handler reads the body of its request.
  routes.post("/unread", [wait](const request& asked) -> task<response> {
    co_await wait(asked.client_gone());
    co_return response::text("waited");
  });
  routes.post("/stream", [stream](const request& asked) -> task<response> {
    response answer = stream(asked.client_gone());
    co_return answer;
  });
  routes.get("/plain", [](const request& asked) {
    return response::text(asked.client_gone().stop_requested() ? "gone" : "there");
  });
  routes.post("/plain", [](const request& asked) {
    return response::text(asked.client_gone().stop_requested() ? "gone" : "there");
  });
  return routes;
}

TEST_P(http_client_gone, a_handler_hears_of_a_client_that_closes) {
  for (const std::string& asked :
       {wait_for_me, std::string("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"),
        std::string("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    seen by;
    run(waiting(by), [&](runtime&, http::server, endpoint at) -> task<> {
      {
        tcp_stream peer = co_await tcp_stream::connect(at);
        const std::size_t half = asked.size() - 2;
        co_await peer.write_all(std::string_view(asked).substr(0, half));
        co_await sleep_for(1ms);
        co_await peer.write_all(std::string_view(asked).substr(half));
        if (asked.find("/stream") != std::string::npos) {
          // The simulated network keeps little that is not read.
          task<std::string> reading = read_until(peer, "begun");
          static_cast<void>(co_await std::move(reading));
        }
        co_await by.started.wait();
      }
      co_await by.noticed.wait();
    });
    EXPECT_EQ(by.gone.load(), 1) << asked;
    EXPECT_EQ(by.stayed.load(), 0) << asked;
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(http_client_gone, a_handler_that_gives_up_is_no_failure) {
  std::atomic<int> ended{0};
  event started, noticed, never;
  struct last {
    std::atomic<int>& count;
    event& told;
    ~last() {
      ++count;
      told.set();
    }
  };
  router routes;
  routes.get("/wait", [&](const request& asked) -> task<response> {
    const last one{ended, noticed};
    started.set();
    co_await never.wait().stop(asked.client_gone());
    co_return response();
  });
  run(std::move(routes), [&](runtime&, http::server web, endpoint at) -> task<> {
    {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(wait_for_me);
      co_await started.wait();
    }
    co_await noticed.wait();
    while (web.connections() > 0) co_await sleep_for(1ms);
  });  // otherwise run() would throw what the handler has thrown
  EXPECT_EQ(ended.load(), 1);
}

TEST_P(http_client_gone, a_handler_hears_of_a_connection_that_is_reset) {
  seen by;
  http::server_options limits;
  limits.half_close_is_gone = false;  // a reset counts all the same
  run(
      waiting(by),
      [&](runtime&, http::server, endpoint at) -> task<> {
        {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(wait_for_me);
          co_await by.started.wait();
          EXPECT_EQ(io::current_kernel().set_option(peer.fd(), SOL_SOCKET, SO_LINGER, 0), 0);
        }
        co_await by.noticed.wait();
      },
      limits);
  EXPECT_EQ(by.gone.load(), 1);
}

TEST_P(http_client_gone, a_half_close_counts_unless_it_is_not_to_and_is_answered) {
  for (const bool counts : {true, false}) {
    seen by;
    http::server_options limits;
    limits.half_close_is_gone = counts;
    std::string got;
    run(
        waiting(by),
        [&](runtime&, http::server, endpoint at) -> task<> {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(wait_for_me);
          co_await by.started.wait();
          peer.shutdown_write();
          if (!counts) {
            co_await sleep_for(5ms);
            by.go_on.set();
          }
          task<std::string> reading = read_to_end(peer);
          got = co_await std::move(reading);
        },
        limits);
    EXPECT_TRUE(got.ends_with("waited")) << got;
    EXPECT_EQ(by.gone.load(), counts ? 1 : 0);
    EXPECT_EQ(by.stayed.load(), counts ? 0 : 1);
  }
}

TEST_P(http_client_gone, who_stays_is_served_on_the_same_connection_also_when_it_asks_ahead) {
  seen by;
  by.go_on.set();
  std::string got;
  run(waiting(by), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    for (int i = 0; i < 10; ++i) {
      co_await peer.write_all(wait_for_me);
      task<std::string> one = read_until(peer, "waited");
      static_cast<void>(co_await std::move(one));
    }
    by.go_on.reset();
    by.started.reset();
    co_await peer.write_all(wait_for_me);
    co_await by.started.wait();
    // The client is still there, and sends another request.
    co_await peer.write_all("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await sleep_for(5ms);
    by.go_on.set();
    task<std::string> both = read_until(peer, "there");
    got = co_await std::move(both);
    // A plain handler may ask, too.
    for (int i = 0; i < 3; ++i) {
      co_await peer.write_all("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
      task<std::string> one = read_until(peer, "there");
      static_cast<void>(co_await std::move(one));
    }
  });
  EXPECT_NE(got.find("waited"), std::string::npos) << got;
  EXPECT_EQ(by.gone.load(), 0);
  EXPECT_EQ(by.stayed.load(), 11);
}

TEST_P(http_client_gone, a_client_that_goes_in_the_middle_of_its_body_has_gone) {
  std::atomic<int> gone{0};
  router routes;
  routes.post("/", [&](request& asked) -> task<response> {
    const std::stop_token token = asked.client_gone();
    try {
      co_await asked.read_all();
    } catch (const error&) {
      gone += token.stop_requested() ? 1 : 0;
      throw;
    }
    co_return response();
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    task<std::string> asking = [](endpoint to) -> task<std::string> {
      tcp_stream peer = co_await tcp_stream::connect(to);
      co_await peer.write_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
      peer.shutdown_write();
      co_return co_await read_to_end(peer);
    }(at);
    static_cast<void>(co_await std::move(asking));
  });
  EXPECT_EQ(gone.load(), 1);
}

// The program ends while a handler waits for its client to go.
TEST_P(http_client_gone, a_watch_may_be_stopped_in_flight) {
  seen by;
  {
    runtime rt(options());
    auto talk = [](runtime& in, http::server web, event started) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      in.spawn(web.serve(std::move(listener)));
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all(wait_for_me);
      co_await started.wait();
      in.stop();
      event never;
      co_await never.wait();
    };
    rt.spawn(talk(rt, http::server(waiting(by)), by.started));
    rt.run();
  }
  EXPECT_EQ(by.begun.load(), 1);
  EXPECT_EQ(live.load(), 0);
}

// What a client sends after a request, and how it closes, without having read all of the answer.
struct goodbye {
  std::string asked, more;
  // It first reads the beginning of the answer, and leaves its last bytes unread.
  bool reads = false;
  bool half_first = false;  // it ends its sending half before it closes
};

// Unread bytes hide neither the end of what the client sends nor a reset.
TEST_P(http_client_gone, bytes_that_nobody_has_read_hide_no_end) {
  const std::string next = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string unread = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n";
  const std::string streams = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string forty(40, 'b');
  for (const goodbye& one :
       {goodbye{wait_for_me, next}, goodbye{wait_for_me, "G"}, goodbye{streams, next, true},
        goodbye{unread, ""}, goodbye{unread, forty}, goodbye{unread, "a part"},
        goodbye{unread + forty, ""}, goodbye{unread + forty, next},
        goodbye{"POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n", forty + next,
                true}}) {
    seen by;
    run(waiting(by), [&](runtime&, http::server, endpoint at) -> task<> {
      {
        tcp_stream peer = co_await tcp_stream::connect(at);
        co_await peer.write_all(one.asked);
        if (one.reads) {
          task<std::string> reading = read_until(peer, "begun\r\n");
          static_cast<void>(co_await std::move(reading));
        }
        co_await by.started.wait();
        if (!one.more.empty()) co_await peer.write_all(one.more);
        co_await sleep_for(1ms);
      }
      co_await by.noticed.wait();
    });
    EXPECT_EQ(by.gone.load(), 1) << one.asked << one.more;
    EXPECT_EQ(by.stayed.load(), 0);
    EXPECT_EQ(live.load(), 0);
  }
}

// A half close does not count here. The reset that follows does, also behind unread bytes.
TEST_P(http_client_gone, a_reset_counts_after_a_half_close_and_behind_unread_bytes) {
  const std::string head = "POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n";
  http::server_options limits;
  limits.half_close_is_gone = false;
  for (const goodbye& one :
       {goodbye{"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "", true, true},
        goodbye{"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "more", true, false},
        goodbye{"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "more", true, true},
        goodbye{head, "a part", true, true}, goodbye{head, std::string(80, 'b'), true, true}}) {
    seen by;
    int before = -1;
    run(
        waiting(by),
        [&](runtime&, http::server, endpoint at) -> task<> {
          {
            tcp_stream peer = co_await tcp_stream::connect(at);
            co_await peer.write_all(one.asked);
            task<std::string> reading = read_until(peer, "beg");
            static_cast<void>(co_await std::move(reading));
            co_await by.started.wait();
            if (!one.more.empty()) co_await peer.write_all(one.more);
            if (one.half_first) peer.shutdown_write();
            co_await sleep_for(5ms);
            before = by.gone.load();
          }  // the peer closes with unread bytes, which is a reset
          co_await by.noticed.wait();
        },
        limits);
    EXPECT_EQ(before, 0);
    EXPECT_EQ(by.gone.load(), 1) << one.asked << one.more;
  }
}

// The client sends as much of a body as the network takes while the handler reads nothing of it.
TEST_P(http_client_gone, a_reset_is_heard_of_behind_a_body_that_fills_the_connection) {
  seen by;
  http::server_options limits;
  limits.body_bytes = std::size_t{1} << 30;
  std::size_t sent = 0;
  run(
      waiting(by),
      [&](runtime&, http::server, endpoint at) -> task<> {
        {
          tcp_stream peer = co_await tcp_stream::connect(at);
          co_await peer.write_all(
              "POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
          task<std::string> reading = read_until(peer, "beg");
          static_cast<void>(co_await std::move(reading));
          co_await by.started.wait();
          const std::string much(1'000'000, 'm');
          sent = co_await peer.write(much);
          try {
            for (;;) sent += co_await peer.write(much).timeout(20ms);
          } catch (const timed_out&) {
          }
        }
        co_await by.noticed.wait();
      },
      limits);
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(by.gone.load(), 1);
}

// The close comes behind the body. So the system has to take the whole body, though the handler
// does not read it.
TEST_P(http_client_gone, a_close_is_heard_of_behind_a_large_body_that_nobody_reads) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: the simulated network holds little that is not read";
  const std::string head = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
  for (const std::size_t bytes : {1'000'000u, 999'999u, 500'000u}) {
    for (const bool at_once : {false, true}) {
      seen by;
      run(waiting(by), [&](runtime&, http::server, endpoint at) -> task<> {
        {
          tcp_stream peer = co_await tcp_stream::connect(at);
          std::string sent = head;
          if (!at_once) {
            co_await peer.write_all(head);
            co_await by.started.wait();
            sent.clear();
          }
          sent.append(bytes, 'b');
          co_await peer.write_all(sent);
          co_await by.started.wait();
        }
        co_await by.noticed.wait();
      });
      EXPECT_EQ(by.gone.load(), 1) << bytes << at_once;
    }
  }
}

// A handler may ask for the token first and then read its body, in pieces and with pauses.
TEST_P(http_client_gone, a_body_is_read_while_the_client_is_watched) {
  std::atomic<int> gone{0};
  event first_piece, noticed;
  router routes;
  routes.post("/", [&](request& asked) -> task<response> {
    const std::stop_token token = asked.client_gone();
    std::string body;
    while (body.size() < 8) {
      body += co_await asked.read();
      first_piece.set();
    }
    gone += token.stop_requested() ? 100 : 0;
    event never;
    try {
      co_await never.wait().stop(token);
    } catch (const cancelled&) {
      gone += body.starts_with("halfhalf") ? 1 : 0;
    }
    noticed.set();
    co_return response();
  });
  run(std::move(routes), [&](runtime&, http::server, endpoint at) -> task<> {
    {
      tcp_stream peer = co_await tcp_stream::connect(at);
      co_await peer.write_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90\r\n\r\n");
      co_await peer.write_all("half");
      co_await first_piece.wait();
      co_await peer.write_all("half");
      co_await peer.write_all("and more");
      co_await sleep_for(5ms);
    }
    co_await noticed.wait();
  });
  EXPECT_EQ(gone.load(), 1);
}

// A plain handler may ask, too. The first request's handler has seen the end before the second
// one's begins.
TEST_P(http_client_gone, a_plain_handler_learns_whether_its_client_is_still_there) {
  seen by;
  std::string got;
  run(waiting(by), [&](runtime&, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    co_await peer.write_all(wait_for_me);
    co_await by.started.wait();
    co_await peer.write_all("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.shutdown_write();
    task<std::string> reading = read_to_end(peer);
    got = co_await std::move(reading);
  });
  EXPECT_EQ(by.gone.load(), 1);
  EXPECT_TRUE(got.ends_with("gone")) << got;
}

// A request whose body came later than its head leaves no operation behind that waits for the
// client's end.
TEST_P(http_client_gone, nothing_waits_behind_a_plain_handler_that_asked) {
  seen by;
  std::uint64_t waiting_at_last = 0;
  int there = 0;
  run(waiting(by), [&](runtime& rt, http::server, endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    for (int i = 0; i < 30; ++i) {
      co_await peer.write_all("POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
      co_await sleep_for(1ms);
      co_await peer.write_all("body");
      task<std::string> reading = read_until(peer, "there");
      there += (co_await std::move(reading)).ends_with("there") ? 1 : 0;
    }
    waiting_at_last = rt.metrics().io_in_flight;
  });
  EXPECT_EQ(there, 30);
  EXPECT_LT(waiting_at_last, 10u);
}

// Over TLS a client first announces that it sends no more, in bytes that the handler does not read.
TEST_P(http_client_gone, over_tls_a_goodbye_and_unread_bytes_hide_no_end) {
  static const authority root("the authority");
  static const identity own = root.issue();
  tls_options trust;
  trust.ca_pem = root.certificate();
  const tls_context self = tls_context::server(showing(own)), known = tls_context::client(trust);
  const std::string unread = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n";
  struct way {
    std::string asked, more;
    bool says_goodbye;
  };
  for (const way& one : {way{wait_for_me, "", true},
                         way{wait_for_me, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n", true},
                         way{wait_for_me, "G", false}, way{unread, "", true},
                         way{unread, std::string(40, 'b'), true}, way{unread, "part", false}}) {
    seen by;
    auto both = [&](runtime& in) -> task<> {
      http::server web(waiting(by));
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      future<> serving = in.spawn(web.serve(std::move(listener), self));
      {
        tcp_stream over = co_await tcp_stream::connect(at);
        tls_stream peer = tls_stream::client(known, std::move(over), "good.test");
        co_await peer.handshake();
        co_await peer.write_all(one.asked);
        co_await by.started.wait();
        if (!one.more.empty()) co_await peer.write_all(one.more);
        if (one.says_goodbye) {
          try {
            co_await peer.shutdown().timeout(2ms);  // the server does not answer the announced end
          } catch (const error&) {
          }
        }
      }
      co_await by.noticed.wait();
      web.stop();
      co_await std::move(serving);
    };
    runtime rt(options());
    rt.spawn(both(rt));
    rt.run();
    EXPECT_EQ(by.gone.load(), 1) << one.asked << one.more;
  }
}

// Over TLS the client goes with or without an announcement. Without TLS the address is that of the
// client's socket.
TEST_P(http_client_gone, over_tls_and_where_the_request_came_from) {
  static const authority root("the authority");
  static const identity own = root.issue();
  tls_options trust;
  trust.ca_pem = root.certificate();
  const tls_context self = tls_context::server(showing(own)), known = tls_context::client(trust);
  seen by;
  std::string from, mine;
  router routes = waiting(by);
  routes.get("/from", [](const request& asked) {
    return response::text("<" + asked.peer().to_string() + ">");
  });
  auto both = [&](runtime& in) -> task<> {
    http::server web(std::move(routes));
    auto plain = tcp_listener::listen(endpoint::loopback(0)),
         secret = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = plain.local(), secretly_at = secret.local();
    future<> first = in.spawn(web.serve(std::move(plain))),
             second = in.spawn(web.serve(std::move(secret), self));
    {
      tcp_stream peer = co_await tcp_stream::connect(at);
      mine += "<" + peer.local().to_string() + ">";
      co_await peer.write_all("GET /from HTTP/1.1\r\nHost: a\r\n\r\n");
      task<std::string> reading = read_until(peer, ">");
      const std::string answer = co_await std::move(reading);
      from += answer.substr(answer.find('<'));
    }
    {
      tcp_stream over = co_await tcp_stream::connect(secretly_at);
      mine += "<" + over.local().to_string() + ">";
      tls_stream peer = tls_stream::client(known, std::move(over), "good.test");
      co_await peer.handshake();
      co_await peer.write_all("GET /from HTTP/1.1\r\nHost: a\r\n\r\n");
      std::string answer;
      std::array<char, 1> one;
      while (!answer.ends_with(">")) {
        const std::size_t bytes = co_await peer.read(one);
        if (bytes == 0) break;
        answer.append(one.data(), bytes);
      }
      from += answer.substr(answer.find('<'));
      co_await peer.write_all(wait_for_me);
      co_await by.started.wait();
    }
    co_await by.noticed.wait();
    web.stop();
    co_await std::move(first);
    co_await std::move(second);
  };
  runtime rt(options());
  rt.spawn(both(rt));
  rt.run();
  EXPECT_EQ(from, mine);
  EXPECT_EQ(by.gone.load(), 1);
}

TEST_P(http_client_gone, on_a_unix_socket_there_is_no_address) {
  if (!threaded()) GTEST_SKIP() << "needs threads: its sockets are the system's";
  const scratch folder;
  const std::string path = folder / "socket";
  std::string got;
  router routes;
  routes.get("/", [](const request& asked) {
    try {
      return response::text(asked.peer().to_string());
    } catch (const usage_error& e) {
      return response::text(std::string(e.what()));
    }
  });
  auto both = [&](runtime& in) -> task<> {
    http::server web(std::move(routes));
    auto listener = unix_listener::listen(path);
    future<> serving = in.spawn(web.serve(std::move(listener)));
    unix_stream peer = unix_stream::connect(path);
    co_await peer.write_all("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    std::array<char, 1000> part;
    for (;;) {
      const std::size_t bytes = co_await peer.read(part);
      if (bytes == 0) break;
      got.append(part.data(), bytes);
    }
    web.stop();
    co_await std::move(serving);
  };
  runtime rt(options());
  rt.spawn(both(rt));
  rt.run();
  EXPECT_NE(got.find("troupe: http::request::peer"), std::string::npos) << got;
}

}  // namespace

TROUPE_HTTP_TEST_EACH(http_client_gone);

}  // namespace troupe::test
