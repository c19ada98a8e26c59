#include "memory/slot_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>

namespace troupe::memory {
namespace {

// Does what the runtime does with a slot: the second word says that it is in use.
void* take(slot_space& from, std::size_t bytes, slot_space::magazines* mine = nullptr) {
  void* slot = from.allocate(bytes, mine);
  static_cast<slot_head*>(slot)->in_use = slot;
  return slot;
}

std::set<void*> in_use(slot_space& space) {
  std::set<void*> found;
  space.for_each([&](void* slot) { EXPECT_TRUE(found.insert(slot).second); });
  return found;
}

const std::size_t sizes[] = {1,      8,      16,     24,     40,     255,    256,
                             257,    320,    4032,   4095,   4096,   4097,   5120,
                             16'384, 16'385, 65'000, 65'472, 65'473, 300'000};

TEST(slot_space, the_owner_of_any_slot_is_found_from_its_address) {
  int owner = 0, other_owner = 0;
  slot_space space(&owner), other(&other_owner);
  for (const std::size_t bytes : sizes) {
    for (int i = 0; i < 300 && (bytes < 5000 || i < 3); ++i) {
      void* slot = take(space, bytes);
      void* elsewhere = take(other, bytes);
      ASSERT_EQ(slab::of(slot).owner, &owner);
      ASSERT_EQ(slab::of(elsewhere).owner, &other_owner);
    }
  }
}

TEST(slot_space, slots_hold_what_was_asked_for_and_do_not_overlap) {
  int owner = 0;
  slot_space space(&owner);
  std::vector<std::pair<unsigned char*, std::size_t>> all;
  for (const std::size_t bytes : sizes) {
    for (int i = 0; i < 50; ++i) {
      auto* slot = static_cast<unsigned char*>(take(space, bytes));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(slot) % (8), 0u);
      all.emplace_back(slot, bytes);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Writes to the whole slot behind its head.
    if (all[i].second > sizeof(slot_head)) {
      std::memset(all[i].first + sizeof(slot_head), static_cast<int>(i % 251),
                  all[i].second - sizeof(slot_head));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = sizeof(slot_head); k < all[i].second; ++k)
      ASSERT_EQ(all[i].first[k], i % 251);
    space.free(all[i].first, nullptr);
  }
  EXPECT_TRUE(in_use(space).empty());
}

TEST(slot_space, a_slot_of_a_multiple_of_an_alignment_begins_behind_an_aligned_place) {
  int owner = 0;
  slot_space space(&owner);
  for (const std::size_t alignment : {8u, 16u, 32u, 64u, 128u, 256u, 512u, 1024u, 2048u}) {
    for (const std::size_t bytes : sizes) {
      const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
      for (int i = 0; i < 5; ++i) {
        const auto slot = reinterpret_cast<std::uintptr_t>(take(space, rounded));
        ASSERT_EQ((slot - slot_space::first_slot) % alignment, 0u) << rounded;
      }
    }
  }
}

TEST(slot_space, no_two_slots_have_one_number) {
  slot_space space(nullptr), other(nullptr);
  std::set<std::uint64_t> numbers;
  std::size_t slots = 0;
  for (const std::size_t bytes : sizes) {
    for (int i = 0; i < 300 && (bytes < 5000 || i < 3); ++i, ++slots) {
      void* slot = take(space, bytes);
      ASSERT_TRUE(numbers.insert(slot_space::number_of(slot)).second);
      ASSERT_EQ(space.find_number(slot), slot_space::number_of(slot));
      ASSERT_EQ(other.find_number(slot), 0u);
    }
  }
  EXPECT_EQ(numbers.size(), slots);
  EXPECT_EQ(*numbers.begin(), 1u);
  void* large = take(space, 300'000);
  space.free(large, nullptr);
  EXPECT_EQ(space.find_number(large), 0u) << "it has gone, and is not touched";
}

TEST(slot_space, many_slots_share_a_slab) {
  int owner = 0;
  slot_space space(&owner);
  for (const std::size_t bytes :
       {16u, 64u, 96u, 300u, 1000u, 4096u, 4097u, 5000u, 7000u, 10'000u, 16'000u}) {
    constexpr std::size_t count = 1000;
    std::set<slab*> slabs;
    for (std::size_t i = 0; i < count; ++i) slabs.insert(&slab::of(take(space, bytes)));
    // A rest of a slab that is too small for one more slot is never touched.
    EXPECT_LE(slabs.size() * slab_bytes / count, bytes + bytes / 2 + slot_space::first_slot)
        << bytes;
  }
}

TEST(slot_space, for_each_visits_what_is_in_use_and_nothing_else) {
  int owner = 0;
  slot_space space(&owner);
  std::set<void*> expected;
  std::minstd_rand random(3);
  std::vector<void*> taken;
  for (int i = 0; i < 5000; ++i) {
    if (taken.empty() || random() % 3 != 0) {
      void* slot = take(space, sizes[random() % std::size(sizes)]);
      taken.push_back(slot);
      expected.insert(slot);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      expected.erase(taken.back());
      space.free(taken.back(), nullptr);
      taken.pop_back();
    }
  }
  EXPECT_EQ(in_use(space), expected);
}

TEST(slot_space, slots_with_a_block_of_their_own_are_freed_in_any_order) {
  int owner = 0;
  slot_space space(&owner);
  std::vector<void*> taken;
  std::set<void*> expected;
  for (int i = 0; i < 6; ++i) expected.insert(taken.emplace_back(take(space, 50'000)));
  // Frees a slot in the middle, the first, the last, and the one that is the last then.
  for (const std::size_t at : {2u, 0u, 5u, 4u}) {
    space.free(taken[at], nullptr);
    expected.erase(taken[at]);
    ASSERT_EQ(in_use(space), expected);
  }
  expected.insert(take(space, 50'000));
  EXPECT_EQ(in_use(space), expected);
  for (void* slot : expected) space.free(slot, nullptr);
  EXPECT_TRUE(in_use(space).empty());
  expected = {take(space, 50'000)};
  EXPECT_EQ(in_use(space), expected);
}

// Returns the shortest time, over several rounds, of freeing a thousand slots.
std::chrono::nanoseconds time_to_free(slot_space& space, std::size_t bytes) {
  auto least = std::chrono::nanoseconds::max();
  for (int round = 0; round < 7; ++round) {
    std::vector<void*> taken;
    for (int i = 0; i < 1000; ++i) taken.push_back(take(space, bytes));
    const auto start = std::chrono::steady_clock::now();
    for (void* slot : taken) space.free(slot, nullptr);
    least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
  }
  return least;
}

TEST(slot_space, freeing_one_of_many_takes_no_longer) {
  int owner = 0;
  slot_space few(&owner), many(&owner);
  for (int i = 0; i < 20'000; ++i) static_cast<void>(take(many, 20'000));
  EXPECT_LT(time_to_free(many, 20'000), 5 * time_to_free(few, 20'000));
}

TEST(slot_space, a_slot_may_be_taken_while_all_are_visited) {
  int owner = 0;
  slot_space space(&owner);
  for (int i = 0; i < 100; ++i) static_cast<void>(take(space, 48));
  int visited = 0;
  space.for_each([&](void*) {
    if (++visited <= 100) {
      static_cast<void>(take(space, 5000));
      static_cast<void>(take(space, 1000));
    }
  });
  EXPECT_GE(visited, 100);
  EXPECT_EQ(in_use(space).size(), 300u);
}

TEST(slot_space, workers_magazines_and_others_share_the_slots) {
  int owner = 0;
  slot_space space(&owner);
  const auto work = [&](unsigned seed) {
    auto mine = std::make_unique<slot_space::magazines>();
    slot_space::magazines* own = seed % 2 == 0 ? mine.get() : nullptr;
    std::minstd_rand random(seed);
    std::vector<void*> taken;
    for (int i = 0; i < 20000; ++i) {
      if (taken.size() < 100 || random() % 2 == 0) {
        auto* slot = static_cast<void**>(take(space, sizes[random() % 16], own));
        slot[0] = &taken;
        taken.push_back(slot);
      }
      if (taken.size() > 300) {
        for (int k = 0; k < 200; ++k) {
          if (*static_cast<void**>(taken.back()) != &taken) std::abort();
          space.free(taken.back(), own);
          taken.pop_back();
        }
      }
    }
    for (void* slot : taken) space.free(slot, own);
  };
  std::vector<std::thread> all;
  for (unsigned t = 1; t <= 4; ++t) all.emplace_back(work, t);
  for (auto& thread : all) thread.join();
  EXPECT_TRUE(in_use(space).empty());
}

}  // namespace
}  // namespace troupe::memory
