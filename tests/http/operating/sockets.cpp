// The listeners of a server: Unix sockets, ports that several listeners share, and how connections
// spread over workers.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "support/http.hpp"
#include "support/scratch.hpp"
#include "troupe/io/unix_socket.hpp"

namespace troupe::test {
namespace {

using http::request;
using http::response;
using http::router;
using http::server_options;
using namespace std::chrono_literals;

class http_listeners : public http_conformance {
 protected:
  void SetUp() override {
    http_conformance::SetUp();
    if (!threaded()) GTEST_SKIP() << "needs threads: the sockets are the system's";
  }
};

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string get_last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

// Leaves the file of a listener that has gone.
void leave_file(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ::close(dead);
}

task<std::string> exchange_near(std::string path, std::string bytes) {
  unix_stream peer = unix_stream::connect(path);
  std::string got;
  co_await peer.write_all(std::move(bytes));
  std::array<char, 1000> part;
  for (;;) {
    const std::size_t count = co_await peer.read(part);
    if (count == 0) break;
    got.append(part.data(), count);
  }
  co_return got;
}

TEST_P(http_listeners, of_unix_sockets_serve_with_the_limits_of_the_server) {
  const scratch folder;
  const std::string path = folder / "socket";
  leave_file(path);
  router routes;
  routes.get("/", [](const request& asked) {
    return response::text(asked.has_peer() || asked.client() ? "an address" : "no address");
  });
  routes.post("/", [](const request& asked) { return response::text(std::string(asked.body())); });
  server_options limits;
  limits.body_bytes = 10;
  limits.connections_per_peer = 1;  // clients without an address are not one client
  http::server web(std::move(routes), limits);
  listen_options options;
  options.permissions = 0600;
  std::string first, second, large;
  mode_t mode = 0;
  auto both = [&](runtime& rt) -> task<> {
    future<> serving = rt.spawn(web.serve(unix_listener::listen(path, options)));
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    mode = found.st_mode & 07777;
    unix_stream idle = unix_stream::connect(path);
    first = undated(co_await exchange_near(path, get + get_last));
    second = co_await exchange_near(path,
                                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"
                                    "Connection: close\r\n\r\n0123456789");
    large =
        co_await exchange_near(path, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    web.stop();
    co_await std::move(serving);
  };
  runtime rt(this->options());
  rt.spawn(both(rt));
  rt.run();
  EXPECT_EQ(mode, 0600u);
  EXPECT_NE(first.find("no address", first.find("no address") + 1), std::string::npos) << first;
  EXPECT_TRUE(second.ends_with("0123456789")) << second;
  EXPECT_TRUE(large.starts_with("HTTP/1.1 413")) << large;
  struct stat found {};
  EXPECT_NE(::stat(path.c_str(), &found), 0) << "the file stays behind";
}

// As two processes do it. The system chooses a listener by the client's port.
TEST_P(http_listeners, that_share_a_port_get_connections_each) {
  std::set<char> seen;
  auto program = [&](runtime& rt) -> task<> {
    std::vector<http::server> both;
    for (const char* name : {"a", "b"}) {
      router routes;
      routes.get("/", [name] { return response::text(name); });
      both.emplace_back(std::move(routes));
    }
    listen_options shared;
    shared.reuse_port = true;
    auto first = tcp_listener::listen(endpoint::loopback(0), shared);
    const endpoint at = first.local();
    auto second = tcp_listener::listen(at, shared);
    EXPECT_THROW(tcp_listener::listen(at), io_error) << "one of them does not share";
    std::vector<future<>> serving;
    serving.push_back(rt.spawn(both[0].serve(std::move(first))));
    serving.push_back(rt.spawn(both[1].serve(std::move(second))));
    for (int i = 0; i < 1'000 && (i < 20 || seen.size() < 2); ++i) {
      const std::string got = co_await exchange(at, get_last);
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200")) << got;
      if (!got.empty()) seen.insert(got.back());
    }
    for (const http::server& one : both) one.stop();
    for (auto& one : serving) co_await std::move(one);
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  EXPECT_EQ(seen, (std::set{'a', 'b'}));
}

// One listener is enough for all workers: a connection is a task, which an idle worker takes.
TEST_P(http_listeners, give_connections_to_all_workers) {
  if (GetParam().on.workers < 2) GTEST_SKIP() << "needs several workers: there is one worker";
  std::mutex mutex;
  std::set<std::thread::id> seen;
  const auto are_all_seen = [&] {
    std::lock_guard lock(mutex);
    return seen.size() == GetParam().on.workers;
  };
  router routes;
  routes.get("/", [&] {
    {
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    const auto until = std::chrono::steady_clock::now() + 200us;
    while (std::chrono::steady_clock::now() < until) {
    }
    return response::text("!");
  });
  const auto ask = [&](endpoint at) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (!are_all_seen() && std::chrono::steady_clock::now() < until) {
      co_await peer.write_all(get);
      co_await read_until(peer, "!");
    }
  };
  run(std::move(routes), [&](runtime& rt, http::server, endpoint at) -> task<> {
    std::vector<future<>> clients;
    for (int i = 0; i < 16; ++i) clients.push_back(rt.spawn(ask(at)));
    for (auto& one : clients) co_await std::move(one);
  });
  EXPECT_TRUE(are_all_seen());
}

TROUPE_HTTP_TEST_EACH(http_listeners);

}  // namespace
}  // namespace troupe::test
