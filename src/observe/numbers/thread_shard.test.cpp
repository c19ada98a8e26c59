#include "observe/numbers/thread_shard.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <set>
#include <thread>
#include <vector>

#include "observe/numbers/sharded.hpp"

namespace troupe::observe {
namespace {

// Runs `work(i)` on so many threads, all of which live until each has done it.
template <class Work>
void on_threads(std::size_t count, Work work) {
  std::barrier done(static_cast<std::ptrdiff_t>(count));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      work(i);
      done.arrive_and_wait();
    });
  }
}

TEST(thread_shards, are_of_one_thread_each_and_shared_beyond_the_last) {
  constexpr std::size_t threads = thread_shard::own_max + 10;
  std::array<std::size_t, threads> taken{};
  for (int round = 0; round < 3; ++round) {  // what the threads of a round leave, the next take
    on_threads(threads, [&](std::size_t i) { taken[i] = thread_shard::here(); });
    std::multiset<std::size_t> all(taken.begin(), taken.end());
    // This thread, and others of the program, may have one.
    EXPECT_GE(all.count(thread_shard::shared), 10u);
    EXPECT_LE(all.count(thread_shard::shared), 20u);
    for (std::size_t own = 0; own < thread_shard::own_max; ++own) EXPECT_LE(all.count(own), 1u);
  }
}

TEST(thread_shards, count_exactly_whatever_threads_come_and_go) {
  static constexpr std::array bounds{1.0, 2.0};
  constexpr std::size_t rounds = 3, threads = thread_shard::own_max + 6, values = 500;
  sharded_histogram sizes(bounds);
  for (std::size_t round = 0; round < rounds; ++round) {
    on_threads(threads, [&](std::size_t i) {
      for (std::size_t n = 0; n < values; ++n) sizes.add(static_cast<double>(i % 3) + 0.5);
    });
  }
  const distribution all = sizes.get();
  std::array<std::uint64_t, 3> wanted{};
  double sum = 0;
  for (std::size_t i = 0; i < threads; ++i) {
    wanted[i % 3] += rounds * values;
    sum += (static_cast<double>(i % 3) + 0.5) * rounds * values;
  }
  EXPECT_EQ(all.counts, std::vector<std::uint64_t>(wanted.begin(), wanted.end()));
  EXPECT_EQ(all.sum, sum);
  EXPECT_EQ(sizes.count(), rounds * threads * values);
}

TEST(thread_shards, a_bound_belongs_to_the_bucket_below_it) {
  static constexpr std::array bounds{1.0, 2.0};
  sharded_histogram sizes(bounds);
  for (const double value : {-1.0, 1.0, 1.5, 2.0, 2.5}) sizes.add(value);
  EXPECT_EQ(sizes.get().counts, (std::vector<std::uint64_t>{2, 2, 1}));
}

}  // namespace
}  // namespace troupe::observe
