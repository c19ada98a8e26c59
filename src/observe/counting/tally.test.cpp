#include "observe/counting/tally.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace troupe::observe {
namespace {

TEST(tally, its_samples_stand_for_all_that_it_counts) {
  tally counted;
  std::uint64_t stood_for = 0;
  for (std::uint32_t i = 1; i <= 10'000; ++i) {
    if (counted.count()) {
      stood_for += counted.stands_for();
      EXPECT_EQ(stood_for, i);
      counted.next(1 + i % 7);
    }
    ASSERT_EQ(counted.get(), i);
  }
  EXPECT_GT(stood_for, 10'000u - 7);
}

TEST(tally, a_reader_sees_it_grow_and_never_fall) {
  tally counted;
  std::atomic<bool> ends{false};
  std::uint64_t fell = 0, seen = 0;
  std::thread reader([&] {
    while (!ends.load()) {
      const std::uint64_t now = counted.get();
      fell += now < seen ? 1 : 0;
      seen = now;
    }
  });
  constexpr std::uint32_t all = 3'000'000;
  for (std::uint32_t i = 0; i < all; ++i) {
    if (counted.count()) counted.next(2);
  }
  ends.store(true);
  reader.join();
  EXPECT_EQ(fell, 0u);
  EXPECT_EQ(counted.get(), all);
}

}  // namespace
}  // namespace troupe::observe
