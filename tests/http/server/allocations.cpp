// In the steady state, a request to a plain handler makes no allocation, alone or in a pipeline.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "support/http.hpp"

#if !TROUPE_TEST_SLOW  // sanitizers have an operator new of their own

namespace {

std::atomic<long> allocations{0};

void* count_and_allocate(std::size_t bytes) {
  ++allocations;
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) { return count_and_allocate(bytes); }
void* operator new[](std::size_t bytes) { return count_and_allocate(bytes); }
// Not inlined: otherwise GCC sees memory of `new` given to free() and warns of a mismatch.
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

namespace troupe::test {
namespace {

class http_allocations : public testing::TestWithParam<io_backend> {};

// A client on a thread of its own that only makes system calls.
struct plain_client {
  explicit plain_client(const endpoint& at) : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (::connect(fd, at.data(), at.size()) != 0) std::abort();
  }
  ~plain_client() { ::close(fd); }
  void ask(std::string_view requests, std::size_t answer_bytes) {
    if (::send(fd, requests.data(), requests.size(), 0) != static_cast<ssize_t>(requests.size()))
      std::abort();
    for (std::size_t left = answer_bytes; left > 0;) {
      const ssize_t got = ::recv(fd, buffer.data(), std::min(left, buffer.size()), 0);
      if (got <= 0) std::abort();
      left -= static_cast<std::size_t>(got);
    }
  }
  int fd;
  std::array<char, 65536> buffer{};
};

TEST_P(http_allocations, of_a_steady_request_there_are_none) {
  http::router routes;
  routes.get("/plaintext", [] { return http::response::text("Hello, World!"); });
  routes.get("/users/{id}",
             [](int id) { return http::response::json(id == 7 ? "{\"id\":7}" : "{\"id\":8}"); });
  http::server web(std::move(routes));
  runtime_options options;
  options.workers = 1;
  options.io = GetParam();
  runtime rt(options);
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  const endpoint at = listener.local();
  rt.spawn(web.serve(std::move(listener)));
  long grown = -1;
  std::thread asking([&] {
    const std::string one = "GET /plaintext HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
                      other = "GET /users/7 HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string head =
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: ";
    const std::size_t one_bytes =
        head.size() +
        std::string_view("text/plain; charset=utf-8\r\nContent-Length: 13\r\n\r\nHello, World!")
            .size();
    const std::size_t other_bytes =
        head.size() +
        std::string_view("application/json\r\nContent-Length: 8\r\n\r\n{\"id\":7}").size();
    std::string many;
    for (int i = 0; i < 16; ++i) many += one;
    plain_client client(at);
    const auto round = [&] {
      client.ask(one, one_bytes);
      client.ask(other, other_bytes);
      client.ask(many, 16 * one_bytes);
    };
    for (int i = 0; i < 100; ++i) round();
    // If the client loses its processor for long, the server parks the connection, which allocates.
    // So the best of several rounds counts.
    for (int tries = 0; tries < 20 && grown != 0; ++tries) {
      const long before = allocations.load();
      for (int i = 0; i < 200; ++i) round();
      grown = allocations.load() - before;
    }
    web.stop();
  });
  rt.run();
  asking.join();
  EXPECT_LE(grown, 0);
}

INSTANTIATE_TEST_SUITE_P(backends, http_allocations,
                         testing::Values(io_backend::epoll, io_backend::io_uring),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace troupe::test

#endif
