#include "troupe/base/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace troupe::base {
namespace {

struct item {
  explicit item(char as = '-') : name(as) {}
  char name;
  list_link<item> link;
  list_link<item> other_link;
};

using list = intrusive_list<item, &item::link>;

// The names from the first to the last, checked against those from the last to the first.
std::string names(const list& all) {
  std::string forwards, backwards;
  for (item& each : all) forwards += each.name;
  for (item* each = all.last(); each != nullptr; each = list::previous(*each))
    backwards += each->name;
  EXPECT_EQ(forwards, std::string(backwards.rbegin(), backwards.rend()));
  return forwards;
}

struct intrusive_list_of_items : testing::Test {
  item a{'a'}, b{'b'}, c{'c'}, d{'d'};
};

TEST_F(intrusive_list_of_items, is_empty_at_first_and_when_all_have_left) {
  list all;
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.first(), nullptr);
  EXPECT_EQ(all.last(), nullptr);
  EXPECT_EQ(all.pop_front(), nullptr);
  all.push_back(a);
  EXPECT_FALSE(all.empty());
  all.remove(a);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.last(), nullptr);
}

TEST_F(intrusive_list_of_items, keeps_the_order_at_both_ends) {
  list all;
  all.push_back(b);
  all.push_back(c);
  all.push_front(a);
  EXPECT_EQ(names(all), "abc");
  EXPECT_EQ(all.pop_front(), &a);
  EXPECT_EQ(names(all), "bc");
  list other;
  other.push_front(d);
  EXPECT_EQ(names(other), "d");
}

TEST_F(intrusive_list_of_items, an_object_leaves_from_each_position) {
  for (item* leaves : {&a, &b, &c}) {
    list all;
    for (item* added : {&a, &b, &c}) all.push_back(*added);
    all.remove(*leaves);
    std::string expected = "abc";
    std::erase(expected, leaves->name);
    EXPECT_EQ(names(all), expected);
    all.push_back(*leaves);
    EXPECT_EQ(names(all), expected + leaves->name);
  }
}

TEST_F(intrusive_list_of_items, inserts_after_an_object_and_in_front_of_all) {
  list all;
  all.insert_after(nullptr, b);
  all.insert_after(nullptr, a);
  all.insert_after(&b, d);
  all.insert_after(&b, c);
  EXPECT_EQ(names(all), "abcd");
}

TEST_F(intrusive_list_of_items, it_agrees_with_a_deque_whatever_comes) {
  list all;
  std::deque<item*> model;
  std::vector<item> items(8);
  std::minstd_rand random(7);
  for (int step = 0; step < 20'000; ++step) {
    item& chosen = items[random() % items.size()];
    const auto at = std::find(model.begin(), model.end(), &chosen);
    if (at != model.end()) {
      all.remove(chosen);
      model.erase(at);
    } else if (random() % 2 == 0) {
      all.push_back(chosen);
      model.push_back(&chosen);
    } else {
      const auto before = static_cast<std::ptrdiff_t>(random() % (model.size() + 1));
      all.insert_after(before == 0 ? nullptr : model[static_cast<std::size_t>(before) - 1], chosen);
      model.insert(model.begin() + before, &chosen);
    }
    ASSERT_EQ(all.first(), model.empty() ? nullptr : model.front());
    ASSERT_EQ(all.last(), model.empty() ? nullptr : model.back());
    std::deque<item*> there;
    for (item& each : all) there.push_back(&each);
    ASSERT_EQ(there, model);
  }
}

TEST_F(intrusive_list_of_items, splices_and_moves) {
  list all, more;
  all.splice_back(std::move(more));
  EXPECT_TRUE(all.empty());
  more.push_back(a);
  more.push_back(b);
  all.splice_back(std::move(more));
  EXPECT_EQ(names(all), "ab");
  more.push_back(c);
  all.splice_back(std::move(more));
  EXPECT_EQ(names(all), "abc");
  EXPECT_TRUE(list(std::move(more)).empty());
  list moved(std::move(all));
  EXPECT_EQ(names(moved), "abc");
  EXPECT_TRUE(all.empty());
  all.push_back(d);
  EXPECT_EQ(names(all), "d");
}

TEST_F(intrusive_list_of_items, an_object_lies_in_two_lists_by_two_links) {
  list all;
  intrusive_list<item, [](item& each) -> list_link<item>& { return each.other_link; }> others;
  for (item* added : {&a, &b, &c}) {
    all.push_back(*added);
    others.push_front(*added);
  }
  all.remove(b);
  EXPECT_EQ(names(all), "ac");
  EXPECT_EQ(others.first(), &c);
  EXPECT_EQ(others.next(c), &b);
  EXPECT_EQ(others.last(), &a);
}

}  // namespace
}  // namespace troupe::base
