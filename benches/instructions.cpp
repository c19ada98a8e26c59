// The operations whose instructions `./bench --instructions` counts, on one worker.
//
// bench_instructions OPERATION NUMBER performs NUMBER operations, or rounds of them, under
// valgrind; driver/instructions.py has the table. For HTTP it starts itself as the client, which
// valgrind does not follow: bench_instructions client OPERATION PORT NUMBER.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "troupe/http/server.hpp"
#include "troupe/streams.hpp"
#include "troupe/troupe.hpp"
#include "troupe/waits.hpp"

namespace {

constexpr std::size_t connections = 64;
constexpr std::uint64_t timers_at_once = 1'000;

void must(bool well) {
  if (!well) std::abort();
}

// ---- timers ----

std::uint64_t cancel_timers(unsigned workers, std::uint64_t rounds) {
  troupe::runtime rt({.workers = workers});
  std::vector<troupe::timer> all(timers_at_once);
  std::uint64_t called = 0, in_time = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (auto& timer : all) timer = rt.after(std::chrono::hours(1), [&called] { ++called; });
    for (auto& timer : all) in_time += timer.cancel() ? 1 : 0;
  }
  rt.run();
  return in_time - called;
}

std::uint64_t fire_timers(unsigned workers, std::uint64_t rounds) {
  troupe::runtime rt({.workers = workers});
  std::vector<troupe::timer> all(timers_at_once);
  std::uint64_t called = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (auto& timer : all) {
      timer = rt.after(std::chrono::milliseconds(500), [&called] { ++called; });
    }
    rt.run();
  }
  return called;
}

// ---- forks ----

troupe::work<std::uint64_t> fib_work(std::uint64_t n) {
  if (n < 2) co_return n;
  auto [first, second] = co_await troupe::fork(fib_work(n - 1), fib_work(n - 2));
  co_return first + second;
}

std::uint64_t fib(unsigned workers, std::uint64_t n) {
  troupe::runtime rt({.workers = workers});
  auto value = rt.spawn([](std::uint64_t number) -> troupe::task<std::uint64_t> {
    co_return co_await fib_work(number);
  }(n));
  rt.run();
  return value.get();
}

// ---- the client of the HTTP server ----

struct exchange {
  std::string_view operation;
  std::size_t depth;  // requests at a time on a connection
  bool is_http2;
};
constexpr exchange exchanges[] = {
    {"http1_plaintext", 1, false}, {"http1_pipelined", 16, false}, {"http2_plaintext", 16, true}};

const exchange* find_exchange(std::string_view operation) {
  for (const exchange& known : exchanges) {
    if (known.operation == operation) return &known;
  }
  return nullptr;
}

void read_fully(int fd, char* to, std::size_t bytes) {
  for (std::size_t have = 0; have < bytes;) {
    const ssize_t part = ::recv(fd, to + have, bytes - have, 0);
    must(part > 0);
    have += static_cast<std::size_t>(part);
  }
}

// HTTP/1: all answers have the length of the first one.
struct client_of_http1 {
  explicit client_of_http1(std::size_t depth) {
    for (std::size_t i = 0; i < depth; ++i) request += "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";
    answers.resize(depth * 1'024);
  }
  std::string_view opening() const { return {}; }
  std::string_view next_requests() const { return request; }
  void read_answers(int fd, std::size_t depth) {
    if (length == 0) {
      const ssize_t part = ::recv(fd, answers.data(), 1'024, 0);
      must(part > 0);
      const std::string_view text(answers.data(), static_cast<std::size_t>(part));
      const std::size_t body = text.find("Hello, World!");
      must(body != text.npos);
      length = body + 13;
      read_fully(fd, answers.data() + part, length * depth - text.size());
    } else {
      read_fully(fd, answers.data(), length * depth);
    }
  }
  std::string request, answers;
  std::size_t length = 0;
};

// HTTP/2: streams 1, 3, 5 and so on; an answer ends with a frame that has END_STREAM.
struct client_of_http2 {
  explicit client_of_http2(std::size_t depth) : streams(depth) {}
  static std::string frame(int type, int flags, std::uint32_t stream, std::string_view body) {
    std::string text;
    for (const int shift : {16, 8, 0}) text += static_cast<char>(body.size() >> shift);
    text += static_cast<char>(type);
    text += static_cast<char>(flags);
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(stream >> shift);
    return text.append(body);
  }
  std::string_view opening() {
    using namespace std::string_view_literals;
    // Then SETTINGS, and WINDOW_UPDATE to the largest window of the connection.
    text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") + frame(8, 0, 0, "\x7f\0\0\0"sv);
    return text;
  }
  std::string_view next_requests() {
    text.clear();
    // :method GET, :scheme http, :path /plaintext, :authority a
    for (std::size_t i = 0; i < streams; ++i, stream += 2) {
      text += frame(1, 5, stream,
                    "\x82\x86\x04\x0a/plaintext\x01\x01"
                    "a");
    }
    return text;
  }
  void read_answers(int fd, std::size_t depth) {
    for (std::size_t ended = 0; ended < depth;) {
      std::array<unsigned char, 9> head;
      read_fully(fd, reinterpret_cast<char*>(head.data()), head.size());
      const std::size_t bytes = std::size_t{head[0]} << 16 | std::size_t{head[1]} << 8 | head[2];
      body.resize(bytes);
      read_fully(fd, body.data(), bytes);
      const bool has_end_stream = head[3] <= 1 && (head[4] & 1) != 0;
      must(head[3] != 3 && head[3] != 7);  // RST_STREAM, GOAWAY
      if (has_end_stream) ++ended;
    }
  }
  std::size_t streams;
  std::uint32_t stream = 1;
  std::string text, body;
};

int dial(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(port));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0);
  return fd;
}

void send_all(int fd, std::string_view bytes) {
  must(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

template <class Client>
void request_often(const exchange& how, int port, std::uint64_t rounds) {
  struct connected {
    int fd;
    Client client;
  };
  std::vector<connected> all;
  for (std::size_t i = 0; i < connections; ++i) all.push_back({dial(port), Client(how.depth)});
  for (connected& connection : all) send_all(connection.fd, connection.client.opening());
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (connected& connection : all) {
      send_all(connection.fd, connection.client.next_requests());
    }
    for (connected& connection : all) connection.client.read_answers(connection.fd, how.depth);
  }
  for (const connected& connection : all) ::close(connection.fd);
}

void run_client(std::string_view operation, int port, std::uint64_t rounds) {
  const exchange* how = find_exchange(operation);
  must(how != nullptr);
  how->is_http2 ? request_often<client_of_http2>(*how, port, rounds)
                : request_often<client_of_http1>(*how, port, rounds);
}

// ---- the HTTP server ----

void start_client(const char* program, std::string_view operation, int port, std::uint64_t rounds) {
  std::string name(operation), port_text = std::to_string(port), count = std::to_string(rounds);
  std::string first(program), role = "client";
  std::array<char*, 6> arguments{first.data(),     role.data(),  name.data(),
                                 port_text.data(), count.data(), nullptr};
  const pid_t id = ::fork();
  if (id == 0) {
    ::execv(program, arguments.data());
    ::_exit(127);
  }
  int status = 0;
  must(::waitpid(id, &status, 0) == id && status == 0);
}

void serve(const char* program, const exchange& how, std::uint64_t rounds) {
  troupe::runtime rt({.workers = 1});
  troupe::http::router routes;
  routes.get("/plaintext",
             [] { return troupe::http::response::view("Hello, World!", "text/plain"); });
  troupe::http::server_options options;
  options.connections_per_peer = options.connections;  // all connections come from one address
  troupe::http::server web(std::move(routes), options);
  auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0));
  const int port = listener.local().port();
  rt.spawn(web.serve(std::move(listener)));
  std::thread client([&] {
    start_client(program, how.operation, port, rounds);
    web.stop();
  });
  rt.run();
  client.join();
}

// ---- all operations but HTTP ----

std::uint64_t perform(std::string_view operation, std::uint64_t number) {
  using namespace troupe_bench;
  if (operation == "ask") return ask(1, number).check;
  if (operation == "spawn") return spawn(1, number).check;
  if (operation == "switch") return hand_over(1, number).check;
  if (operation == "await_ready") return await_ready(1, number).check;
  if (operation == "timer_cancelled") return cancel_timers(1, number);
  if (operation == "timer_fired") return fire_timers(1, number);
  if (operation == "ping_pong") return ping_pong(1, number).check;
  if (operation == "fib") return fib(1, number);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && argv[1] == std::string_view("client")) {
    run_client(argv[2], std::atoi(argv[3]), measure::parse_number(argv[4]));
    return 0;
  }
  if (argc != 3) return 2;
  const std::uint64_t number = measure::parse_number(argv[2]);
  if (const exchange* how = find_exchange(argv[1])) {
    serve(argv[0], *how, number);
    return 0;
  }
  const std::uint64_t done = perform(argv[1], number);
  std::printf("%llu\n", static_cast<unsigned long long>(done));
  return done == 0 ? 2 : 0;
}
