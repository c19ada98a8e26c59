#include "observe/numbers/exemplars.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "observe/numbers/sharded.hpp"

namespace troupe::observe {
namespace {

bool is_in_trace = false;
bool read_test_trace(exemplar& to) noexcept {
  to.trace_id.fill(1);
  to.span_id.fill(2);
  to.unix_ns = 3;
  return is_in_trace;
}

// While it exists, spans are recorded, and calls are in a trace of which they are or are not.
class in_trace {
 public:
  explicit in_trace(bool records) {
    is_in_trace = records;
    // order: relaxed  one thread
    reads_trace.store(&read_test_trace, std::memory_order_relaxed);
  }
  in_trace(const in_trace&) = delete;
  in_trace& operator=(const in_trace&) = delete;
  ~in_trace() {
    reads_trace.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as above
  }
};

constexpr std::array bounds{1.0, 2.0};

TEST(exemplars, each_bucket_has_its_last_one) {
  sharded_histogram values(bounds);
  values.add(0.5);
  EXPECT_TRUE(values.get().exemplars.empty()) << "no spans are recorded";
  {
    const in_trace unsampled(false);
    values.add(0.5);
    EXPECT_TRUE(values.get().exemplars.empty()) << "it is in no trace that is recorded";
  }
  {
    const in_trace sampled(true);
    for (const double value : {0.25, 3.0, 0.75}) values.add(value);
  }
  values.add(0.1);
  const std::vector<exemplar> found = values.get().exemplars;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].bucket, 0u);
  EXPECT_EQ(found[0].value, 0.75);
  EXPECT_EQ(found[0].trace_id[15], 1);
  EXPECT_EQ(found[0].span_id[7], 2);
  EXPECT_EQ(found[0].unix_ns, 3);
  EXPECT_EQ(found[1].bucket, 2u);
  EXPECT_EQ(found[1].value, 3.0);
}

TEST(exemplars, are_whole_while_threads_change_them) {
  const in_trace sampled(true);
  sharded_histogram values(bounds);
  std::vector<std::thread> writers;
  constexpr int rounds = 20'000;
  for (const double value : {0.5, 1.5, 2.5})
    writers.emplace_back([&values, value] {
      for (int i = 0; i < rounds; ++i) values.add(value);
    });
  for (int i = 0; i < 1'000; ++i) {
    for (const exemplar& kept : values.get().exemplars)
      ASSERT_EQ(kept.value, static_cast<double>(kept.bucket) + 0.5);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(values.get().exemplars.size(), 3u);
  EXPECT_EQ(values.get().count(), std::uint64_t{3 * rounds});
}

}  // namespace
}  // namespace troupe::observe
