#include "sched/stealing/run_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace troupe::sched {
namespace {

struct item {
  int number;
};
using small_queue = basic_run_queue<item, 4>;

TEST(run_queue, what_is_pushed_comes_out_in_order) {
  small_queue queue;
  std::vector<item> items(100);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  ASSERT_TRUE(queue.keep_room(100));
  for (auto& pushed : items) queue.push(pushed);
  EXPECT_EQ(queue.count(), 100u);
  for (auto& pushed : items) EXPECT_EQ(queue.pop(), &pushed);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.empty());
}

TEST(run_queue, a_push_that_is_none_leaves_nothing) {
  small_queue queue;
  item first{1}, second{2};
  ASSERT_TRUE(queue.keep_room(2));
  queue.push_if(first, false);
  EXPECT_TRUE(queue.empty());
  queue.push_if(second, true);
  queue.push_if(first, false);
  EXPECT_EQ(queue.pop(), &second);
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(run_queue, it_agrees_with_a_deque_whatever_comes) {
  small_queue queue;
  std::deque<item*> model;
  std::vector<item> items(64);
  std::minstd_rand random(5);
  for (int step = 0; step < 100'000; ++step) {
    item& chosen = items[random() % items.size()];
    const auto step_kind = random() % 5;
    if (step_kind < 2) {
      ASSERT_TRUE(queue.keep_room(model.size() + 1));
      queue.push(chosen);
      model.push_back(&chosen);
    } else if (step_kind == 2) {
      const bool really = random() % 2 == 0;
      ASSERT_TRUE(queue.keep_room(model.size() + 1));
      queue.push_if(chosen, really);
      if (really) model.push_back(&chosen);
    } else {
      item* expected = model.empty() ? nullptr : model.front();
      if (!model.empty()) model.pop_front();
      ASSERT_EQ(queue.pop(), expected);
    }
    ASSERT_EQ(queue.count(), model.size());
  }
}

}  // namespace
}  // namespace troupe::sched
