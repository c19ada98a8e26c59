// A queue of messages against a std::deque of the same messages.
#include "durable/memory/message_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace troupe::durable::parts {
namespace {

std::vector<record_ref> all_of(const message_queue& queue) {
  std::vector<record_ref> all;
  for (const record_ref& message : queue) all.push_back(message);
  return all;
}

TEST(durable_message_queue, has_what_a_deque_has) {
  std::mt19937 random(7);
  std::vector<record_ref> messages;
  for (int i = 0; i < 8; ++i) messages.push_back(new_record());
  message_queue queue;
  std::deque<record_ref> expected;
  for (int step = 0; step < 10'000; ++step) {
    const record_ref& message = messages[random() % messages.size()];
    const bool waits = std::ranges::find(expected, message) != expected.end();
    switch (random() % 5) {
      case 0:
        if (!waits) queue.push_back(message), expected.push_back(message);
        break;
      case 1:
        if (!waits) queue.push_front(message), expected.push_front(message);
        break;
      case 2: {
        const record_ref first = queue.pop_front();
        EXPECT_EQ(first, expected.empty() ? nullptr : expected.front());
        if (!expected.empty()) expected.pop_front();
        break;
      }
      case 3:
        EXPECT_EQ(queue.remove(message), waits);
        std::erase(expected, message);
        break;
      default: {
        message_queue moved = std::move(queue);
        queue = std::move(moved);
      }
    }
    ASSERT_EQ(queue.empty(), expected.empty());
    ASSERT_TRUE(std::ranges::equal(all_of(queue), expected)) << "step " << step;
    ASSERT_EQ(std::ranges::find(queue, message) != queue.end(),
              std::ranges::find(expected, message) != expected.end());
  }
}

TEST(durable_message_queue, ends_a_long_one_without_a_deep_stack) {
  message_queue queue;
  std::weak_ptr<record> last;
  for (int i = 0; i < 200'000; ++i) {
    const record_ref message = new_record();
    queue.push_back(message);
    last = message;
  }
  { const message_queue ends = std::move(queue); }
  EXPECT_TRUE(last.expired());
}

}  // namespace
}  // namespace troupe::durable::parts
