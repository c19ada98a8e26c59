#include "sched/inbox.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace troupe::sched {
namespace {

struct node {
  node* next = nullptr;
  int sender = 0, number = 0;
};

TEST(inbox, all_are_taken_oldest_first) {
  inbox<node> box;
  std::vector<node> nodes(10);
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.take_all(), nullptr);
  EXPECT_TRUE(box.push(nodes[0]));
  for (std::size_t i = 1; i < nodes.size(); ++i) EXPECT_FALSE(box.push(nodes[i]));
  node* at = box.take_all();
  for (auto& sent : nodes) {
    ASSERT_EQ(at, &sent);
    at = at->next;
  }
  EXPECT_EQ(at, nullptr);
  EXPECT_TRUE(box.empty());
  EXPECT_TRUE(box.push(nodes[3])) << "empty again";
}

TEST(inbox, nothing_is_lost_between_many_pushers_and_a_taker) {
  constexpr int senders = 4, each = 20000;
  inbox<node> box;
  std::vector<std::vector<node>> nodes(senders, std::vector<node>(each));
  std::vector<std::thread> all;
  for (int s = 0; s < senders; ++s) {
    all.emplace_back([&, s] {
      for (int i = 0; i < each; ++i) {
        node& sent = nodes[static_cast<unsigned>(s)][static_cast<unsigned>(i)];
        sent.sender = s;
        sent.number = i;
        box.push(sent);
      }
    });
  }
  std::vector<int> next(senders, 0);
  for (int taken = 0; taken < senders * each;) {
    for (node* at = box.take_all(); at != nullptr; at = at->next, ++taken) {
      ASSERT_EQ(at->number, next[static_cast<unsigned>(at->sender)]++);
    }
  }
  for (auto& thread : all) thread.join();
  EXPECT_TRUE(box.empty());
}

}  // namespace
}  // namespace troupe::sched
