// TCP: what is read is what was written, and each way in which a connection ends has its own
// result.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "io/suspensions/arrival.hpp"
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

// The peer does not read, and the system takes only a small part. Most of the memory is never
// touched.
TEST_P(io_tcp, four_gigabytes_are_not_nothing) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a simulated kernel keeps what it takes";
  constexpr std::size_t bytes = std::size_t{1} << 32;
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) GTEST_SKIP() << "needs address space: 4 GiB cannot be mapped";
  auto program = [room](runtime&) -> task<> {
    const std::span<char> all(static_cast<char*>(room), bytes);
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream one = co_await tcp_stream::connect(listener.local());
    tcp_stream peer = co_await listener.accept();
    bool in_time = true;
    try {
      co_await one.write_all(std::string_view(all.data(), all.size())).timeout(20ms);
    } catch (const timed_out&) {
      in_time = false;
    }
    EXPECT_FALSE(in_time);
    co_await peer.write_all("some");
    const std::size_t came = co_await one.read(all);
    EXPECT_EQ(came, 4u);
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
  ::munmap(room, bytes);
}

struct probing final : io::arrival {
  probing()
      : arrival([](arrival& self) noexcept {
          // The probe may no longer exist when the event is set.
          event told = static_cast<probing&>(self).over;
          told.set();
        }) {}
  event over;
};

// A part of the text was sent at once, by one worker. Here another task writes before the rest is
// on its way.
TEST_P(io_tcp, no_write_comes_between_the_parts_of_another_one) {
  auto program = [](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream one = co_await tcp_stream::connect(listener.local());
    tcp_stream peer = co_await listener.accept();
    probing probe;
    co_await one.write_all("begin");
    std::array<char, 5> begin;
    co_await peer.read_exact(begin);
    EXPECT_TRUE(probe.begin(one));
    const std::string much(8'000'000, 'a');
    const std::ptrdiff_t sent = probe.owner().write_at_once(*probe.at, much, true);
    if (sent > 0) {
      EXPECT_LT(sent, std::ssize(much));
      bool wrote = false;
      auto other = [&]() -> task<> {
        co_await one.write_all("b");
        wrote = true;
      };
      future<> over = rt.spawn(other());
      std::string got(static_cast<std::size_t>(sent), '\0');
      co_await peer.read_exact(got);
      EXPECT_EQ(got.find_first_not_of('a'), std::string::npos);
      co_await sleep_for(5ms);
      EXPECT_FALSE(wrote);
      probe.owner().give_up_rest(*probe.at);
      std::array<char, 1> last;
      co_await peer.read_exact(last);
      EXPECT_EQ(last[0], 'b');
      co_await std::move(over);
    }
    probe.end();
    co_await probe.over.wait();
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
}

// The rest of a message is sent before messages that came later.
TEST_P(io_tcp, messages_of_several_tasks_over_one_stream_stay_whole) {
  const std::size_t bytes = threaded() ? 600'000 : 60'000;
  constexpr int messages = 20, writers = 4;
  auto writes = [bytes](std::shared_ptr<tcp_stream> to, char letter) -> task<> {
    const std::string text(bytes, letter);
    for (int i = 0; i < messages; ++i) {
      if (i % 3 == 0) {
        co_await to->write_all(text).timeout(1h);
      } else {
        co_await to->write_all(text);
      }
      co_await yield();
    }
  };
  auto program = [&](runtime& rt) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    auto one = std::make_shared<tcp_stream>(co_await tcp_stream::connect(listener.local()));
    tcp_stream peer = co_await listener.accept();
    for (int i = 0; i < writers; ++i) rt.spawn(writes(one, static_cast<char>('a' + i)));
    std::string got(bytes, '\0');
    for (int i = 0; i < messages * writers; ++i) {
      co_await peer.read_exact(got);
      EXPECT_EQ(got.find_first_not_of(got[0]), std::string::npos) << "of message " << i;
    }
  };
  runtime rt(options());
  rt.spawn(program(rt));
  rt.run();
}

// For example, a message has length 0, and its sender waits for an answer. A task that keeps
// reading like that still lets others run.
TEST_P(io_tcp, a_read_for_which_there_is_no_room_does_not_wait) {
  int empty = 0;
  std::atomic<bool> had_turn{false};
  const auto others = [&had_turn]() -> task<> {
    had_turn = true;
    co_return;
  };
  const auto all = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    tcp_stream peer = co_await tcp_stream::connect(listener.local());
    tcp_stream other = co_await listener.accept();
    const std::span<char> none;
    empty += co_await peer.read(none) == 0;
    empty += co_await peer.read_exact(none) == 0;
    empty += co_await peer.read(none).timeout(10s) == 0;
    empty += co_await peer.read_exact(none).timeout(10s) == 0;
    co_await peer.write_all("");
    future<> beside = spawn(others());
    // The other worker may have taken it, and may have to wait for a processor.
    for (int i = 0; i < 1'000'000 && !had_turn; ++i) co_await other.read_exact(none);
    EXPECT_TRUE(had_turn);
    co_await std::move(beside);
  };
  runtime rt(options());
  rt.spawn(all());
  rt.run();
  EXPECT_EQ(empty, 4);
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

// The peer may close at any time: with bytes that it has not read, with bytes on their way, or with
// neither.
TEST_P(io_tcp, who_waits_to_write_is_told_that_the_peer_has_gone) {
  auto reads_some = [](tcp_stream peer, std::chrono::microseconds pause) -> task<> {
    std::array<char, 4096> buffer;
    for (int i = 0; i < 3; ++i) co_await peer.read(buffer);
    co_await sleep_for(pause);
    peer.close();
  };
  int told = 0;
  const std::string much(20'000'000, 'x');
  auto writes = [&](tcp_stream to) -> task<> {
    try {
      co_await to.write_all(std::string_view(much)).timeout(20s);
    } catch (const io_error&) {
      ++told;
    }
  };
  constexpr int pauses = 50;
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < pauses; ++i) {
      tcp_stream one = co_await tcp_stream::connect(listener.local());
      tcp_stream peer = co_await listener.accept();
      task<> reading = reads_some(std::move(peer), 2us * i), writing = writes(std::move(one));
      co_await when_all(std::move(reading), std::move(writing));
    }
  };
  run(program());
  EXPECT_EQ(told, pauses);
}

TEST_P(io_tcp, who_is_not_accepted_is_told_when_the_listener_closes) {
  bool told = false;
  auto asks = [&told](endpoint at) -> task<> {
    std::array<char, 1> byte;
    try {
      tcp_stream one = co_await tcp_stream::connect(at).timeout(20s);
      // A system forgets a handshake that ends while the listener is closed: it says so when
      // something comes.
      co_await one.write_all("x").timeout(20s);
      co_await one.read(byte).timeout(20s);
    } catch (const io_error&) {
      told = true;
    }
  };
  auto closes = [](tcp_listener& listener) -> task<> {
    listener.close();
    co_return;
  };
  auto program = [&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    task<> asking = asks(listener.local()), closing = closes(listener);
    co_await when_all(std::move(asking), std::move(closing));
  };
  run(program());
  EXPECT_TRUE(told);
}

// The listener lies in the task that starts the operations.
task<> meet_by_started_operations() {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  auto connects = tcp_stream::connect(listener.local()).start();
  auto accepts = listener.accept().timeout(20s).start();
  tcp_stream here = co_await std::move(accepts);
  tcp_stream there = co_await std::move(connects);
  std::array<char, 5> said{};
  auto reads = here.read_exact(said).start();
  co_await there.write_all("hello");
  co_await std::move(reads);
  EXPECT_EQ(std::string_view(said.data(), said.size()), "hello");
  auto late = here.read_some().timeout(1ms).start();
  bool over = false;
  try {
    co_await std::move(late);
  } catch (const timed_out&) {
    over = true;
  }
  EXPECT_TRUE(over);
}

TEST_P(io_tcp, an_operation_that_is_started_runs_beside_its_caller) {
  run(meet_by_started_operations());
}

}  // namespace

TROUPE_IO_TEST_EACH(io_tcp);

}  // namespace troupe::test
