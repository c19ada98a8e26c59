// What the system gives is not lost with a wait that loses, under each backend.
#include <sys/eventfd.h>

#include <csignal>

#include "given_up/io_sources.hpp"

namespace troupe::test {
namespace {

class given_up_input : public io_conformance {};

constexpr int values = 1000;

int expected(const char* name, int count) {
  return std::string_view(name).starts_with("accept")
             ? std::min(count, accept_source<of_tcp>::connections_max)
             : count;
}
int expected(const char* name) { return expected(name, fewer(values, 10)); }

TEST_P(given_up_input, each_pair_gives_all_its_values) {
  auto all = io_sources();
  all.push_back(sync_sources().front());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      received got[2];
      {
        const auto one = all[i].make(), other = all[j].make();
        runtime rt(options());
        rt.spawn(drain_pair(*one, *other, fewer(values, 10), got));
        rt.run();
      }
      for (const auto& [name, each] : {std::pair(all[i].name, got[0]), {all[j].name, got[1]}}) {
        EXPECT_EQ(each.next, expected(name)) << all[i].name << ' ' << all[j].name;
        EXPECT_TRUE(each.in_order) << all[i].name << ' ' << all[j].name;
      }
    }
  }
}

TEST_P(given_up_input, a_source_gives_all_its_values_under_limits) {
  std::vector<named_source> all = io_sources();
  for (const named_source& each : other_io_sources()) all.push_back(each);
  for (const named_source& each : all) {
    received got;
    {
      const auto from = each.make();
      runtime rt(options());
      rt.spawn(drain_limited(*from, fewer(values, 10), got));
      rt.run();
    }
    EXPECT_EQ(got.next, expected(each.name)) << each.name;
    EXPECT_TRUE(got.in_order) << each.name;
  }
}

TEST_P(given_up_input, each_beside_a_ready_source_gives_all_its_values) {
  const named_source ready = sync_sources().front();
  for (const named_source& each : other_io_sources()) {
    received got[2];
    {
      const auto one = each.make(), other = ready.make();
      runtime rt(options());
      rt.spawn(drain_pair(*one, *other, fewer(values, 10), got));
      rt.run();
    }
    EXPECT_EQ(got[0].next, expected(each.name)) << each.name;
    EXPECT_EQ(got[1].next, fewer(values, 10)) << each.name;
    EXPECT_TRUE(got[0].in_order && got[1].in_order) << each.name;
  }
}

TEST_P(given_up_input, each_in_a_helper_gives_all_its_values) {
  std::vector<named_source> all = io_sources();
  for (const named_source& each : other_io_sources()) all.push_back(each);
  check_in_helpers(options(), all, fewer(150, 10), &expected);
}

// Each signal is sent when the one before was taken, since the system keeps one of each number.
TEST_P(given_up_input, signals_are_not_lost) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a real signal";
  run([]() -> task<> {
    signal_options strong;
    strong.weak = false;
    auto signals = signal_listener::listen({SIGUSR1}, strong);
    const auto take = [](signal_listener& from) -> task<int> { co_return co_await from.next(); };
    const auto soon = [](int turns) -> task<> {
      for (int k = 0; k < turns; ++k) co_await yield();
    };
    for (int i = 0; i < fewer(values, 10); ++i) {
      ::raise(SIGUSR1);
      auto first = co_await when_any(take(signals), soon(i % 4));
      if (first.index() == 0) continue;
      const int number = co_await signals.next();
      EXPECT_EQ(number, SIGUSR1);
    }
  }());
}

// A wait for readiness takes nothing of the descriptor.
TEST_P(given_up_input, readiness_is_seen_by_the_next_wait) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a real descriptor";
  run([]() -> task<> {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    const auto ready = [](int of) -> task<> { co_await readable(of); };
    const auto soon = [](int turns) -> task<> {
      for (int k = 0; k < turns; ++k) co_await yield();
    };
    for (int i = 0; i < fewer(values, 10); ++i) {
      std::uint64_t count = 1;
      EXPECT_EQ(::write(fd, &count, sizeof count), 8);
      static_cast<void>(co_await when_any(ready(fd), soon(i % 4)));
      co_await readable(fd);
      EXPECT_EQ(::read(fd, &count, sizeof count), 8);
    }
    ::close(fd);
  }());
}

TROUPE_IO_TEST_EACH(given_up_input);

}  // namespace
}  // namespace troupe::test
