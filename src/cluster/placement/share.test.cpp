#include "cluster/placement/share.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/leases/lease_store.hpp"

namespace troupe::cluster {
namespace {

std::vector<std::uint32_t> targets_of(const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < counts.size(); ++i) all.push_back(target_of(counts, i));
  return all;
}
std::uint32_t sum_of(const std::vector<std::uint32_t>& all) {
  std::uint32_t sum = 0;
  for (const std::uint32_t one : all) sum += one;
  return sum;
}

TEST(share, all_shards_have_a_part) {
  std::mt19937 random(1);
  for (std::size_t members = 1; members <= 1'100; members += members < 40 ? 1 : 53) {
    std::vector<std::uint32_t> counts(members);
    for (std::uint32_t left = shard_count; left > 0; --left) ++counts[random() % members];
    const auto targets = targets_of(counts);
    EXPECT_EQ(sum_of(targets), shard_count);
    EXPECT_LE(*std::ranges::max_element(targets) - *std::ranges::min_element(targets), 1u);
  }
}

TEST(share, who_has_the_larger_part_keeps_it) {
  EXPECT_EQ(targets_of({341, 342, 341}), (std::vector<std::uint32_t>{341, 342, 341}));
  EXPECT_EQ(targets_of({341, 341, 342}), (std::vector<std::uint32_t>{341, 341, 342}));
  EXPECT_EQ(targets_of({0, 0, 0}), (std::vector<std::uint32_t>{342, 341, 341}));
}

TEST(share, who_is_meant_does_not_change_while_others_hand_over) {
  for (std::uint32_t a = 512; a >= 342; --a) {
    for (const std::uint32_t b : {512u, 400u, 342u, 341u}) {
      EXPECT_EQ(targets_of({a, b, 0}), (std::vector<std::uint32_t>{342, 341, 341}));
    }
  }
}

TEST(share, a_member_that_has_all_keeps_all_while_it_is_alone) {
  EXPECT_EQ(target_of({shard_count}, 0), shard_count);
  EXPECT_EQ(target_of({0}, 0), shard_count);
}

}  // namespace
}  // namespace troupe::cluster
