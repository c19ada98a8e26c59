#include "observe/counting/tally.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace troupe::observe {
namespace {

TEST(tally, its_samples_stand_for_all_that_it_counts) {
  tally of;
  std::uint64_t stood_for = 0;
  for (std::uint32_t i = 1; i <= 10'000; ++i) {
    if (of.count()) {
      stood_for += of.stands_for();
      EXPECT_EQ(stood_for, i);
      of.next(1 + i % 7);
    }
    ASSERT_EQ(of.get(), i);
  }
  EXPECT_GT(stood_for, 10'000u - 7);
}

TEST(tally, a_reader_sees_it_grow_and_never_fall) {
  tally of;
  std::atomic<bool> ends{false};
  std::uint64_t fell = 0, seen = 0;
  std::thread reader([&] {
    while (!ends.load()) {
      const std::uint64_t now = of.get();
      fell += now < seen ? 1 : 0;
      seen = now;
    }
  });
  constexpr std::uint32_t all = 3'000'000;
  for (std::uint32_t i = 0; i < all; ++i) {
    if (of.count()) of.next(2);
  }
  ends.store(true);
  reader.join();
  EXPECT_EQ(fell, 0u);
  EXPECT_EQ(of.get(), all);
}

}  // namespace
}  // namespace troupe::observe
