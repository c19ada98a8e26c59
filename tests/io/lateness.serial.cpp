// P11 for I/O: while another worker is idle, a handler of 100 ms delays no completion.
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/io.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

class p11_io : public io_conformance {};
class p10_io : public io_conformance {};

struct holder {
  void hold() { busy_for(100ms); }
};

// Notes how late it learns that the descriptor, a semaphore, was raised. The time of that was
// written to `sent_at` before.
struct listener {
  std::vector<nanoseconds>* late;
  const std::vector<std::atomic<std::int64_t>>* sent_at;
  listener(std::vector<nanoseconds>* to, const std::vector<std::atomic<std::int64_t>>* times)
      : late(to), sent_at(times) {}
  task<> listen(int fd) {
    for (const auto& sent : *sent_at) {
      std::uint64_t one = 0;
      while (::read(fd, &one, sizeof one) < 0) co_await readable(fd);
      late->push_back(clock::now().time_since_epoch() - nanoseconds(sent.load()));
    }
  }
};

// The time counts that only one wait of a hundred exceeded, in the best of a few attempts.
TEST_P(p11_io, a_long_handler_delays_no_completion) {
  if (options().workers < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(2ms, [&] {
    constexpr int rounds = 100;
    std::vector<nanoseconds> late;
    std::vector<std::atomic<std::int64_t>> sent_at(rounds);
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    {
      runtime rt(options());
      rt.spawn<listener>(&late, &sent_at).tell<&listener::listen>(fd);
      auto busy = rt.spawn<holder>();
      std::thread rings([&, open = rt.hold()] {
        for (int i = 0; i < rounds; ++i) {
          if (i % 20 == 0) busy.tell<&holder::hold>();
          std::this_thread::sleep_for(3ms);  // sleeps: so that the workers go to rest in between
          sent_at[static_cast<std::size_t>(i)] = clock::now().time_since_epoch().count();
          ::eventfd_write(fd, 1);
        }
      });
      rt.run();
      rings.join();
    }
    ::close(fd);
    EXPECT_EQ(late.size(), static_cast<std::size_t>(rounds));
    std::sort(late.begin(), late.end());
    return late[late.size() - 2];
  });
}

// Submits the operation, and is then in a long handler itself.
struct starter {
  static constexpr bool reentrant = true;
  nanoseconds* late;
  explicit starter(nanoseconds* to) : late(to) {}
  task<> listen(int fd) {
    co_await readable(fd);
    std::uint64_t sent = 0;
    static_cast<void>(::read(fd, &sent, sizeof sent));
    *late = clock::now().time_since_epoch() - nanoseconds(static_cast<std::int64_t>(sent));
  }
};

TEST_P(p11_io, all_workers_busy_with_short_turns_still_look) {
  expect_within(20ms, [&] {  // eight workers share two processors
    nanoseconds late = nanoseconds::max();
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    {
      std::atomic<bool> end{false};
      auto spins = [&end](auto& again, runtime& runs) -> void {
        busy_for(20us);
        if (!end.load()) runs.post([&again, &runs] { again(again, runs); });
      };
      runtime rt(options());
      rt.spawn<starter>(&late).tell<&starter::listen>(fd);
      for (unsigned i = 0; i < 2 * rt.workers(); ++i) rt.post([&] { spins(spins, rt); });
      std::thread rings([&, open = rt.hold()] {
        std::this_thread::sleep_for(20ms);  // sleeps: so that all workers are busy
        ::eventfd_write(fd, static_cast<std::uint64_t>(clock::now().time_since_epoch().count()));
        std::this_thread::sleep_for(10ms);  // sleeps: so that they stay busy for a while
        end = true;
      });
      rt.run();
      rings.join();
    }
    ::close(fd);
    return late;
  });
}

TEST_P(p10_io, who_waits_for_io_uses_no_cpu) {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  {
    std::vector<nanoseconds> late;
    std::vector<std::atomic<std::int64_t>> sent_at(1);
    runtime rt(options());
    rt.spawn<listener>(&late, &sent_at).tell<&listener::listen>(fd);
    std::thread rings([&, open = rt.hold()] {
      std::this_thread::sleep_for(200ms);  // sleeps: until the timed searchers have gone to rest
      const auto before = cpu_time_used();
      std::this_thread::sleep_for(500ms);  // sleeps: the time that is measured
      const auto used = cpu_time_used() - before;
      EXPECT_LT(used, slow ? 20ms : 3ms);
      ::eventfd_write(fd, 1);
    });
    rt.run();
    rings.join();
  }
  ::close(fd);
}

}  // namespace

TROUPE_IO_TEST_EACH(p11_io);
TROUPE_IO_TEST_EACH(p10_io);

}  // namespace troupe::test
