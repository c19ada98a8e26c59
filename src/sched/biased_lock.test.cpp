#include "sched/biased_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace troupe::sched {
namespace {

// Real atomics, but for the fence, which is counted and may be refused, and for the patience: it
// lasts until the test ends it.
struct watched_atomics : base::std_atomics {
  static inline std::atomic<int> fences{0};
  static inline std::atomic<bool> refused{false}, over{false}, asking{false};
  static void begin(bool refuses, bool impatient) {
    fences = 0;
    asking = false;
    refused = refuses;
    over = impatient;
  }
  static bool heavy_fence() noexcept {
    ++fences;
    return !refused && base::std_atomics::heavy_fence();
  }
  struct patience {
    bool is_over() noexcept {
      asking = true;
      base::std_atomics::pause();
      return over;
    }
  };
};
using watched_lock = biased_lock<watched_atomics>;

// A searcher asks, and an owner comes to its lock again and again from then on.
bool ask_beside_owner(watched_lock& lock) {
  std::atomic<bool> done{false};
  std::thread owner([&] {
    while (!done) {
      if (!watched_atomics::asking) continue;
      if (lock.try_enter()) lock.leave();
    }
  });
  const bool inside = lock.ask_or_revoke();
  if (inside) lock.restore();
  done = true;
  owner.join();
  return inside;
}

TEST(biased_lock, an_owner_that_comes_answers_without_a_fence) {
  for (const bool refused : {false, true}) {
    watched_atomics::begin(refused, false);
    watched_lock lock;
    EXPECT_TRUE(ask_beside_owner(lock));
    EXPECT_EQ(watched_atomics::fences, 0);
    EXPECT_TRUE(lock.try_enter());
    lock.leave();
  }
}

TEST(biased_lock, a_lock_whose_owner_does_not_come_is_revoked) {
  watched_atomics::begin(false, true);
  watched_lock lock;
  ASSERT_TRUE(lock.ask_or_revoke());
  EXPECT_EQ(watched_atomics::fences, 1);
  EXPECT_TRUE(lock.is_revoked());
  EXPECT_FALSE(lock.try_enter());
  EXPECT_FALSE(lock.try_revoke()) << "a second searcher";
  EXPECT_FALSE(lock.ask_or_revoke()) << "a second searcher";
  lock.restore();
  EXPECT_FALSE(lock.is_revoked());
  EXPECT_TRUE(lock.try_enter());
  lock.leave();
}

TEST(biased_lock, without_the_fence_only_an_answer_lets_a_searcher_in) {
  watched_atomics::begin(true, true);
  watched_lock lock;
  EXPECT_FALSE(lock.ask_or_revoke());
  EXPECT_FALSE(lock.try_revoke());
  EXPECT_FALSE(lock.is_revoked());
  EXPECT_TRUE(lock.try_enter());
  lock.leave();
}

TEST(biased_lock, one_thread_is_inside_at_a_time) {
  constexpr int visits = 20'000;
  biased_lock<> lock;
  int inside = 0;
  std::atomic<int> left{visits}, searchers_visits{0};
  const auto search = [&](bool asks) {
    while (left > 0) {
      if (asks ? !lock.ask_or_revoke() : !lock.try_revoke()) continue;
      ++inside;
      lock.restore();
      ++searchers_visits;
    }
  };
  std::thread asking(search, true), revoking(search, false);
  for (; left > 0; --left) {
    lock.enter();
    ++inside;
    lock.leave();
  }
  asking.join();
  revoking.join();
  EXPECT_EQ(inside, visits + searchers_visits);
}

}  // namespace
}  // namespace troupe::sched
