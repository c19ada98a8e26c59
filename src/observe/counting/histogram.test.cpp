#include "observe/counting/histogram.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace troupe::observe {
namespace {

TEST(histogram, each_value_lies_in_the_bucket_that_begins_below_it) {
  std::size_t before = 0;
  for (std::uint64_t value = 0; value < 100'000; ++value) {
    const std::size_t bucket = value_counts::bucket_of(value);
    ASSERT_LE(value_counts::least_of(bucket), value);
    ASSERT_GT(value_counts::least_of(bucket + 1), value);
    ASSERT_TRUE(bucket == before || bucket == before + 1) << value;
    before = bucket;
  }
  EXPECT_EQ(value_counts::bucket_of(UINT64_MAX), value_counts::buckets - 1);
}

TEST(histogram, quantiles_are_exact_within_a_quarter) {
  const auto seen = std::make_unique<histogram>();
  for (std::uint64_t i = 1; i <= 1000; ++i) seen->add(i * 100);
  value_counts sum;
  seen->add_to(sum);
  EXPECT_EQ(sum.count(), 1000u);
  EXPECT_NEAR(static_cast<double>(sum.quantile(0.5)), 50'000, 12'500);
  EXPECT_NEAR(static_cast<double>(sum.quantile(0.99)), 99'000, 25'000);
  EXPECT_EQ(value_counts().quantile(0.5), 0u);
}

}  // namespace
}  // namespace troupe::observe
