#include "base/intrusive_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

namespace troupe::base {
namespace {

struct item {
  explicit item(char as = '-') : name(as) {}
  char name;
  item* next = nullptr;
};
using queue = intrusive_queue<item, &item::next>;

std::string names(const queue& items) {
  std::string all;
  for (item* each = items.first(); each != nullptr; each = queue::next(*each)) all += each->name;
  EXPECT_EQ(all.size(), items.count());
  EXPECT_EQ(all.empty(), items.empty());
  return all;
}

struct intrusive_queue_of_items : testing::Test {
  item a{'a'}, b{'b'}, c{'c'};
};

TEST_F(intrusive_queue_of_items, gives_the_oldest_first) {
  queue all;
  EXPECT_EQ(all.pop(), nullptr);
  all.push(a);
  all.push(b);
  EXPECT_EQ(all.pop(), &a);
  all.push(c);
  EXPECT_EQ(names(all), "bc");
  EXPECT_EQ(all.pop(), &b);
  EXPECT_EQ(all.pop(), &c);
  EXPECT_EQ(all.pop(), nullptr);
  all.push(b);
  EXPECT_EQ(names(all), "b");
}

TEST_F(intrusive_queue_of_items, an_object_is_taken_from_each_position) {
  for (std::size_t older = 0; older < 3; ++older) {
    queue all;
    for (item* added : {&a, &b, &c}) all.push(*added);
    std::string expected = "abc";
    item& taken = all.take(older);
    EXPECT_EQ(taken.name, expected[older]);
    expected.erase(older, 1);
    EXPECT_EQ(names(all), expected);
    all.push(taken);
    EXPECT_EQ(names(all), expected + taken.name);
  }
}

TEST_F(intrusive_queue_of_items, it_agrees_with_a_deque_whatever_comes) {
  queue all;
  std::deque<item*> model;
  std::vector<item> items(8);
  std::vector<bool> inside(items.size());
  std::minstd_rand random(5);
  for (int step = 0; step < 100'000; ++step) {
    const std::size_t which = random() % items.size();
    if (random() % 2 == 0) {
      if (inside[which]) continue;
      all.push(items[which]);
      model.push_back(&items[which]);
      inside[which] = true;
    } else if (model.empty()) {
      ASSERT_EQ(all.pop(), nullptr);
    } else {
      const std::size_t older = random() % 2 == 0 ? 0 : random() % model.size();
      item* taken = older == 0 ? all.pop() : &all.take(older);
      ASSERT_EQ(taken, model[older]);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(older));
      inside[static_cast<std::size_t>(taken - items.data())] = false;
    }
    ASSERT_EQ(all.count(), model.size());
    ASSERT_EQ(all.empty(), model.empty());
  }
}

TEST_F(intrusive_queue_of_items, moves) {
  queue all;
  all.push(a);
  all.push(b);
  queue moved(std::move(all));
  EXPECT_EQ(names(moved), "ab");
  EXPECT_EQ(names(all), "");
  all.push(c);
  EXPECT_EQ(names(all), "c");
}

}  // namespace
}  // namespace troupe::base
