// The operations whose changes of common words check.py counts, on two workers.
// Arguments: http ROUNDS (64 clients, a request of each in a round; prints the steals and the
// milliseconds), or tells NUMBER (between actors of two workers, which both are in a handler
// meanwhile).
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "troupe/http/server.hpp"
#include "troupe/troupe.hpp"

namespace {

constexpr std::size_t clients = 64;

void must(bool well) {
  if (!well) std::abort();
}

int dial(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(port));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0);
  return fd;
}

void ask(int port, int rounds) {
  constexpr std::string_view request = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";
  std::array<int, clients> fds{};
  for (int& fd : fds) fd = dial(port);
  std::array<char, 1024> answer;
  for (int round = 0; round < rounds; ++round) {
    for (const int fd : fds) must(::write(fd, request.data(), request.size()) > 0);
    for (const int fd : fds) must(::read(fd, answer.data(), answer.size()) > 0);
  }
  for (const int fd : fds) ::close(fd);
}

void serve_http(int rounds) {
  troupe::runtime rt({.workers = 2});
  troupe::http::router routes;
  routes.get("/plaintext", [] { return troupe::http::response::text("Hello, World!"); });
  troupe::http::server web(std::move(routes));
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const int port = listener.local().port();
  rt.spawn(web.serve(std::move(listener)));
  const auto began = std::chrono::steady_clock::now();
  std::thread client([&] {
    ask(port, rounds);
    web.stop();
  });
  rt.run();
  client.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::printf("steals %llu milliseconds %f\n",
              static_cast<unsigned long long>(rt.metrics().total.steals), took.count());
}

// Both actors are in their handlers at the same time: so they are on two workers.
std::atomic<int> inside{0};
std::atomic<bool> told{false};

void meet() {
  ++inside;
  while (inside < 2) std::this_thread::yield();
}

struct Receiver {
  void begin() {
    meet();
    while (!told) std::this_thread::yield();
  }
  void take(int) {}
};

struct Sender {
  void begin(troupe::ref<Receiver> to, int number) {
    meet();
    for (int i = 0; i < number; ++i) to.tell<&Receiver::take>(i);
    told = true;
  }
};

void tell_across(int number) {
  troupe::runtime rt({.workers = 2});
  auto receiver = rt.spawn<Receiver>();
  receiver.tell<&Receiver::begin>();
  rt.spawn<Sender>().tell<&Sender::begin>(receiver, number);
  rt.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int number = std::atoi(argv[2]);
  argv[1] == std::string_view("http") ? serve_http(number) : tell_across(number);
}
