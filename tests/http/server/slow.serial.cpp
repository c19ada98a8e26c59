// Peers that send their requests, or read their answers, byte by byte: other peers hardly notice
// them.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "support/http.hpp"
#include "support/timing.hpp"

extern char** environ;

namespace troupe::test {
namespace {

using http::response;
using http::router;

// A server in a thread of its own, for as long as the object exists.
class serving {
 public:
  explicit serving(io_backend by) {
    std::promise<endpoint> bound;
    std::future<endpoint> at = bound.get_future();
    thread_ = std::thread([this, by, &bound] {
      runtime rt({.workers = 2, .io = by});
      auto serve = [](http::server web, std::promise<endpoint>& where) -> task<> {
        auto listener = tcp_listener::listen(endpoint::loopback(0));
        where.set_value(listener.local());
        co_await web.serve(std::move(listener));
      };
      rt.spawn(serve(web_, bound));
      rt.run();
    });
    at_ = at.get();
  }
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;
  ~serving() {
    web_.stop();
    thread_.join();
  }
  const endpoint& at() const noexcept { return at_; }
  std::size_t connections() const { return web_.connections(); }

 private:
  static router routes() {
    router made;
    made.get("/", [] { return response::text("hello"); });
    made.get("/large", [] { return response::text(std::string(1024 * 1024, 'x')); });
    made.post("/body", [](const http::request& asked) {
      return response::text(std::to_string(asked.body().size()));
    });
    return made;
  }
  static http::server_options limits() {
    http::server_options made;
    made.drain_time = 100ms;
    return made;
  }
  http::server web_{routes(), limits()};
  endpoint at_;
  std::thread thread_;
};

class plain_socket {
 public:
  explicit plain_socket(const endpoint& at, int receive_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const timeval most{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (::connect(fd_, at.data(), at.size()) != 0) std::abort();
  }
  plain_socket(plain_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~plain_socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  // Ignores the result: a server may have closed the connection.
  void send(std::string_view bytes) const {
    static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void take_one() const {
    char one = 0;
    static_cast<void>(::recv(fd_, &one, 1, MSG_DONTWAIT));
  }
  bool hears(std::string_view end) const {
    std::string got;
    std::array<char, 1000> buffer;
    while (!got.ends_with(end)) {
      const ssize_t bytes = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (bytes <= 0) return false;
      got.append(buffer.data(), static_cast<std::size_t>(bytes));
    }
    return true;
  }

 private:
  int fd_;
};

// Returns the 99th percentile of the time that a healthy client waits for an answer. The client
// connects anew from time to time.
nanoseconds p99_of(const endpoint& at, int requests) {
  std::vector<nanoseconds> each;
  int errors = 0;
  while (static_cast<int>(each.size()) < requests) {
    const plain_socket peer(at);
    for (int i = 0; i < 20; ++i) {
      const auto began = clock::now();
      peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      if (!peer.hears("hello")) ++errors;
      each.push_back(clock::now() - began);
    }
  }
  EXPECT_EQ(errors, 0);
  std::ranges::sort(each);
  return each[each.size() * 99 / 100];
}

// A third of the clients send a head, a third send a body byte by byte, and a third read their
// answers byte by byte.
class slow_clients {
 public:
  slow_clients(const endpoint& at, int count) {
    for (int i = 0; i < count; ++i) {
      all_.emplace_back(at, i % 3 == 2 ? 2'048 : 0);
      if (i % 3 == 0) all_.back().send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
      if (i % 3 == 1)
        all_.back().send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
      if (i % 3 == 2) all_.back().send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    thread_ = std::jthread([this](std::stop_token end) {
      for (std::size_t next = 0; !end.stop_requested(); next = (next + 1) % all_.size()) {
        if (next % 3 == 2) {
          all_[next].take_one();
        } else {
          all_[next].send("x");
        }
        const timespec pause{0, 500'000};
        ::nanosleep(&pause, nullptr);  // sleeps: these clients are slow
      }
    });
  }

 private:
  std::vector<plain_socket> all_;
  std::jthread thread_;  // is destroyed first
};

class http_slow : public testing::TestWithParam<io_backend> {
 protected:
  void SetUp() override {
    const char* forced = std::getenv("TROUPE_POLICY");
    if (forced != nullptr && *forced != '\0') GTEST_SKIP() << "TROUPE_POLICY is set: real time";
  }
  static bool is_deep() { return std::getenv("TROUPE_DEEP") != nullptr; }
  static void say(const char* with, nanoseconds base, nanoseconds beside) {
    std::printf("p99 of healthy clients: %lld us alone, %lld us beside %s\n",
                static_cast<long long>(base.count() / 1000),
                static_cast<long long>(beside.count() / 1000), with);
  }
};

// Noise makes waits longer, never shorter: one good attempt is enough.
constexpr int tries_max = 8;
constexpr auto unnoticed = std::chrono::microseconds(200);

TEST_P(http_slow, healthy_clients_hardly_notice_slow_ones) {
  const serving web(GetParam());
  const int slow_count = is_deep() ? 900 : 150, requests = is_deep() ? 20'000 : fewer(1'000);
  bool held = false;
  for (int i = 0; i < tries_max && !held; ++i) {
    const nanoseconds base = p99_of(web.at(), requests);
    const slow_clients others(web.at(), slow_count);
    while (web.connections() < static_cast<std::size_t>(slow_count)) std::this_thread::yield();
    const nanoseconds beside = p99_of(web.at(), requests);
    EXPECT_GE(web.connections(), static_cast<std::size_t>(slow_count)) << "none was sent away";
    say("slow ones of our own", base, beside);
    held = beside <= std::max<nanoseconds>(2 * base, unnoticed);
  }
  EXPECT_TRUE(held);
}

// The well-known tool slowhttptest, in each of its modes.
TEST_P(http_slow, healthy_clients_hardly_notice_slowhttptest) {
  if (!is_deep()) GTEST_SKIP() << "needs --deep: takes a minute";
  if (::access("/usr/bin/slowhttptest", X_OK) != 0) GTEST_SKIP() << "needs slowhttptest";
  const serving web(GetParam());
  const std::string url = "http://127.0.0.1:" + std::to_string(web.at().port());
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{"-H", "-u", url + "/"},
        {"-B", "-u", url + "/body", "-s", "100000"},
        {"-X", "-u", url + "/large", "-w", "10", "-y", "20", "-z", "1"}}) {
    bool held = false;
    for (int i = 0; i < tries_max && !held; ++i) {
      const nanoseconds base = p99_of(web.at(), 20'000);
      std::vector<std::string> command{"slowhttptest", "-c", "800", "-r", "800", "-i", "1",
                                       "-l",           "8",  "-v",  "0"};
      command.insert(command.end(), mode.begin(), mode.end());
      std::vector<char*> arguments;
      for (std::string& one : command) arguments.push_back(one.data());
      arguments.push_back(nullptr);
      posix_spawn_file_actions_t quiet_output;
      ::posix_spawn_file_actions_init(&quiet_output);
      ::posix_spawn_file_actions_addopen(&quiet_output, 1, "/dev/null", O_WRONLY, 0);
      pid_t tool = 0;
      ASSERT_EQ(
          ::posix_spawnp(&tool, arguments[0], &quiet_output, nullptr, arguments.data(), environ),
          0);
      ::posix_spawn_file_actions_destroy(&quiet_output);
      const auto until = clock::now() + 6s;
      while (web.connections() < 700 && clock::now() < until) std::this_thread::yield();
      const std::size_t attached = web.connections();
      const nanoseconds beside = p99_of(web.at(), 20'000);
      ::kill(tool, SIGTERM);
      ::waitpid(tool, nullptr, 0);
      EXPECT_GE(attached, 700u) << mode[0];
      say(("slowhttptest " + mode[0]).c_str(), base, beside);
      held = beside <= std::max<nanoseconds>(2 * base, unnoticed);
    }
    EXPECT_TRUE(held) << mode[0];
  }
}

INSTANTIATE_TEST_SUITE_P(backends, http_slow,
                         ::testing::Values(io_backend::epoll, io_backend::io_uring),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test
