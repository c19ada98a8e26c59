// TCP: what is read is what was written, and each way in which a connection ends has its own answer.
#include <algorithm>
#include <numeric>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_tcp : public io_conformance {};

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  unsigned state = 1;
  for (char& one : bytes) one = static_cast<char>(state = state * 1103515245 + 12345);
  return bytes;
}

task<> send_and_end(tcp_stream& to, std::string bytes) {
  co_await to.write_all(std::move(bytes));
  to.shutdown_write();
}

task<std::string> read_to_the_end(tcp_stream& from) {
  std::string all;
  std::array<char, 4096> buffer;
  for (;;) {
    const std::size_t bytes = co_await from.read(buffer);
    if (bytes == 0) break;
    all.append(buffer.data(), bytes);
  }
  co_return all;
}

TEST_P(io_tcp, what_is_echoed_is_what_was_sent) {
  std::string got;
  const std::string sent = some_bytes(300'000);
  runtime rt(options());
  auto both = [](runtime& runs, const std::string& bytes, std::string& back) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    runs.spawn(serve(runs, std::move(listener), 1));
    tcp_stream peer = co_await tcp_stream::connect(at);
    EXPECT_EQ(peer.peer(), at);
    auto reading = runs.spawn(read_to_the_end(peer));
    co_await send_and_end(peer, bytes);
    back = co_await std::move(reading);
  };
  rt.spawn(both(rt, sent, got));
  rt.run();
  EXPECT_EQ(got.size(), sent.size());
  EXPECT_TRUE(got == sent);
}

TEST_P(io_tcp, many_connections_at_a_time) {
  constexpr int connections = 40, rounds = 20;
  std::atomic<int> done{0};
  runtime rt(options());
  auto client = [](endpoint at, std::atomic<int>& finished) -> task<> {
    tcp_stream peer = co_await tcp_stream::connect(at);
    std::array<char, 16> line{};
    for (int i = 0; i < rounds; ++i) {
      co_await peer.write_all(std::string("0123456789abcdef"));
      co_await peer.read_exact(line);
      EXPECT_EQ(std::string_view(line.data(), line.size()), "0123456789abcdef");
    }
    ++finished;
  };
  auto all = [&client](runtime& runs, std::atomic<int>& finished) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    runs.spawn(serve(runs, std::move(listener), connections));
    for (int i = 0; i < connections; ++i) runs.spawn(client(at, finished));
    co_return;
  };
  rt.spawn(all(rt, done));
  rt.run();
  EXPECT_EQ(done.load(), connections);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_tcp);

}  // namespace troupe::test
