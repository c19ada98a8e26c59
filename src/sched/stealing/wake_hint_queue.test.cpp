#include "sched/stealing/wake_hint_queue.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace troupe::sched {
namespace {

struct item {
  std::atomic<int> mail{0};
};
using small_box = wake_hint_queue<item, 8>;

TEST(wake_hint_queue, what_was_pushed_is_taken) {
  small_box box;
  item first, second;
  EXPECT_TRUE(box.empty());
  box.push(first);
  box.push(second);
  EXPECT_FALSE(box.empty());
  std::set<item*> taken;
  EXPECT_FALSE(box.take([&](item& got) { taken.insert(&got); }));
  EXPECT_EQ(taken, (std::set<item*>{&first, &second}));
  EXPECT_TRUE(box.empty());
  EXPECT_FALSE(box.take([](item&) { FAIL(); }));
}

TEST(wake_hint_queue, a_full_box_holds_all_and_one_more_says_that_some_are_lost) {
  std::vector<item> items(9);
  small_box box;
  for (int i = 0; i < 8; ++i) box.push(items[static_cast<unsigned>(i)]);
  int taken = 0;
  EXPECT_FALSE(box.take([&](item&) { ++taken; }));
  EXPECT_EQ(taken, 8);
  for (auto& pushed : items) box.push(pushed);
  EXPECT_FALSE(box.empty());
  EXPECT_TRUE(box.take([](item&) {}));
  EXPECT_TRUE(box.empty());
  EXPECT_FALSE(box.take([](item&) { FAIL(); }));
}

TEST(wake_hint_queue, mail_is_found_by_a_wake_hint_or_by_a_look_at_all) {
  constexpr std::size_t pushers = 3, count = 30;
  const int rounds = 3000;
  std::vector<item> items(count);
  small_box box;
  std::atomic<std::size_t> done{0};
  std::vector<std::thread> all;
  for (std::size_t p = 0; p < pushers; ++p) {
    all.emplace_back([&, p] {
      for (int i = 0; i < rounds; ++i) {
        item& chosen = items[(static_cast<std::size_t>(i) * 7 + p) % count];
        if (chosen.mail.fetch_add(1) == 0) box.push(chosen);
      }
      ++done;
    });
  }
  long found = 0;
  const auto look = [&](item& looked_at) { found += looked_at.mail.exchange(0); };
  const auto sweep = [&] {
    if (box.empty()) return;
    if (!box.take(look)) return;
    for (auto& pushed : items) look(pushed);
  };
  while (done.load() < pushers) sweep();
  for (auto& thread : all) thread.join();
  sweep();
  EXPECT_EQ(found, static_cast<long>(pushers) * rounds);
}

}  // namespace
}  // namespace troupe::sched
