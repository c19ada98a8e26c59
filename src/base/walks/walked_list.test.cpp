#include "base/walks/walked_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace troupe::base {
namespace {

struct listed {
  int number = 0;
  list_link<listed> link;
};
using walked = walked_list<listed, &listed::link>;

class walked_lists : public testing::Test {
 protected:
  walked_lists() {
    for (std::size_t i = objects.size(); i-- > 0;) {
      objects[i].number = static_cast<int>(i);
      list.push_front(objects[i]);
    }
  }
  // One piece, which ends behind the object `last`.
  bool go_on(walked::walk& at, std::vector<int>& seen, int last = -1) {
    return list.next_piece(at, [&](const listed& object) {
      seen.push_back(object.number);
      return object.number != last;
    });
  }
  listed& object(int number) { return objects[static_cast<std::size_t>(number)]; }

  walked list;
  std::array<listed, 1000> objects;
};

TEST_F(walked_lists, each_piece_has_a_bounded_number_of_objects) {
  walked::walk at;
  list.begin(at);
  std::vector<int> seen;
  for (std::size_t pieces = 1; go_on(at, seen); ++pieces)
    ASSERT_EQ(seen.size(), pieces * walked::piece_max);
  list.end(at);
  EXPECT_EQ(seen.size(), objects.size());
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

TEST_F(walked_lists, a_look_can_end_a_walk) {
  walked::walk at;
  list.begin(at);
  std::vector<int> seen;
  EXPECT_FALSE(go_on(at, seen, 10));
  list.end(at);
  EXPECT_EQ(seen.size(), 11u);
}

TEST_F(walked_lists, each_of_several_walks_leaves_out_those_that_have_gone_and_no_others) {
  constexpr std::size_t walks = 3;
  std::array<walked::walk, walks> at;
  std::array<std::vector<int>, walks> seen;
  std::array<bool, walks> more;
  more.fill(true);
  for (walked::walk& walk : at) list.begin(walk);
  std::vector<int> left;
  const auto leaves = [&](int number) {
    if (number >= 1000 || std::ranges::find(left, number) != left.end()) return;
    list.remove(object(number));
    left.push_back(number);
  };
  leaves(999);
  // Each goes at its own pace; behind each piece the last object that was seen leaves, with the two
  // at which the walk would go on.
  for (std::size_t round = 0; std::ranges::find(more, true) != more.end(); ++round) {
    const std::size_t chosen = round % 2 == 0 ? 0 : 1 + round / 2 % (walks - 1);
    if (!more[chosen]) {
      for (std::size_t i = 0; i < walks; ++i) more[i] = more[i] && go_on(at[i], seen[i]);
      continue;
    }
    more[chosen] = go_on(at[chosen], seen[chosen]);
    const int last = seen[chosen].back();
    for (int i = 0; i < 3; ++i) leaves(last + i);
  }
  EXPECT_GT(left.size(), 30u);
  for (std::size_t i = 0; i < walks; ++i) {
    list.end(at[i]);
    EXPECT_TRUE(std::ranges::is_sorted(seen[i], std::less_equal())) << "one was seen twice";
    for (int number = 0; number < 1000; ++number) {
      const bool is_seen = std::ranges::binary_search(seen[i], number);
      EXPECT_TRUE(is_seen || std::ranges::find(left, number) != left.end()) << i << " " << number;
    }
    EXPECT_FALSE(std::ranges::binary_search(seen[i], 999));
  }
}

TEST_F(walked_lists, objects_that_come_in_front_do_not_prolong_a_walk) {
  std::array<listed, 1000> more;
  std::size_t added = 0;
  walked::walk at;
  list.begin(at);
  std::vector<int> seen;
  while (go_on(at, seen)) {
    for (int i = 0; i < 50; ++i) list.push_front(more[added++]);
  }
  list.end(at);
  EXPECT_EQ(seen.size(), objects.size());
}

TEST_F(walked_lists, a_walk_finds_none_once_all_are_taken) {
  walked::walk at, other;
  list.begin(at);
  list.begin(other);
  std::vector<int> seen;
  EXPECT_TRUE(go_on(at, seen));
  walked::list taken = list.take_all();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::distance(taken)), objects.size());
  while (taken.pop_front() != nullptr) {
  }
  EXPECT_FALSE(go_on(at, seen));
  EXPECT_FALSE(go_on(other, seen));
  list.end(at);
  EXPECT_EQ(seen.size(), walked::piece_max);
  // Walks that have ended are forgotten.
  list.push_front(object(0));
  list.end(other);
  list.remove(object(0));
}

}  // namespace
}  // namespace troupe::base
