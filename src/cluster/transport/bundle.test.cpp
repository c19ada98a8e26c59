#include "cluster/transport/bundle.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe::cluster {
namespace {

std::vector<std::string> messages_in(std::string_view bundle) {
  EXPECT_TRUE(bundle.starts_with(bundle_mark));
  std::vector<std::string> all;
  bundle_reader reader(bundle);
  while (const auto message = reader.next()) all.emplace_back(*message);
  return all;
}

TEST(bundle, messages_are_read_as_they_were_added) {
  waiting_bundle waiting;
  EXPECT_TRUE(waiting.empty());
  EXPECT_EQ(waiting.whole(), bundle_mark);
  const std::vector<std::string> all{"one", "", std::string(20'000, 'x'), "B\1", "five"};
  for (const std::string& each : all) {
    const std::size_t bytes = waiting.bytes_with(each);
    waiting.add(each);
    EXPECT_EQ(waiting.whole().size(), bytes);
  }
  EXPECT_EQ(waiting.count(), all.size());
  EXPECT_EQ(waiting.first(), "one");
  EXPECT_EQ(messages_in(waiting.whole()), all);
}

TEST(bundle, what_is_left_after_a_drop_is_a_bundle) {
  for (std::size_t dropped = 0; dropped <= 5; ++dropped) {
    waiting_bundle waiting;
    const std::vector<std::string> all{"", "two", "", "four", "five"};
    for (const std::string& each : all) waiting.add(each);
    waiting.drop(dropped);
    waiting.add("six");
    std::vector<std::string> left(all.begin() + static_cast<std::ptrdiff_t>(dropped), all.end());
    left.emplace_back("six");
    EXPECT_EQ(waiting.count(), left.size());
    EXPECT_EQ(waiting.first(), left.front());
    EXPECT_EQ(messages_in(waiting.whole()), left);
  }
}

}  // namespace
}  // namespace troupe::cluster
