// Awaiting signals: none is lost between two waits, and the previous actions are restored when the
// last listener has gone.
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/io.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_signals : public io_conformance {};

signal_options strong() {
  signal_options chosen;
  chosen.weak = false;
  return chosen;
}

task<> collect(signal_listener from, std::vector<int>& to, int count) {
  for (int i = 0; i < count; ++i) {
    const int signal = co_await from.next();
    to.push_back(signal);
  }
}

TEST_P(io_signals, each_one_comes_to_all_who_listen) {
  std::vector<int> first, second;
  runtime rt(options());
  auto one = signal_listener::listen({SIGUSR1, SIGUSR2}, strong());
  auto other = signal_listener::listen({SIGUSR2}, strong());
  ASSERT_EQ(::raise(SIGUSR1), 0);  // before any task waits
  rt.spawn(collect(std::move(one), first, 4));
  rt.spawn(collect(std::move(other), second, 3));
  auto send = []() -> task<> {
    for (int i = 0; i < 3; ++i) {
      co_await sleep_for(1ms);
      // raise() returns when the signal has come. Several signals of kill() that are pending would
      // count as one.
      ::raise(SIGUSR2);
    }
  };
  rt.spawn(send());
  rt.run();
  EXPECT_EQ(first, (std::vector<int>{SIGUSR1, SIGUSR2, SIGUSR2, SIGUSR2}));
  EXPECT_EQ(second, (std::vector<int>{SIGUSR2, SIGUSR2, SIGUSR2}));
}

TEST_P(io_signals, who_waits_for_them_alone_is_out_of_work) {
  runtime rt(options());
  std::vector<int> none;
  rt.spawn(collect(signal_listener::listen({SIGUSR1}), none, 1));
  rt.run();
  EXPECT_TRUE(none.empty());
}

TEST_P(io_signals, a_wait_has_limits) {
  runtime rt(options());
  auto use = []() -> task<> {
    auto signals = signal_listener::listen({SIGUSR1});
    bool was_late = false, was_cancelled = false;
    try {
      co_await signals.next().timeout(1ms);
    } catch (const timed_out&) {
      was_late = true;
    }
    std::stop_source source;
    source.request_stop();
    try {
      co_await signals.next().stop(source.get_token());
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    EXPECT_TRUE(was_late);
    EXPECT_TRUE(was_cancelled);
    // A signal that comes afterwards is not lost to the waits that have ended.
    ::raise(SIGUSR1);
    const int came = co_await signals.next();
    EXPECT_EQ(came, SIGUSR1);
  };
  rt.spawn(use());
  rt.run();
}

std::atomic<int> handled{0};
void count(int) { ++handled; }

TEST_P(io_signals, what_they_did_before_is_back_with_the_last_listener) {
  struct sigaction before {
  }, ours{};
  ours.sa_handler = &count;
  ::sigaction(SIGUSR1, &ours, &before);
  handled = 0;
  {
    auto one = signal_listener::listen({SIGUSR1});
    auto two = signal_listener::listen({SIGUSR1});
    one.close();
    ::raise(SIGUSR1);
    EXPECT_EQ(handled.load(), 0);
    signal_listener moved = std::move(two);
    EXPECT_TRUE(moved.is_open());
  }
  ::raise(SIGUSR1);
  EXPECT_EQ(handled.load(), 1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(io_signals, refusals_say_why) {
  EXPECT_THROW(signal_listener::listen({SIGKILL}), option_error);
  EXPECT_THROW(signal_listener::listen({SIGSEGV}), option_error);
  EXPECT_THROW(signal_listener::listen({0}), option_error);
  EXPECT_THROW(signal_listener::listen({65}), option_error);
  std::vector<signal_listener> many;
  for (int i = 0; i < 32; ++i) many.push_back(signal_listener::listen({SIGUSR1}));
  EXPECT_THROW(signal_listener::listen({SIGUSR1}), usage_error);
  many.pop_back();
  many.push_back(signal_listener::listen({SIGUSR1}));
}

// Handlers run on one thread while listeners come and go on another: no handler writes to a closed
// descriptor.
TEST_P(io_signals, listeners_come_and_go_under_a_storm) {
  // Keeps the signals from ending the program.
  const auto keeps = signal_listener::listen({SIGUSR1});
  std::atomic<bool> done{false};
  std::thread storm([&done] {
    for (; !done.load(); std::this_thread::yield()) ::raise(SIGUSR1);
  });
  for (int i = 0; i < 30; ++i) {
    auto one = signal_listener::listen({SIGUSR1, SIGUSR2});
    auto two = signal_listener::listen({SIGUSR1});
    one = std::move(two);
  }
  done = true;
  storm.join();
}

}  // namespace

TROUPE_IO_TEST_EACH(io_signals);

}  // namespace troupe::test
