// Readiness of the program's own descriptors, pipes, and the time limits that every operation
// takes.
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_ready : public io_conformance {};

struct owned_event {
  int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  owned_event() = default;
  owned_event(const owned_event&) = delete;
  owned_event& operator=(const owned_event&) = delete;
  ~owned_event() { ::close(fd); }
};

TEST_P(io_ready, an_eventfd_wakes_all_who_wait_for_it) {
  owned_event event;
  std::atomic<int> told{0};
  auto waits = [](int fd, std::atomic<int>& count) -> task<> {
    co_await readable(fd);
    ++count;
  };
  runtime rt(options());
  for (int i = 0; i < 3; ++i) rt.spawn(waits(event.fd, told));
  std::thread([&event, open = rt.hold()] { ::eventfd_write(event.fd, 1); }).join();
  rt.run();
  EXPECT_EQ(told.load(), 3);
}

TEST_P(io_ready, a_timeout_ends_the_wait_and_the_descriptor_stays_usable) {
  owned_event event;
  int timeouts = 0, told = 0;
  auto waits = [](int fd, int& late, int& ready) -> task<> {
    for (int i = 0; i < 3; ++i) {
      try {
        co_await readable(fd).timeout(2ms);
      } catch (const timed_out&) {
        ++late;
      }
    }
    ::eventfd_write(fd, 1);
    co_await readable(fd).timeout(1s);
    ++ready;
    co_await writable(fd).timeout(1s);
    ++ready;
  };
  runtime rt(options());
  rt.spawn(waits(event.fd, timeouts, told));
  rt.run();
  EXPECT_EQ(timeouts, 3);
  EXPECT_EQ(told, 2);
}

TEST_P(io_ready, a_stop_token_ends_the_wait) {
  owned_event event;
  std::stop_source source;
  bool ended = false;
  auto waits = [](int fd, std::stop_token stop, bool& was_cancelled) -> task<> {
    try {
      co_await readable(fd).stop(std::move(stop));
    } catch (const cancelled&) {
      was_cancelled = true;
    }
  };
  runtime rt(options());
  rt.spawn(waits(event.fd, source.get_token(), ended));
  rt.after(2ms, [&source] { source.request_stop(); });
  rt.run();
  EXPECT_TRUE(ended);
}

struct waiter {
  std::atomic<int>* state;
  explicit waiter(std::atomic<int>* to) : state(to) {}
  task<> wait(int fd) {
    *state = 1;
    co_await readable(fd);
    *state = 2;
  }
};

// When a thread ends, the system ends the operations that the thread has submitted to a ring.
TEST_P(io_ready, a_wait_outlives_the_thread_that_began_it) {
  owned_event event;
  std::atomic<int> state{0};
  runtime rt(options());
  rt.spawn<waiter>(on_main(), unchecked(&state)).tell<&waiter::wait>(event.fd);
  std::thread([&] {
    while (state.load() == 0) rt.poll();
  }).join();
  rt.after(2ms, [&event] { ::eventfd_write(event.fd, 1); });
  rt.run();
  EXPECT_EQ(state.load(), 2);
}

TEST_P(io_ready, a_file_is_always_ready_and_what_is_not_open_is_an_error) {
  bool ready = false, refused = false;
  auto waits = [](bool& at_once, bool& bad) -> task<> {
    std::FILE* file = std::tmpfile();
    co_await readable(::fileno(file));
    at_once = true;
    std::fclose(file);
    try {
      co_await readable(987'654);
    } catch (const io_error& e) {
      bad = e.code() == std::errc::bad_file_descriptor;
    }
  };
  runtime rt(options());
  rt.spawn(waits(ready, refused));
  rt.run();
  EXPECT_TRUE(ready);
  EXPECT_TRUE(refused);
}

// One task reads 777 bytes at a time, and the other one writes 300,000 bytes: neither holds the
// other's worker.
TEST_P(io_ready, a_pipe_carries_everything) {
  std::size_t got = 0;
  const std::size_t sent = 300'000;
  auto writes = [](pipe_stream to, std::size_t bytes) -> task<> {
    co_await to.write_all(std::string(bytes, 'x'));
  };
  auto reads = [](pipe_stream from, std::size_t& sum) -> task<> {
    std::array<char, 777> buffer;
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer);
      if (bytes == 0) break;
      sum += bytes;
    }
  };
  runtime rt(options());
  auto ends = pipe_stream::make();
  rt.spawn(reads(std::move(ends.first), got));
  rt.spawn(writes(std::move(ends.second), sent));
  rt.run();
  EXPECT_EQ(got, sent);
}

TEST_P(io_ready, a_pipe_that_nobody_reads_is_broken) {
  bool broken = false;
  auto writes = [](pipe_stream to, bool& seen) -> task<> {
    try {
      co_await to.write_all("anybody?");
    } catch (const io_error& e) {
      seen = e.code() == std::errc::broken_pipe;
    }
  };
  runtime rt(options());
  auto ends = pipe_stream::make();
  ends.first.close();
  rt.spawn(writes(std::move(ends.second), broken));
  rt.run();
  EXPECT_TRUE(broken);
}

TEST_P(io_ready, one_who_is_never_kept_waiting_lets_others_have_their_turn) {
  owned_event event;
  ::eventfd_write(event.fd, 1);
  std::atomic<bool> end{false};
  auto hogs = [](int fd, std::atomic<bool>& done) -> task<> {
    while (!done.load()) co_await readable(fd);
  };
  auto other = [](std::atomic<bool>& done) -> task<> {
    for (int i = 0; i < 10; ++i) co_await yield();
    done = true;
  };
  runtime rt(options());
  rt.spawn(hogs(event.fd, end));
  rt.spawn(other(end));
  rt.run();
}

}  // namespace

TROUPE_IO_TEST_EACH(io_ready);

}  // namespace troupe::test
