#include "base/parker.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::base {
namespace {

using namespace std::chrono_literals;

TEST(parker, a_notify_before_the_wait_is_not_lost) {
  parker sleeper;
  sleeper.notify();
  sleeper.wait();
}

TEST(parker, notifies_do_not_add_up) {
  parker sleeper;
  sleeper.notify();
  sleeper.notify();
  sleeper.wait();
  EXPECT_FALSE(sleeper.wait_for(1ms));
}

TEST(parker, a_wait_ends_when_its_time_is_over) {
  parker sleeper;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(sleeper.wait_for(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 4ms);
  EXPECT_FALSE(sleeper.wait_for(1ns));
  sleeper.notify();
  EXPECT_TRUE(sleeper.wait_for(1h));
}

TEST(parker, a_timed_wait_that_ended_leaves_nothing_behind) {
  parker sleeper;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(sleeper.wait_for(10us));
    sleeper.notify();
    EXPECT_TRUE(sleeper.wait_for(1h));
  }
}

TEST(parker, two_threads_hand_a_ball_back_and_forth) {
  parker mine, others;
  int ball = 0;  // a plain variable: notify publishes it
  const int rounds = 2000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      others.wait();
      ++ball;
      mine.notify();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++ball;
    others.notify();
    mine.wait();
  }
  other.join();
  EXPECT_EQ(ball, 2 * rounds);
}

TEST(parker, timed_and_untimed_waits_mix_with_notifies_that_race_them) {
  parker mine, others;
  const int rounds = 1000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (!others.wait_for(1us)) {
      }
      mine.notify();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    others.notify();
    if (i % 2 == 0) {
      mine.wait();
    } else {
      while (!mine.wait_for(1us)) {
      }
    }
  }
  other.join();
}

}  // namespace
}  // namespace troupe::base
