#include "sched/runnable_list.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace troupe::sched {
namespace {

TEST(runnable_list, it_agrees_with_a_deque_whatever_comes) {
  runnable_list list;
  std::deque<runnable*> model;
  std::vector<runnable> items(8);
  std::vector<bool> inside(items.size());
  std::minstd_rand random(5);
  for (int step = 0; step < 100'000; ++step) {
    const std::size_t which = random() % items.size();
    if (random() % 2 == 0) {
      if (inside[which]) continue;
      list.push(items[which]);
      model.push_back(&items[which]);
      inside[which] = true;
    } else if (model.empty()) {
      ASSERT_EQ(list.pop(), nullptr);
    } else {
      const std::size_t older = random() % 2 == 0 ? 0 : random() % model.size();
      runnable* taken = older == 0 ? list.pop() : &list.take(older);
      ASSERT_EQ(taken, model[older]);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(older));
      inside[static_cast<std::size_t>(taken - items.data())] = false;
    }
    ASSERT_EQ(list.count(), model.size());
    ASSERT_EQ(list.empty(), model.empty());
  }
}

}  // namespace
}  // namespace troupe::sched
