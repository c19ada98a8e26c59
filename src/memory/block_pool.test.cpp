#include "troupe/memory/block_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "memory/stable_pool.hpp"

namespace troupe::memory {
namespace {

TEST(block_pool, blocks_are_aligned_and_apart) {
  std::vector<std::pair<unsigned char*, std::size_t>> taken;
  for (std::size_t bytes : {0u, 1u, 8u, 15u, 16u, 17u, 64u, 100u, 511u, 512u, 513u, 4096u}) {
    for (int i = 0; i < 300; ++i) {
      auto* block = static_cast<unsigned char*>(allocate(bytes));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
      std::memset(block, static_cast<int>(taken.size() % 251), bytes);
      taken.emplace_back(block, bytes);
    }
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto [block, bytes] = taken[i];
    for (std::size_t k = 0; k < bytes; ++k) ASSERT_EQ(block[k], i % 251);
    deallocate(block, bytes);
  }
}

TEST(block_pool, blocks_travel_between_threads) {
  // Each thread frees blocks that another thread took.
  std::mutex mutex;
  std::vector<std::pair<unsigned char*, std::size_t>> shared;
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    for (int i = 0; i < 20000; ++i) {
      const std::size_t bytes = 1 + random() % 600;
      auto* block = static_cast<unsigned char*>(allocate(bytes));
      block[0] = block[bytes - 1] = static_cast<unsigned char>(bytes);
      std::lock_guard lock(mutex);
      shared.emplace_back(block, bytes);
      if (shared.size() > 500) {
        const std::size_t at = random() % shared.size();
        std::swap(shared[at], shared.back());
        const auto [other, size] = shared.back();
        shared.pop_back();
        if (other[0] != static_cast<unsigned char>(size) ||
            other[size - 1] != static_cast<unsigned char>(size))
          std::abort();
        deallocate(other, size);
      }
    }
  };
  std::vector<std::thread> all;
  for (unsigned t = 1; t <= 4; ++t) all.emplace_back(work, t);
  for (auto& thread : all) thread.join();
  for (const auto& [block, bytes] : shared) deallocate(block, bytes);
}

TEST(block_pool, a_thread_that_ends_leaves_its_blocks_to_others) {
  if (TROUPE_PLAIN_BLOCKS) GTEST_SKIP() << "needs block pools: operator new is used throughout";
  std::set<void*> known;
  for (int round = 0; round < 50; ++round) {
    std::thread([&] {
      std::vector<void*> mine;
      for (int i = 0; i < 200; ++i) mine.push_back(allocate(496));
      for (void* block : mine) {
        known.insert(block);
        deallocate(block, 496);
      }
    }).join();
  }
  // The blocks are the same 50 times, except for those that other tests left behind.
  EXPECT_LT(known.size(), 1000u);
}

TEST(block_pool, stable_blocks_are_zero_at_first_and_keep_what_was_written) {
  auto* block = static_cast<std::uint64_t*>(allocate_stable());
  block[3] = 77;
  deallocate_stable(block);
  EXPECT_EQ(block[3], 77u) << "may be looked at when it is free";
  std::set<void*> seen;
  std::vector<void*> taken;
  for (int i = 0; i < 1000; ++i) {
    taken.push_back(allocate_stable());
    EXPECT_TRUE(seen.insert(taken.back()).second);
  }
  for (void* another : taken) deallocate_stable(another);
}

// The thread's own lists are gone when the objects that it made before them are destroyed.
TEST(block_pool, destructors_of_thread_locals_may_use_it) {
  struct late {
    std::vector<std::size_t> sizes;
    ~late() {
      for (const std::size_t bytes : sizes) {
        std::vector<void*> taken;
        for (int i = 0; i < 300; ++i) {  // more than a list and its reserve
          taken.push_back(allocate(bytes));
          std::memset(taken.back(), i, bytes);
        }
        for (void* block : taken) deallocate(block, bytes);
      }
    }
  };
  const std::vector<std::size_t> sizes{1, 64, 65, 512, 513};
  for (int round = 0; round < 20; ++round) {
    std::thread([&] {
      thread_local late last;  // before the first block, so destroyed after the thread's lists
      last.sizes = sizes;
      for (const std::size_t bytes : sizes) deallocate(allocate(bytes), bytes);
    }).join();
  }
}

// Each size has blocks of its own, at least as large.
TEST(block_pool, blocks_of_all_sizes_do_not_overlap) {
  struct taken_block {
    unsigned char* at;
    std::size_t bytes;
  };
  std::vector<taken_block> taken;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t bytes = 1; bytes <= block_bytes_max + 1; ++bytes) {
      auto* const at = static_cast<unsigned char*>(allocate(bytes));
      std::memset(at, static_cast<int>(bytes % 251), bytes);
      taken.push_back({at, bytes});
    }
    for (const taken_block& block : taken) {
      for (std::size_t i = 0; i < block.bytes; ++i) ASSERT_EQ(block.at[i], block.bytes % 251);
      deallocate(block.at, block.bytes);
    }
    taken.clear();
  }
}

}  // namespace
}  // namespace troupe::memory
