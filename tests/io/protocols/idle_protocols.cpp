// How much of the program's memory an idle connection of a protocol uses, before and after data has
// passed over it.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int connections = 3'000;
constexpr long bytes_each_max = 2'048;

class io_idle_protocols : public testing::TestWithParam<io_backend> {};

long resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8)) * 1024;
  }
  return 0;
}

std::atomic<int> made{0}, heard{0};
struct shouts {
  void connection_made() { ++made; }
  std::string_view data_received(std::string_view) {
    ++heard;
    return "!";
  }
};

// Sockets that cost this process nothing but their descriptors.
class peers {
 public:
  ~peers() {
    for (const int fd : all_) ::close(fd);
  }
  void connect(const endpoint& at) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::connect(fd, at.data(), at.size()) != 0) std::abort();
    all_.push_back(fd);
  }
  void speak(int from, int to) {
    for (; from < to; ++from)
      static_cast<void>(::send(all_[static_cast<std::size_t>(from)], "x", 1, MSG_NOSIGNAL));
  }
  // Does not block the worker, which may have the answer still to write.
  task<> hear(int from, int to) {
    char answer = 0;
    for (; from < to; ++from) {
      const int fd = all_[static_cast<std::size_t>(from)];
      ssize_t got = 0;
      while ((got = ::recv(fd, &answer, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        co_await sleep_for(1ms);
      if (got != 1) std::abort();
    }
  }
  std::vector<int> all_;
};

// Runs in a process of its own, where no earlier test has left memory that can be used again.
bool costs_little(io_backend by) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  made = heard = 0;
  long before = 0, fresh = 0, spoken_on = 0;
  {
    runtime rt({.workers = 1, .io = by});
    auto program = [&](runtime& runs) -> task<> {
      std::stop_source end;
      protocol_options how;
      how.stop = end.get_token();
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      const endpoint at = listener.local();
      runs.spawn(serve_protocol<shouts>(std::move(listener), how));
      peers clients;
      clients.all_.reserve(connections);
      // The first connections allocate what a program allocates only once.
      for (int i = 0; i < 64; ++i) clients.connect(at);
      while (made != 64) co_await sleep_for(1ms);
      clients.speak(0, 64);
      while (heard != 64) co_await sleep_for(1ms);
      co_await clients.hear(0, 64);
      co_await sleep_for(5ms);
      before = resident_bytes();
      for (int i = 64; i < connections; ++i) {
        clients.connect(at);
        if (i % 32 == 0) co_await sleep_for(1ms);  // the listener's queue is short
      }
      while (made != connections) co_await sleep_for(1ms);
      co_await sleep_for(5ms);
      fresh = (resident_bytes() - before) / (connections - 64);
      for (int i = 64; i < connections; i += 64) {
        clients.speak(i, std::min(i + 64, connections));
        while (heard != std::min(i + 64, connections)) co_await sleep_for(200us);
      }
      co_await clients.hear(64, connections);
      co_await sleep_for(5ms);
      spoken_on = (resident_bytes() - before) / (connections - 64);
      end.request_stop();
    };
    rt.spawn(program(rt));
    rt.run();
  }
  std::fprintf(stderr, "%ld bytes a connection, %ld when it has been spoken on\n", fresh,
               spoken_on);
  return fresh <= bytes_each_max && spoken_on <= bytes_each_max;
}

TEST_P(io_idle_protocols, a_connection_costs_less_than_two_kilobytes) {
  if (slow) GTEST_SKIP() << "needs an unsanitized build: sanitizers have memory of their own";
  const char* forced = std::getenv("TROUPE_POLICY");
  if (forced != nullptr && *forced != '\0') GTEST_SKIP() << "TROUPE_POLICY is set: real sockets";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(costs_little(GetParam()) ? 0 : 1), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(backends, io_idle_protocols,
                         ::testing::Values(io_backend::epoll, io_backend::io_uring),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test
