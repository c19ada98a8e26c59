#include "base/walks/watched_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::base {
namespace {

struct listed {
  int number = 0;
  list_link<listed> link;
};

// A mutex that tells when it is unlocked. No other thread is about.
struct told_mutex {
  void lock() { locked = true; }
  bool try_lock() { return !std::exchange(locked, true); }
  void unlock() {
    locked = false;
    if (unlocked) unlocked();
  }
  static inline bool locked = false;
  static inline std::function<void()> unlocked;
};
using told_list = watched_list<listed, &listed::link, told_mutex>;

class watched_lists : public testing::Test {
 protected:
  watched_lists() {
    for (std::size_t i = objects.size(); i-- > 0;) {
      objects[i].number = static_cast<int>(i);
      list.push_front(objects[i]);
    }
  }
  ~watched_lists() override { told_mutex::unlocked = nullptr; }
  // Walks; `between` runs each time the list is unlocked, unless the walk has ended.
  void walk(std::vector<int>& seen, const std::function<void()>& between) {
    told_mutex::unlocked = [&] {
      auto self = std::exchange(told_mutex::unlocked, nullptr);
      between();
      told_mutex::unlocked = std::move(self);
    };
    list.for_each([&](listed& object, told_list::lock&) { seen.push_back(object.number); });
    told_mutex::unlocked = nullptr;
  }

  told_list list;
  std::array<listed, 1000> objects;
};

TEST_F(watched_lists, a_walk_holds_the_lock_for_a_bounded_number_of_objects) {
  std::size_t before = 0, longest = 0;
  std::vector<int> seen;
  walk(seen,
       [&] { longest = std::max(longest, seen.size() - std::exchange(before, seen.size())); });
  EXPECT_EQ(seen.size(), objects.size());
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(longest, told_list::piece_max);
}

TEST_F(watched_lists, a_look_that_unlocks_ends_the_piece) {
  std::size_t count = 0;
  list.for_each([&](listed&, told_list::lock& held) {
    EXPECT_TRUE(told_mutex::locked);
    if (++count % 3 == 0) held.unlock();
  });
  EXPECT_EQ(count, objects.size());
}

TEST_F(watched_lists, objects_that_leave_between_two_pieces_are_left_out_and_no_others) {
  std::set<int> left;
  std::vector<int> seen;
  const auto leaves = [&](int number) {
    list.remove(objects[static_cast<std::size_t>(number)]);
    left.insert(number);
  };
  walk(seen, [&] {
    if (left.empty()) leaves(999);
    // the last one that was seen, and the two at which the walk would go on
    for (int i = 0; i < 3 && seen.back() + i < 999; ++i) leaves(seen.back() + i);
  });
  EXPECT_TRUE(std::ranges::is_sorted(seen, std::less_equal())) << "one was seen twice";
  EXPECT_GT(left.size(), 30u);
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(std::ranges::binary_search(seen, i) || left.contains(i)) << i;
  EXPECT_FALSE(std::ranges::binary_search(seen, told_list::piece_max));
  EXPECT_FALSE(std::ranges::binary_search(seen, 999));
}

TEST_F(watched_lists, objects_that_come_meanwhile_do_not_prolong_a_walk) {
  std::array<listed, 1000> more;
  std::size_t added = 0;
  std::vector<int> seen;
  walk(seen, [&] {
    for (int i = 0; i < 50; ++i) list.push_front(more[added++]);
  });
  EXPECT_EQ(seen.size(), objects.size());
}

TEST_F(watched_lists, all_objects_may_leave_between_two_pieces) {
  std::size_t pieces = 0;
  std::vector<int> seen;
  walk(seen, [&] {
    if (pieces++ == 0) {
      for (listed& object : objects) list.remove(object);
    }
  });
  EXPECT_EQ(seen.size(), told_list::piece_max);
}

TEST(watched_list, threads_add_and_remove_while_another_walks) {
  watched_list<listed, &listed::link> list;
  std::vector<listed> stays(500);
  for (listed& object : stays) {
    object.number = 1;
    list.push_front(object);
  }
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::vector<listed> own(200);
      // order: relaxed  a flag alone
      while (!ends.load(std::memory_order_relaxed)) {
        for (listed& object : own) list.push_front(object);
        for (std::size_t at = 0; at < own.size(); ++at) list.remove(own[(at * 77) % own.size()]);
      }
    });
  }
  for (int walks = 0; walks < 50; ++walks) {
    int seen = 0;
    list.for_each([&](const listed& object, const auto&) { seen += object.number; });
    EXPECT_EQ(seen, 500);
  }
  ends.store(true, std::memory_order_relaxed);  // order: relaxed  as above
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe::base
