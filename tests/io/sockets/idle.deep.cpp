// As many idle connections as a process may have descriptors: all are accepted, each still answers,
// and they use little memory.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int connections_wanted = 19'000, spare_descriptors = 500;
constexpr long bytes_each_max = 4'096;

class io_idle : public testing::TestWithParam<io_backend> {};

// The client, a process of its own: it makes its connections and, when it is told to, sends once on
// each of them.
[[noreturn]] void be_client(int port_from, int say_to, int count) {
  std::uint16_t port = 0;
  if (::read(port_from, &port, sizeof port) != sizeof port) ::_exit(2);
  const endpoint at = endpoint::loopback(port);
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || ::connect(fd, at.data(), at.size()) != 0) ::_exit(3);
    all.push_back(fd);
  }
  char go = 0;
  if (::write(say_to, "c", 1) != 1 || ::read(port_from, &go, 1) != 1) ::_exit(4);
  int right = 0;
  for (const int fd : all) {
    char back = 0;
    if (::send(fd, "x", 1, MSG_NOSIGNAL) == 1 && ::recv(fd, &back, 1, 0) == 1 && back == 'x')
      ++right;
  }
  ::_exit(right == count ? 0 : 5);
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

task<> echo_until_end(tcp_stream peer, std::atomic<int>& answered) {
  std::array<char, 8> buffer;
  try {
    for (;;) {
      const std::size_t bytes = co_await peer.read(buffer);
      if (bytes == 0) break;
      co_await peer.write_all(std::string_view(buffer.data(), bytes));
      ++answered;
    }
  } catch (const io_error&) {  // the client closes all connections when it ends
  }
}

struct numbers {
  int accepted = 0;
  long before_kib = 0, idle_kib = 0;
};

task<> serve(runtime& rt, int count, int port_to, int heard_from, std::atomic<int>& answered,
             numbers& seen) {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const std::uint16_t port = listener.local().port();
  seen.before_kib = resident_kib();
  if (::write(port_to, &port, sizeof port) != sizeof port) ADD_FAILURE() << "no client";
  std::vector<future<>> all;
  for (; seen.accepted < count; ++seen.accepted) {
    tcp_stream peer = co_await listener.accept().timeout(60s);
    all.push_back(rt.spawn(echo_until_end(std::move(peer), answered)));
  }
  co_await readable(heard_from).timeout(60s);
  seen.idle_kib = resident_kib();
  if (::write(port_to, "g", 1) != 1) ADD_FAILURE() << "no client";
  for (future<>& one : all) co_await std::move(one);
}

TEST_P(io_idle, nineteen_thousand_in_one_process) {
  const char* forced = std::getenv("TROUPE_POLICY");
  if (forced != nullptr && *forced != '\0')
    GTEST_SKIP() << "TROUPE_POLICY is set: real connections";
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const int count =
      static_cast<int>(std::min<rlim_t>(connections_wanted, limit.rlim_max - spare_descriptors));
  const int before = open_files();
  int to[2], back[2];
  ASSERT_EQ(::pipe(to), 0);
  ASSERT_EQ(::pipe(back), 0);
  const pid_t client = ::fork();
  if (client == 0) be_client(to[0], back[1], count);
  std::atomic<int> answered{0};
  numbers seen;
  {
    runtime rt({.workers = 2, .io = GetParam()});
    rt.spawn(serve(rt, count, to[1], back[0], answered, seen));
    rt.run();
  }
  int status = 0;
  ::waitpid(client, &status, 0);
  for (const int fd : {to[0], to[1], back[0], back[1]}) ::close(fd);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(seen.accepted, count);
  EXPECT_EQ(answered.load(), count);
  EXPECT_EQ(open_files(), before);
  const long each = (seen.idle_kib - seen.before_kib) * 1024 / count;
  std::printf("%d idle connections, %ld bytes each\n", count, each);
  if (!slow) {
    EXPECT_LE(each, bytes_each_max);
  }
}

INSTANTIATE_TEST_SUITE_P(backends, io_idle,
                         ::testing::Values(io_backend::epoll, io_backend::io_uring),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test
