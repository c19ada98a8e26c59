// A soak: requests, uploads and WebSockets by HTTP/1.1 and HTTP/2, over TLS, through a bad network,
// again and again over the same server and the same clients. Nothing is left of any round.
#include "http/client/scripted.hpp"
#include "http/secure/https.hpp"
#include "support/chaos_proxy.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int rounds = 40, tasks_at_once = 4;

http::router soak_routes() {
  http::router made;
  made.get("/n/{number}", [](int number) { return http::response::text(std::to_string(number)); });
  made.post("/echo", [](http::request& asked) -> task<http::response> {
    const std::string_view body = co_await asked.read_all();
    co_return http::response::text(std::string(body));
  });
  made.get("/chat", [] {
    return http::response::websocket([alive = counted()](http::websocket& peer) -> task<> {
      while (const auto said = co_await peer.receive()) {
        std::string text(said->data);
        co_await peer.send(std::move(text));
      }
    });
  });
  return made;
}

struct soak_counts {
  std::atomic<int> right{0}, failed{0};
};

void judge_soak(const std::string& got, const std::string& wanted, soak_counts& seen) {
  ++(got == wanted ? seen.right : seen.failed);
  // What a bad network may do is an error with a type, or what a server says to a part of a
  // request.
  const bool is_other_answer = got.starts_with("200 ") && got != wanted;
  EXPECT_FALSE(is_other_answer) << got.substr(0, 100);
}

task<std::string> talk(http::client web, std::string url) {
  try {
    const auto peer = co_await web.websocket(url).timeout(2s);
    co_await peer->send("hello");
    const auto said = co_await peer->receive();
    std::string got = said ? "200 " + std::string(said->data) : "closed";
    if (said) co_await peer->close();
    co_return got;
  } catch (const error&) {
    co_return "failed";
  }
}

task<> soak_one(http::client web, std::string url, int number, soak_counts& seen) {
  const std::string n = std::to_string(number), posted(3'000, 'p');
  const std::string got = co_await outcome_of(web.get(url + "/n/" + n));
  judge_soak(got, "200 " + n, seen);
  const std::string echoed = co_await outcome_of(web.post(url + "/echo", posted, "text/plain"));
  judge_soak(echoed, "200 " + posted, seen);
  const std::string said = co_await talk(web, url + "/chat");
  judge_soak(said, "200 hello", seen);
}

http::client_options soak_client(const authority& root, bool by_2) {
  http::client_options made;
  made.connect_time = made.head_time = made.write_time = made.body_grace = 200ms;
  made.http2.is_on = by_2;
  made.tls.ca_pem = root.certificate();
  return made;
}

class http_soak : public client_conformance {};

TEST_P(http_soak, nothing_is_left_of_what_went_wrong) {
  static const authority root("the authority");
  static const identity own = root.issue({.names = "IP:127.0.0.1"});
  const int before = open_files();
  soak_counts seen;
  {
    runtime rt(options());
    const auto all = [&]() -> task<> {
      http::server_options limits;
      limits.head_time = limits.body_grace = limits.idle_time = limits.write_time = 200ms;
      http::server server(soak_routes(), limits);
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      tls_options self = showing(own);
      self.alpn = tls_options::https().alpn;
      chaos_proxy proxy(listener.local(), chaos::mixed, GetParam().on.seed + 7, 6'000);
      proxy.start(rt);
      const tls_context secret = tls_context::server(self);
      future<> serving = rt.spawn(server.serve(std::move(listener), secret));
      const http::client by_1(soak_client(root, false)), by_2(soak_client(root, true));
      const std::string url = "https://127.0.0.1:" + std::to_string(proxy.at().port());
      for (int round = 0; round < rounds; ++round) {
        const auto several = [&](task_scope& in) -> task<> {
          for (int i = 0; i < tasks_at_once; ++i)
            in.spawn(soak_one(i % 2 == 0 ? by_1 : by_2, url, round * tasks_at_once + i, seen));
          co_return;
        };
        co_await scope(several);
      }
      by_1.close_idle();
      by_2.close_idle();
      co_await proxy.join();
      EXPECT_EQ(proxy.seen.live.load(), 0);
      EXPECT_GT(proxy.seen.faults.load(), 0);
      server.stop();
      co_await std::move(serving);
      EXPECT_EQ(server.connections(), 0u);
    };
    rt.spawn(all());
    rt.run();
  }
  EXPECT_GT(seen.right.load(), 0);
  EXPECT_GT(seen.failed.load(), 0);
  EXPECT_EQ(seen.right + seen.failed, 3 * rounds * tasks_at_once);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(live.load(), 0);
}

}  // namespace

TROUPE_CLIENT_TEST_EACH(http_soak);

}  // namespace troupe::test
