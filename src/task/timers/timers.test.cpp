// Timers with several wheels behave as timers with one: many threads arm and cancel, and one thread
// keeps the time.
#include "task/timers/timers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/runtime_host.hpp"

namespace troupe::tasks {
namespace {

using namespace std::chrono_literals;

constexpr unsigned threads_of_test = 4;
constexpr auto patience = 20s;

struct counted_timer final : timer {
  explicit counted_timer(bool is_weak = false) noexcept
      : timer(&on_time, timer_source::after, is_weak) {}

  static void on_time(timer& self) noexcept {
    auto& entry = static_cast<counted_timer&>(self);
    if (base::now_ns() < entry.due_ns) entry.early = true;
    if (entry.gate != nullptr) entry.gate->acquire();
    ++entry.times;
    if (entry.done != nullptr) entry.done->release();
  }

  std::int64_t due_ns = 0;
  std::atomic<int> times{0};
  std::atomic<bool> early{false};
  std::counting_semaphore<>* done = nullptr;
  std::counting_semaphore<>* gate = nullptr;
};

class timers_of : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override { timers::set_wheels(GetParam()); }
  void TearDown() override { timers::set_wheels(0); }

  void arm(counted_timer& entry, std::chrono::nanoseconds span) {
    entry.due_ns = clock_->now_ns() + span.count();
    clock_->arm(entry, entry.due_ns);
  }

  test::runtime_host host_;
  std::unique_ptr<timers> made_;
  timers* clock_ = nullptr;
  void begin() {
    made_ = std::make_unique<timers>(host_, time_kept_by::own_thread, threads_of_test);
    clock_ = made_.get();
  }
};

TEST_P(timers_of, each_timer_of_many_threads_expires_once_or_is_cancelled) {
  begin();
  constexpr std::size_t timers_each = 500;
  std::vector<std::unique_ptr<counted_timer>> all;
  std::counting_semaphore<> expired(0);
  for (std::size_t i = 0; i < threads_of_test * timers_each; ++i) {
    all.push_back(std::make_unique<counted_timer>());
    all.back()->done = &expired;
  }
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < threads_of_test; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < timers_each; ++i)
        arm(*all[thread * timers_each + i], std::chrono::microseconds(i % 7 * 500));
      for (std::size_t i = 0; i < timers_each; i += 2) {
        counted_timer& entry = *all[thread * timers_each + i];
        if (clock_->cancel(entry)) {
          ++cancelled;
          EXPECT_EQ(entry.times, 0);
        } else {
          EXPECT_EQ(entry.times, 1) << "cancel() waits for the function";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = static_cast<std::size_t>(cancelled); i < all.size(); ++i)
    ASSERT_TRUE(expired.try_acquire_for(patience)) << i;
  for (const auto& entry : all) EXPECT_FALSE(entry->early);
  clock_->shut_down();  // the last function has returned
  int times = 0;
  for (const auto& entry : all) times += entry->times;
  EXPECT_EQ(times + cancelled, static_cast<int>(all.size()));
  EXPECT_EQ(clock_->count().armed, 0u);
  EXPECT_EQ(host_.holds, 0);
}

// A timer whose function reports by a relaxed word that it can be armed again. Only the lock orders
// the rest.
struct offered_timer final : timer {
  offered_timer() noexcept : timer(&on_time, timer_source::after, true) {}
  static void on_time(timer& self) noexcept {
    // order: relaxed  only the lock of the wheel may order the two threads
    static_cast<offered_timer&>(self).is_free.store(true, std::memory_order_relaxed);
  }
  std::atomic<bool> is_free{true};
};

TEST_P(timers_of, a_timer_is_armed_again_as_soon_as_its_function_says_so) {
  begin();
  std::array<offered_timer, 8> all;
  const auto wait_for = [](const offered_timer& entry) {
    // order: relaxed  only the lock of the wheel may order the two threads
    while (!entry.is_free.load(std::memory_order_relaxed)) std::this_thread::yield();
  };
  for (int round = 0; round < 400; ++round) {
    for (offered_timer& entry : all) {
      wait_for(entry);
      // order: relaxed  only the lock of the wheel may order the two threads
      entry.is_free.store(false, std::memory_order_relaxed);
      clock_->arm(entry, clock_->now_ns());
    }
  }
  for (const offered_timer& entry : all) wait_for(entry);
  clock_->shut_down();
}

TEST_P(timers_of, an_earlier_timer_of_any_wheel_wakes_the_thread) {
  begin();
  std::vector<std::unique_ptr<counted_timer>> far;
  for (int i = 0; i < 64; ++i) {
    far.push_back(std::make_unique<counted_timer>());
    arm(*far.back(), 1h);
  }
  std::counting_semaphore<> done(0);
  for (int round = 0; round < 200; ++round) {
    const auto near = std::make_unique<counted_timer>();
    near->done = &done;
    arm(*near, 100us);
    ASSERT_TRUE(done.try_acquire_for(patience)) << "round " << round;
    EXPECT_FALSE(clock_->cancel(*near));
  }
  EXPECT_EQ(clock_->count().armed, far.size());
  for (const auto& entry : far) EXPECT_TRUE(clock_->cancel(*entry));
}

TEST_P(timers_of, looks_and_counts_find_the_timers_of_all_wheels) {
  begin();
  clock_->count_sources();
  std::vector<std::unique_ptr<counted_timer>> all;
  std::set<const timer*> armed;
  for (int i = 0; i < 300; ++i) {
    all.push_back(std::make_unique<counted_timer>(i % 3 == 0));
    arm(*all.back(), 1h);
    armed.insert(all.back().get());
  }
  EXPECT_EQ(host_.holds, static_cast<int>(std::min(GetParam(), 4u)));
  EXPECT_EQ(clock_->count().armed, 300u);
  EXPECT_EQ(clock_->count(all[5].get()).armed, 299u);
  EXPECT_EQ(clock_->count().strong, 200);
  std::set<const timer*> seen;
  clock_->for_each([&](const timer& entry) { seen.insert(&entry); }, [] { return true; });
  EXPECT_EQ(seen, armed);
  int pieces = 0;
  clock_->for_each([](const timer&) {}, [&] { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2) << "a walk ends where it is told to";
  EXPECT_TRUE(clock_->while_armed(*all[7], [] {}));
  EXPECT_TRUE(clock_->take_back(*all[7]));
  EXPECT_FALSE(clock_->while_armed(*all[7], [] {}));

  timer_list taken = clock_->take_back_all([](const timer& entry) { return entry.weak; });
  int weak = 0;
  while (taken.pop_front() != nullptr) ++weak;
  EXPECT_EQ(weak, 100);
  clock_->shut_down();
  clock_->expire_all();
  EXPECT_EQ(clock_->count().armed, 0u);
  EXPECT_EQ(host_.holds, 0);
  const source_count counts =
      clock_->count_by_source()[static_cast<std::size_t>(timer_source::after)];
  EXPECT_EQ(counts.armed, 300u);
  EXPECT_EQ(counts.cancelled, 101u);
  EXPECT_EQ(counts.expired, 199u);
  EXPECT_EQ(clock_->count_lateness().count(), 199u);
}

// Whose function arms the next timer, in whatever wheel that lies, until there is none.
struct chained_timer final : timer {
  chained_timer() noexcept : timer(&on_time, timer_source::after) {}
  static void on_time(timer& self) noexcept {
    auto& entry = static_cast<chained_timer&>(self);
    if (entry.next != nullptr) {
      entry.clock->arm(*entry.next, entry.clock->now_ns() + entry.span.count());
    } else {
      entry.done->release();
    }
  }
  timers* clock = nullptr;
  chained_timer* next = nullptr;
  std::chrono::nanoseconds span{0};
  std::counting_semaphore<>* done = nullptr;
};

std::vector<std::unique_ptr<chained_timer>> make_chain(timers& clock, std::chrono::nanoseconds span,
                                                       std::counting_semaphore<>& done) {
  std::vector<std::unique_ptr<chained_timer>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<chained_timer>());
    all.back()->clock = &clock;
    all.back()->span = span;
    all.back()->done = &done;
    if (i != 0) all[all.size() - 2]->next = all.back().get();
  }
  return all;
}

TEST_P(timers_of, a_function_arms_timers_of_other_wheels) {
  begin();
  std::counting_semaphore<> done(0);
  const auto chain = make_chain(*clock_, 50us, done);
  clock_->arm(*chain.front(), 0);
  EXPECT_TRUE(done.try_acquire_for(patience));
}

TEST_P(timers_of, timers_that_are_armed_while_all_expire_expire_as_well) {
  begin();
  std::counting_semaphore<> done(0);
  const auto chain = make_chain(*clock_, 1h, done);
  clock_->arm(*chain.front(), clock_->now_ns() + std::chrono::nanoseconds(1h).count());
  clock_->shut_down();
  clock_->expire_all();
  EXPECT_TRUE(done.try_acquire());
  EXPECT_EQ(clock_->count().armed, 0u);
  EXPECT_EQ(host_.holds, 0);
}

TEST_P(timers_of, an_end_beside_threads_that_arm_leaves_their_timers_armed_or_expired) {
  for (int round = 0; round < 50; ++round) {
    begin();
    std::vector<std::unique_ptr<counted_timer>> all;
    for (unsigned i = 0; i < threads_of_test * 20; ++i)
      all.push_back(std::make_unique<counted_timer>());
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < threads_of_test; ++thread) {
      threads.emplace_back([&, thread] {
        for (unsigned i = 0; i < 20; ++i) arm(*all[thread * 20 + i], 0ns);
      });
    }
    clock_->shut_down();
    for (std::thread& thread : threads) thread.join();
    clock_->expire_all();
    for (const auto& entry : all) EXPECT_EQ(entry->times, 1);
    EXPECT_EQ(host_.holds, 0);
  }
}

TEST_P(timers_of, a_cancel_waits_for_the_function_that_runs) {
  begin();
  std::counting_semaphore<> gate(0), cancelled(0);
  counted_timer slow;
  slow.gate = &gate;
  arm(slow, 0ns);
  const auto late = std::chrono::steady_clock::now() + patience;
  while (clock_->count().armed != 0 && std::chrono::steady_clock::now() < late)
    std::this_thread::yield();
  std::thread canceller([&] {
    EXPECT_FALSE(clock_->cancel(slow));
    EXPECT_EQ(slow.times, 1);
    cancelled.release();
  });
  EXPECT_FALSE(cancelled.try_acquire_for(5ms));
  gate.release();
  EXPECT_TRUE(cancelled.try_acquire_for(patience));
  canceller.join();
}

INSTANTIATE_TEST_SUITE_P(wheels, timers_of, testing::Values(1u, 4u), [](const auto& tested) {
  return std::to_string(tested.param) + "_wheels";
});

}  // namespace
}  // namespace troupe::tasks
