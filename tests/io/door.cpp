// A worker fetches events inside the poller's door, and serves them outside: so another worker may
// fetch meanwhile, and may take the events that the first one has not begun.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <semaphore>
#include <thread>

#include "io/reactor/reactor.hpp"
#include "support/faulty_kernel.hpp"
#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr int door_connections = 6;
constexpr auto door_patience = 20s;

using semaphore = std::counting_semaphore<>;
bool acquire_all(semaphore& from, int n) {
  while (n-- > 0) {
    if (!from.try_acquire_for(door_patience)) return false;
  }
  return true;
}

// Makes the real calls, and none fails.
class watched_kernel : public faulty_kernel {
 public:
  watched_kernel() : faulty_kernel(call::listen, INT_MAX, 0) {}
  std::ptrdiff_t receive(int fd, void* data, std::size_t bytes, sockaddr* peer,
                         socklen_t* peer_bytes) noexcept override {
    before_receive();
    const std::ptrdiff_t part = faulty_kernel::receive(fd, data, bytes, peer, peer_bytes);
    (part < 0 ? waiting : received).release();
    return part;
  }
  virtual void before_receive() noexcept {}

  std::atomic<const sched::poller*> poller{nullptr};
  semaphore waiting{0}, received{0};  // receives that found nothing, and something
};

// Clients of a server that reads once from each connection.
struct door_clients {
  std::array<int, door_connections> fds{};
  ~door_clients() {
    for (const int fd : fds) ::close(fd);
  }
  void connect_to(const endpoint& server) {
    for (int& fd : fds) {
      fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_EQ(::connect(fd, server.data(), server.size()), 0);
    }
  }
  void send(int to) { EXPECT_EQ(::send(fds[static_cast<std::size_t>(to)], "x", 1, 0), 1); }
};

task<> read_once(tcp_stream peer, std::atomic<int>& bytes) {
  std::array<char, 8> buffer;
  bytes += static_cast<int>(co_await peer.read(buffer));
}

task<> serve_each(runtime& rt, tcp_listener listener, watched_kernel& calls,
                  std::atomic<int>& bytes) {
  calls.poller = io::reactor::current();
  for (int i = 0; i < door_connections; ++i) {
    tcp_stream peer = co_await listener.accept();
    rt.spawn(read_once(std::move(peer), bytes));
  }
}

bool policy_is_forced() {
  const char* forced = std::getenv("TROUPE_POLICY");
  return forced != nullptr && *forced != '\0';
}

// Runs `drive(door_clients)` on a thread of its own beside a server, when all its reads wait.
template <class Drive>
void beside_server(unsigned workers, watched_kernel& calls, Drive drive) {
  const io::replaced_kernel replaced(calls);
  std::atomic<int> bytes{0};
  {
    runtime rt({.workers = workers, .policy = policy::work_stealing, .io = io_backend::epoll});
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    const endpoint at = listener.local();
    rt.spawn(serve_each(rt, std::move(listener), calls, bytes));
    std::thread driver([&, open = rt.hold()] {
      door_clients all;
      all.connect_to(at);
      EXPECT_TRUE(acquire_all(calls.waiting, door_connections));
      drive(all);
    });
    rt.run();
    driver.join();
  }
  EXPECT_EQ(bytes.load(), door_connections);
}

// Counts the receives that are made while a thread is inside. With one worker that is the thread
// which receives.
class receive_kernel final : public watched_kernel {
 public:
  void before_receive() noexcept override {
    if (!poller.load()->door.is_open()) ++inside;
  }
  std::atomic<int> inside{0};
};

TEST(io_door, no_receive_is_made_inside) {
  if (policy_is_forced())
    GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has a kernel of its own";
  receive_kernel calls;
  beside_server(1, calls, [](door_clients& all) {
    for (int i = 0; i < door_connections; ++i) all.send(i);
  });
  EXPECT_EQ(calls.inside.load(), 0);
  EXPECT_TRUE(acquire_all(calls.received, door_connections));
}

// The first receive after begin() lasts until all others have been made. With `together` the events
// of all connections are fetched in one look.
class long_receive final : public watched_kernel {
 public:
  explicit long_receive(bool together) : together_(together) {}
  void begin() { armed_ = gathers_ = true; }
  int wait_events(int set, epoll_event* events, int most, int timeout_ms) noexcept override {
    int came = reads(events, watched_kernel::wait_events(set, events, most, timeout_ms));
    const bool is_bell = came == 1 && events[0].data.u64 == 0;
    if (!together_ || came <= 0 || is_bell || !gathers_.exchange(false)) return came;
    if (!acquire_all(all_sent, 1)) late = true;
    came += watched_kernel::wait_events(set, events + came, most - came, 0);
    return reads(events, came);
  }
  void before_receive() noexcept override {
    if (!armed_.exchange(false)) return;
    begun.release();
    if (!acquire_all(received, door_connections - 1)) late = true;
  }
  semaphore begun{0}, all_sent{0};
  std::atomic<bool> late{false};

 private:
  // Leaves one event for each descriptor, and none that only says that the descriptor takes bytes.
  // A second event would have its thread wait for the long receive, which holds the slot's mutex.
  static int reads(epoll_event* events, int came) noexcept {
    int left = 0;
    for (int i = 0; i < came; ++i) {
      const epoll_event event = events[i];
      const auto is_same = [&event](const epoll_event& other) {
        return other.data.u64 == event.data.u64;
      };
      const bool only_writes = event.data.u64 != 0 && (event.events & ~EPOLLOUT) == 0;
      if (!only_writes && std::none_of(events, events + left, is_same)) events[left++] = event;
    }
    return came < 0 ? came : left;
  }

  const bool together_;
  std::atomic<bool> armed_{false}, gathers_{false};
};

class io_door_events : public testing::TestWithParam<bool> {};

TEST_P(io_door_events, a_long_receive_delays_no_other_event) {
  if (policy_is_forced()) GTEST_SKIP() << "TROUPE_POLICY is set: a simulation has one worker";
  const bool together = GetParam();
  long_receive calls(together);
  beside_server(2, calls, [&](door_clients& all) {
    calls.begin();
    all.send(0);
    if (!together) {
      EXPECT_TRUE(acquire_all(calls.begun, 1));
    }
    for (int i = 1; i < door_connections; ++i) all.send(i);
    calls.all_sent.release();
  });
  EXPECT_FALSE(calls.late.load());
}

INSTANTIATE_TEST_SUITE_P(events, io_door_events, testing::Bool(), [](const auto& test) {
  return test.param ? "fetched_together" : "that_come_later";
});

}  // namespace
}  // namespace troupe::test
