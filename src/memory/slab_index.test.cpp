#include "memory/slab_index.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <vector>

#include "memory/slot_space.hpp"

namespace troupe::memory {
namespace {

using numbers = std::vector<std::uint64_t>;

numbers numbers_from(const slab_index& index, std::uint64_t first, std::size_t most) {
  std::vector<slab_index::entry> found;
  index.append_from(first, most, found);
  numbers all;
  for (const auto& [number, slab_found] : found) all.push_back(number);
  return all;
}

TEST(slab_index, finds_by_number_what_was_not_removed) {
  std::vector<slab> slabs(8);
  slab_index index;
  for (std::uint64_t n = 0; n < 8; ++n) index.add(n, &slabs[n]);
  EXPECT_EQ(numbers_from(index, 3, 2), (numbers{3, 4}));
  for (const std::uint64_t gone : {4u, 0u, 7u}) index.remove(gone);
  EXPECT_EQ(numbers_from(index, 0, 9), (numbers{1, 2, 3, 5, 6}));
  EXPECT_EQ(numbers_from(index, 4, 1), (numbers{5}));
  EXPECT_FALSE(index.contains(&slabs[4]));
  EXPECT_TRUE(index.contains(&slabs[5]));
  for (const std::uint64_t gone : {1u, 6u, 5u, 3u, 2u}) index.remove(gone);
  EXPECT_EQ(numbers_from(index, 0, 9), numbers{});
  index.add(8, &slabs[0]);
  EXPECT_EQ(numbers_from(index, 0, 9), (numbers{8}));
}

// To move the entries behind each one would take half a minute.
TEST(slab_index, removes_very_many_from_the_first_on) {
  const slab shared{};
  slab_index index;
  constexpr std::uint64_t count = 400'000;
  for (std::uint64_t n = 0; n < count; ++n) index.add(n, &shared);
  const std::clock_t begin = std::clock();
  for (std::uint64_t n = 0; n < count; ++n) index.remove(n);
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
  EXPECT_EQ(numbers_from(index, 0, 1), numbers{});
}

}  // namespace
}  // namespace troupe::memory
