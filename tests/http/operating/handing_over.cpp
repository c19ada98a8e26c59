// drain(): clients lose no request when another server takes the connections over.
#include <unistd.h>

#include <atomic>

#include "http/h2/h2_peer.hpp"
#include "support/http.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http_handing_over : public http_conformance {};

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

router routes_of(const std::string& name) {
  router routes;
  routes.get("/", [name] { return response::text(name + "!"); });
  return routes;
}

TEST_P(http_handing_over, lets_an_idle_connection_ask_once_more) {
  for (const bool is_parked : {false, true}) {
    std::string got;
    bool refused_now = false;
    run(routes_of("old"), [&](runtime&, http::server web, endpoint at) -> task<> {
      tcp_stream used = co_await tcp_stream::connect(at), fresh = co_await tcp_stream::connect(at);
      co_await used.write_all(get);
      co_await read_until(used, "old!");
      while (web.connections() < 2) co_await sleep_for(1ms);
      if (is_parked) co_await sleep_for(1'200ms);
      web.drain(60s);
      // The listener is closed when no connection has come for a moment.
      while (!refused_now) {
        co_await sleep_for(10ms);
        try {
          tcp_stream late = co_await tcp_stream::connect(at);
        } catch (const io_error&) {
          refused_now = true;
        }
      }
      for (tcp_stream* one : {&used, &fresh}) {
        co_await one->write_all(get);
        got += undated(co_await read_to_end(*one));
      }
    });
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n"
        "Connection: close\r\n\r\nold!";
    EXPECT_EQ(got, answer + answer);
    EXPECT_TRUE(refused_now);
  }
}

TEST_P(http_handing_over, ends_idle_connections_after_their_time) {
  std::chrono::nanoseconds took{};
  std::string got;
  run(routes_of("old"), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream idle = co_await tcp_stream::connect(at);
    while (web.connections() < 1) co_await sleep_for(1ms);
    const auto begun = now();
    web.drain(300ms);
    got = co_await read_to_end(idle);
    took = now() - begun;
  });
  EXPECT_EQ(got, "");
  EXPECT_GE(took, 300ms);
}

TEST_P(http_handing_over, is_ended_sooner_by_stop) {
  std::string got;
  run(routes_of("old"), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream idle = co_await tcp_stream::connect(at);
    while (web.connections() < 1) co_await sleep_for(1ms);
    web.drain(1h);
    co_await sleep_for(20ms);
    web.stop();
    got = co_await read_to_end(idle);
  });
  EXPECT_EQ(got, "");
}

TEST_P(http_handing_over, tells_clients_of_http2_at_once) {
  for (const bool is_parked : {false, true}) {
    std::optional<std::uint32_t> code;
    h2::answer last;
    run(routes_of("old"), [&](runtime&, http::server web, endpoint at) -> task<> {
      auto peer = co_await h2::peer::connect(at);
      co_await peer->send(h2::ask(1, h2::get("/")));
      static_cast<void>(co_await peer->answer_to(1));
      if (is_parked) co_await sleep_for(1'200ms);
      web.drain(1h);
      // The client has not heard of it yet.
      co_await peer->send(h2::ask(3, h2::get("/")));
      last = co_await peer->answer_to(3);
      code = co_await peer->end();
    });
    EXPECT_EQ(last.body, "old!");
    EXPECT_EQ(code, h2::no_error);
  }
}

// A client that begins when the server already drains.
TEST_P(http_handing_over, tells_a_client_of_http2_that_begins_late) {
  std::optional<std::uint32_t> code;
  h2::answer last;
  run(routes_of("old"), [&](runtime&, http::server web, endpoint at) -> task<> {
    tcp_stream early = co_await tcp_stream::connect(at);
    while (web.connections() < 1) co_await sleep_for(1ms);
    web.drain(1h);
    co_await sleep_for(20ms);
    auto peer = std::make_unique<h2::peer>(std::move(early));
    co_await peer->send(h2::hello + h2::ask(1, h2::get("/")));
    last = co_await peer->answer_to(1);
    code = co_await peer->end();
  });
  EXPECT_EQ(last.body, "old!");
  EXPECT_EQ(code, h2::no_error);
}

// How clients ask one server after the other, and what became of their requests.
struct load {
  std::atomic<bool> ends{false};
  std::atomic<int> of_old{0}, of_new{0}, failed{0};

  void count(std::string_view body) {
    if (body == "old!") {
      ++of_old;
    } else if (body == "new!") {
      ++of_new;
    } else {
      ++failed;
    }
  }
};

task<> ask_on_kept(std::shared_ptr<load> all, endpoint at) {
  std::optional<tcp_stream> kept;
  while (!all->ends) {
    try {
      if (!kept) kept = co_await tcp_stream::connect(at);
      co_await kept->write_all(get);
      const std::string got = co_await read_until(*kept, "!");
      all->count(got.size() < 4 ? got : std::string_view(got).substr(got.size() - 4));
      if (got.find("Connection: close") != std::string::npos) kept.reset();
    } catch (const io_error&) {
      ++all->failed;
      kept.reset();
    }
    co_await sleep_for(1ms);
  }
}

task<> ask_by_http2(std::shared_ptr<load> all, endpoint at) {
  std::unique_ptr<h2::peer> kept;
  std::int32_t stream = 1;
  while (!all->ends) {
    try {
      if (kept == nullptr) {
        kept = co_await h2::peer::connect(at);
        stream = 1;
      }
      co_await kept->send(h2::ask(stream, h2::get("/")));
      const h2::answer got = co_await kept->answer_to(stream);
      all->count(got.body);
      stream += 2;
      if (got.goaway) kept.reset();
    } catch (const io_error&) {
      ++all->failed;
      kept.reset();
    }
    co_await sleep_for(1ms);
  }
}

TEST_P(http_handing_over, loses_no_request_under_load) {
  if (!threaded()) GTEST_SKIP() << "needs threads: shares a socket of the system";
  const auto all = std::make_shared<load>();
  runtime rt(options());
  auto both = [](runtime& in, std::shared_ptr<load> of) -> task<> {
    http::server before(routes_of("old")), after(routes_of("new"));
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    auto shared = tcp_listener::adopt(::dup(listener.fd()));
    future<> old_one = in.spawn(before.serve(std::move(listener)));
    std::vector<future<>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(in.spawn(ask_on_kept(of, at)));
      clients.push_back(in.spawn(ask_by_http2(of, at)));
    }
    while (of->of_old < 200) co_await sleep_for(1ms);
    future<> new_one = in.spawn(after.serve(std::move(shared)));
    before.drain(60s);
    co_await std::move(old_one);
    const int seen = of->of_new;
    while (of->of_new < seen + 200) co_await sleep_for(1ms);
    of->ends = true;
    for (auto& one : clients) co_await std::move(one);
    after.stop();
    co_await std::move(new_one);
  };
  rt.spawn(both(rt, all));
  rt.run();
  EXPECT_EQ(all->failed, 0);
  EXPECT_GE(all->of_old, 200);
  EXPECT_GE(all->of_new, 200);
}

TROUPE_HTTP_TEST_EACH(http_handing_over);

}  // namespace
}  // namespace troupe::test
