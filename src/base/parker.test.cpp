#include "base/parker.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::base {
namespace {

using namespace std::chrono_literals;

TEST(parker, a_notify_before_the_wait_is_not_lost) {
  parker one;
  one.notify();
  one.wait();
}

TEST(parker, notifies_do_not_add_up) {
  parker one;
  one.notify();
  one.notify();
  one.wait();
  EXPECT_FALSE(one.wait_for(1ms));
}

TEST(parker, a_wait_ends_when_its_time_is_over) {
  parker one;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_FALSE(one.wait_for(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 4ms);
  EXPECT_FALSE(one.wait_for(1ns));
  one.notify();
  EXPECT_TRUE(one.wait_for(1h));
}

TEST(parker, a_timed_wait_that_ended_leaves_nothing_behind) {
  parker one;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(one.wait_for(10us));
    one.notify();
    EXPECT_TRUE(one.wait_for(1h));
  }
}

TEST(parker, two_threads_hand_a_ball_back_and_forth) {
  parker here, there;
  int ball = 0;  // a plain variable: notify publishes it
  const int rounds = 2000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      there.wait();
      ++ball;
      here.notify();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++ball;
    there.notify();
    here.wait();
  }
  other.join();
  EXPECT_EQ(ball, 2 * rounds);
}

TEST(parker, timed_and_untimed_waits_mix_with_notifies_that_race_them) {
  parker here, there;
  const int rounds = 1000;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (!there.wait_for(1us)) {
      }
      here.notify();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    there.notify();
    if (i % 2 == 0) {
      here.wait();
    } else {
      while (!here.wait_for(1us)) {
      }
    }
  }
  other.join();
}

}  // namespace
}  // namespace troupe::base
