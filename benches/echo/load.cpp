// load: sends requests to an echo server as fast as it answers, and prints what that cost the
// server.
//
// load SERVER [ARGUMENT...] BENCH WORKERS SIZE starts the server on CPU 0, and itself runs on CPU
// 1. A server prints the port on which it listens, and echoes until it is killed. BENCH is echo_64
// or echo_10k: the number of connections. Each of them sends 64 bytes, waits until they come back,
// and sends the next. SIZE: requests in total, after a first round of one request for each
// connection. Prints value (requests a second), check (answers that were right), cpu_us (the
// server's, for one request), p50 and p99 (us), and rss_kb (the server's, at the end).
#include <sys/epoll.h>

#include "../server_process.hpp"

namespace {

using namespace load;

constexpr std::size_t bytes = 64;

struct connection {
  int fd = -1;
  std::size_t got = 0;
  std::int64_t sent_ns = 0;
};

int run(char** command, std::size_t connections, long size) {
  allow_many_files();
  const server_process echo(command);
  pin(1);

  const int set = ::epoll_create1(0);
  std::vector<connection> all(connections);
  for (std::size_t i = 0; i < connections; ++i) {
    all[i].fd = echo.connect();
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = i;
    ::epoll_ctl(set, EPOLL_CTL_ADD, all[i].fd, &wanted);
  }
  std::array<char, bytes> message{}, back{};
  std::memset(message.data(), 'e', bytes);
  const auto ask = [&](connection& one) {
    one.sent_ns = now_ns();
    if (::send(one.fd, message.data(), bytes, MSG_NOSIGNAL) != bytes) fail("send");
  };

  const long warm = static_cast<long>(connections);
  long asked = 0, answered = 0, right = 0;
  std::int64_t began = 0, cpu_began = 0;
  std::vector<std::int64_t> late;
  late.reserve(static_cast<std::size_t>(size));
  for (connection& one : all) ask(one), ++asked;
  std::vector<epoll_event> events(1024);
  while (answered < warm + size) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), 10'000);
    if (count <= 0) fail("epoll_wait");
    for (int i = 0; i < count; ++i) {
      connection& one = all[events[static_cast<std::size_t>(i)].data.u64];
      const ssize_t part = ::recv(one.fd, back.data(), bytes - one.got, 0);
      if (part <= 0) fail("recv");
      one.got += static_cast<std::size_t>(part);
      if (one.got < bytes) continue;
      one.got = 0;
      if (++answered > warm) {
        late.push_back(now_ns() - one.sent_ns);
        right += back[0] == 'e' ? 1 : 0;
      } else if (answered == warm) {
        began = now_ns();
        cpu_began = echo.cpu_ns();
      }
      if (asked < warm + size) ask(one), ++asked;
    }
  }
  const double seconds = static_cast<double>(now_ns() - began) / 1e9;
  const double cpu_us =
      static_cast<double>(echo.cpu_ns() - cpu_began) / 1e3 / static_cast<double>(size);
  std::printf("value=%.0f check=%ld cpu_us=%.3f p50=%.1f p99=%.1f rss_kb=%ld\n",
              static_cast<double>(size) / seconds, right, cpu_us, percentile_us(late, 0.5),
              percentile_us(late, 0.99), echo.rss_kb());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5)
    return std::fprintf(stderr, "usage: load SERVER [ARGUMENT...] BENCH WORKERS SIZE\n"), 2;
  const std::size_t connections = std::strcmp(argv[argc - 3], "echo_10k") == 0 ? 10'000 : 64;
  const long size = std::atol(argv[argc - 1]);
  argv[argc - 3] = nullptr;
  return run_main([&] { return run(argv + 1, connections, size); });
}
