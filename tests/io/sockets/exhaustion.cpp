// The process has no free descriptor: a task that accepts waits without spinning, and continues
// when some have been closed.
#include <sys/resource.h>

#include <ctime>

#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class fewer_descriptors {
 public:
  explicit fewer_descriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = most;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~fewer_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::chrono::nanoseconds cpu_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class io_exhaustion : public io_conformance {};

TEST_P(io_exhaustion, who_accepts_waits_until_descriptors_are_closed) {
  if (!threaded()) GTEST_SKIP() << "needs threads: simulated connections need no descriptors";
  constexpr rlim_t most = 64;
  constexpr auto spent_max = 40ms, late_max = 60ms;
  const int before = open_files();
  // The best of some attempts counts: a busy machine makes waits longer, never shorter.
  std::chrono::nanoseconds spent = spent_max, late = late_max;
  for (int attempt = 0; attempt < 8 && (spent >= spent_max || late >= late_max); ++attempt) {
    const fewer_descriptors limit(most);
    std::vector<tcp_stream> served;
    int accepted = 0, wanted = 0;
    spent = late = 0ns;
    const std::chrono::steady_clock::time_point never{};
    auto closed = never;
    auto program = [&](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      // The clients connect although the server accepts nothing yet. They take half of the
      // descriptors, and more connections wait than the other half suffices for.
      std::vector<tcp_stream> clients;
      try {
        for (;;) {
          tcp_stream one = co_await tcp_stream::connect(listener.local());
          clients.push_back(std::move(one));
        }
      } catch (const io_error& e) {
        EXPECT_EQ(e.code(), std::errc::too_many_files_open);
      }
      wanted = static_cast<int>(clients.size());
      EXPECT_GT(wanted, 20);
      // By then the accepting task looks by itself every 100 ms.
      rt.after(130ms, [&clients, &spent, &closed, began = cpu_time()] {
        spent = cpu_time() - began;
        closed = std::chrono::steady_clock::now();
        // The first stream that is closed wakes the accepting task. From then on the freed
        // descriptors are for that task.
        std::vector<tcp_stream> half;
        for (std::size_t left = clients.size() / 2; clients.size() > left; clients.pop_back())
          half.push_back(std::move(clients.back()));
      });
      for (; accepted < wanted; ++accepted) {
        tcp_stream one = co_await listener.accept_when_able();
        if (closed != never && late == 0ns) late = std::chrono::steady_clock::now() - closed;
        served.push_back(std::move(one));
        if (served.size() > 4) served.clear();
      }
      clients.clear();
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_EQ(accepted, wanted);
    served.clear();
  }
  EXPECT_LT(spent, spent_max);
  EXPECT_LT(late, late_max);
  EXPECT_EQ(open_files(), before);
}

TEST_P(io_exhaustion, a_stop_ends_the_wait) {
  if (!threaded()) GTEST_SKIP() << "needs threads: simulated connections need no descriptors";
  const int before = open_files();
  {
    const fewer_descriptors limit(64);
    bool ended = false;
    auto program = [&](runtime& rt) -> task<> {
      auto listener = tcp_listener::listen(endpoint::loopback(0));
      std::vector<tcp_stream> clients;
      try {
        for (;;) {
          tcp_stream one = co_await tcp_stream::connect(listener.local());
          clients.push_back(std::move(one));
        }
      } catch (const io_error&) {
      }
      std::stop_source end;
      rt.after(20ms, [&end] { end.request_stop(); });
      try {
        tcp_stream never = co_await listener.accept_when_able(end.get_token());
      } catch (const cancelled&) {
        ended = true;
      }
    };
    runtime rt(options());
    rt.spawn(program(rt));
    rt.run();
    EXPECT_TRUE(ended);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_exhaustion);

}  // namespace troupe::test
