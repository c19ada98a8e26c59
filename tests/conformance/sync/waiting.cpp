// The one awaitable of channels and locks, on the smallest thing that can be waited for: a box of
// tickets.
#include "troupe/sync/waiting.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include "troupe/base/small_mutex.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/when.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

class tickets {
 public:
  struct taking : sync::waiter {
    static constexpr const char* name = "a ticket";
    explicit taking(tickets& from) noexcept : box(&from) {}
    taking(taking&& other) noexcept : box(other.box) {}
    bool start() noexcept {
      std::lock_guard lock(box->mutex_);
      if (box->left_ > 0) {
        number = box->left_--;
        return false;
      }
      box->waiting_.push(*this);
      ++box->began_;
      return true;
    }
    bool withdraw() noexcept {
      std::lock_guard lock(box->mutex_);
      return box->waiting_.withdraw(*this);
    }
    int finish() const noexcept { return number; }
    tickets* box;
    int number = 0;
  };

  sync::awaiting<taking> take() { return sync::awaiting<taking>(std::in_place, *this); }
  void give(int number) {
    sync::waiter* next = nullptr;
    {
      std::lock_guard lock(mutex_);
      next = waiting_.pop();
      if (next == nullptr) {
        ++left_;
        return;
      }
      static_cast<taking&>(*next).number = number;
    }
    next->wake(*next);
  }
  bool is_awaited() {
    std::lock_guard lock(mutex_);
    return !waiting_.empty();
  }
  int waits_begun() {
    std::lock_guard lock(mutex_);
    return began_;
  }

 private:
  base::small_mutex mutex_;
  sync::waiter_list waiting_;
  int left_ = 0, began_ = 0;
};

task<> take_into(tickets& box, std::vector<int>& numbers) {
  numbers.push_back(co_await box.take());
}

TEST(waiting, those_who_wait_are_served_in_order) {
  runtime rt;
  tickets box;
  std::vector<int> numbers;
  const auto all = [&]() -> task<> {
    co_await when_all(take_into(box, numbers), take_into(box, numbers), take_into(box, numbers));
  };
  auto done = rt.spawn(all());
  while (box.waits_begun() < 3) std::this_thread::yield();
  for (const int number : {7, 8, 9}) box.give(number);
  rt.run();
  EXPECT_EQ(numbers, (std::vector{7, 8, 9}));
}

TEST(waiting, what_is_there_is_taken_at_once_and_others_get_turns_meanwhile) {
  runtime rt({.workers = 1});
  tickets box;
  constexpr int many = 100'000;
  for (int i = 0; i < many; ++i) box.give(0);
  std::atomic<bool> other_ran{false}, ran_meanwhile{false};
  const auto takes_all = [&]() -> task<> {
    rt.post([&] { other_ran = true; });
    for (int i = 0; i < many; ++i) co_await box.take();
    ran_meanwhile = other_ran.load();
  };
  auto done = rt.spawn(takes_all());
  rt.run();
  EXPECT_TRUE(ran_meanwhile);
}

TEST(waiting, a_wait_that_ends_early_has_taken_nothing) {
  runtime rt;
  tickets box;
  std::stop_source source;
  std::vector<std::string> ends;
  const auto waits = [&]() -> task<> {
    try {
      co_await box.take().timeout(1ms);
    } catch (const timed_out&) {
      ends.emplace_back("timed out");
    }
    rt.post([&] { source.request_stop(); });
    try {
      co_await box.take().timeout(1h).stop(source.get_token());
    } catch (const cancelled&) {
      ends.emplace_back("stopped");
    }
    try {
      co_await box.take().timeout(0ms);
    } catch (const timed_out&) {
      ends.emplace_back("tried");
    }
    const auto first = [&]() -> task<int> { co_return co_await box.take(); };
    co_await when_any(first(), sleep_for(1ms));
    EXPECT_FALSE(box.is_awaited());
    box.give(5);
    EXPECT_EQ(co_await box.take().timeout(0ms), 1);
  };
  auto done = rt.spawn(waits());
  rt.run();
  done.get();
  EXPECT_EQ(ends, (std::vector<std::string>{"timed out", "stopped", "tried"}));
}

TEST(waiting, a_plain_thread_blocks) {
  tickets box;
  EXPECT_THROW(static_cast<void>(box.take().timeout(1ms).get()), timed_out);
  std::stop_source source;
  std::jthread other([&] {
    while (!box.is_awaited()) std::this_thread::yield();
    source.request_stop();
    while (!box.is_awaited()) std::this_thread::yield();
    box.give(3);
  });
  EXPECT_THROW(static_cast<void>(box.take().stop(source.get_token()).get()), cancelled);
  EXPECT_EQ(box.take().get(), 3);
}

TEST(waiting, a_handler_may_not_block) {
  runtime rt;
  tickets box;
  bool refused = false;
  rt.post([&] {
    try {
      static_cast<void>(box.take().get());
    } catch (const usage_error&) {
      refused = true;
    }
  });
  rt.run();
  EXPECT_TRUE(refused);
}

// Each ticket that was given is either in a wait's hands or still in the box, however the gifts and
// the time limits interleave.
TEST(waiting, no_ticket_is_lost_when_gifts_and_limits_race) {
  runtime rt;
  tickets box;
  constexpr int takers = 20, rounds = 200;
  std::atomic<int> taken{0}, given{0};
  const auto takes = [&]() -> task<> {
    for (int i = 0; i < rounds; ++i) {
      try {
        co_await box.take().timeout(std::chrono::microseconds(i % 50));
        ++taken;
      } catch (const timed_out&) {
      }
    }
  };
  std::vector<future<>> all;
  for (int i = 0; i < takers; ++i) all.push_back(rt.spawn(takes()));
  std::jthread giver([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      box.give(1);
      ++given;
      std::this_thread::yield();
    }
  });
  rt.run();
  giver.request_stop();
  giver.join();
  const auto rest = [&]() -> task<> {
    for (;;) {
      co_await box.take().timeout(0ms);
      ++taken;
    }
  };
  auto done = rt.spawn(rest());
  rt.run();
  EXPECT_THROW(done.get(), timed_out);
  EXPECT_EQ(taken.load(), given.load());
}

}  // namespace
}  // namespace troupe
