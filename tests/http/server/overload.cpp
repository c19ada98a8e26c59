// When descriptors run out, the server waits without spinning, ends idle connections to free some,
// and recovers.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <thread>

#include "support/http.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using http::response;
using http::router;
using namespace std::chrono_literals;

class http_overload : public testing::TestWithParam<io_backend> {};

// The client's descriptor is made beforehand, so that only the server runs out of them.
class plain_client {
 public:
  plain_client() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval most{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  }
  plain_client(plain_client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~plain_client() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(const endpoint& at, std::string_view bytes) const {
    if (::connect(fd_, at.data(), at.size()) != 0) std::abort();
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) std::abort();
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

// No descriptor may get this number or a higher one.
class scoped_limit {
 public:
  explicit scoped_limit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~scoped_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::chrono::microseconds cpu_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

const std::string_view quick = "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                       slow = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_P(http_overload, without_descriptors_idle_connections_make_room_and_busy_ones_are_waited_for) {
  constexpr int room = 8, clients = 40;
  const int before = open_files();
  {
    troupe::event door;
    router routes;
    routes.get("/", [] { return response::text("hello"); });
    routes.get("/slow", [door]() -> task<response> {
      co_await door.wait();
      co_return response::text("waited");
    });
    http::server web(std::move(routes));
    runtime_options options;
    options.workers = 2;
    options.io = GetParam();
    runtime rt(options);
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    rt.spawn(web.serve(std::move(listener)));
    int heard = 0, heard_late = 0;
    std::chrono::microseconds used{};
    std::thread asking([&, open = rt.hold()] {
      {
        const plain_client first;  // from here on everything else that the runtime opens is open
        first.send(at, quick);
        static_cast<void>(first.hears("hello"));
      }
      while (web.connections() > 0) std::this_thread::yield();
      std::vector<plain_client> idle(clients), busy(clients);
      {
        const int next = ::dup(0);
        ::close(next);
        const scoped_limit limit(static_cast<rlim_t>(next + room));
        for (const plain_client& one : idle) {
          one.send(at, quick);
          if (one.hears("hello")) ++heard;
        }
        for (const plain_client& one : busy) one.send(at, slow);
        while (web.connections() < room) std::this_thread::yield();
        const auto cpu = cpu_time();
        // sleeps: the test is that the server is quiet meanwhile
        std::this_thread::sleep_for(300ms);
        used = cpu_time() - cpu;
        door.set();
        for (const plain_client& one : busy) {
          if (one.hears("waited")) ++heard_late;
        }
      }
      web.stop();
    });
    rt.run();
    asking.join();
    EXPECT_EQ(heard, clients);
    EXPECT_EQ(heard_late, clients);
    EXPECT_LT(used, 100ms);
  }
  EXPECT_EQ(open_files(), before);
}

INSTANTIATE_TEST_SUITE_P(backends, http_overload,
                         testing::Values(io_backend::epoll, io_backend::io_uring),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test
