#include "troupe/memory/magazine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace troupe::memory {
namespace {

std::array<free_block, 4 * magazine::batch> blocks;

// Returns a list of `count` blocks from `first` on.
free_block* list_of(std::size_t first, std::size_t count) {
  free_block* list = nullptr;
  for (std::size_t i = count; i-- > 0;) {
    blocks[first + i].next = list;
    list = &blocks[first + i];
  }
  return list;
}

std::size_t length(const free_block* list) {
  std::size_t n = 0;
  for (; list != nullptr; list = list->next) ++n;
  return n;
}

TEST(magazine, an_empty_one_gives_nothing) {
  magazine empty;
  EXPECT_EQ(empty.take(), nullptr);
  EXPECT_EQ(empty.drain(), nullptr);
}

TEST(magazine, what_was_given_is_taken_last_in_first_out) {
  magazine stock;
  EXPECT_EQ(stock.give(&blocks[0]), nullptr);
  EXPECT_EQ(stock.give(&blocks[1]), nullptr);
  EXPECT_EQ(stock.take(), &blocks[1]);
  EXPECT_EQ(stock.take(), &blocks[0]);
  EXPECT_EQ(stock.take(), nullptr);
}

TEST(magazine, it_keeps_two_batches_and_gives_back_the_third) {
  magazine full;
  std::size_t given = 0;
  for (; given < 2 * magazine::batch; ++given)
    ASSERT_EQ(full.give(&blocks[given]), nullptr) << given;
  free_block* surplus = full.give(&blocks[given]);
  ASSERT_NE(surplus, nullptr);
  EXPECT_EQ(length(surplus), magazine::batch);
  std::set<free_block*> left;
  while (free_block* block = full.take()) EXPECT_TRUE(left.insert(block).second);
  EXPECT_EQ(left.size(), magazine::batch + 1);
  for (; surplus != nullptr; surplus = surplus->next) EXPECT_FALSE(left.contains(surplus));
}

TEST(magazine, ebb_and_flow_around_a_full_batch_never_goes_to_the_depot) {
  magazine half;
  for (std::size_t i = 0; i < magazine::batch; ++i) ASSERT_EQ(half.give(&blocks[i]), nullptr);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < magazine::batch; ++i)
      ASSERT_EQ(half.give(&blocks[magazine::batch + i]), nullptr);
    for (std::size_t i = 0; i < magazine::batch; ++i) ASSERT_NE(half.take(), nullptr);
  }
}

TEST(magazine, a_refill_of_any_size_is_taken_whole) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, magazine::batch}) {
    magazine refilled;
    refilled.refill(list_of(0, count), count);
    std::size_t taken = 0;
    while (refilled.take() != nullptr) ++taken;
    EXPECT_EQ(taken, count);
  }
}

TEST(magazine, draining_gives_all_that_is_left) {
  magazine stock;
  for (std::size_t i = 0; i < magazine::batch + 7; ++i) static_cast<void>(stock.give(&blocks[i]));
  std::size_t drained = 0;
  while (free_block* list = stock.drain()) drained += length(list);
  EXPECT_EQ(drained, magazine::batch + 7);
  EXPECT_EQ(stock.take(), nullptr);
  EXPECT_EQ(stock.give(&blocks[0]), nullptr);
  EXPECT_EQ(stock.take(), &blocks[0]);
}

}  // namespace
}  // namespace troupe::memory
