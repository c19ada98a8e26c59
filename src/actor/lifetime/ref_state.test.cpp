#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "troupe/actor/cell.hpp"

namespace troupe::actor {
namespace {

using dropped = ref_state::dropped;

TEST(ref_state, the_last_of_many_is_told_once) {
  ref_state refs;
  EXPECT_FALSE(refs.add());
  EXPECT_FALSE(refs.add());
  EXPECT_EQ(refs.drop(), dropped::others_left);
  EXPECT_EQ(refs.drop(), dropped::others_left);
  EXPECT_EQ(refs.drop(), dropped::last);
  EXPECT_FALSE(refs.revive()) << "nobody took one to itself";
}

TEST(ref_state, one_that_was_taken_after_the_last_went_revives_it) {
  ref_state refs;
  ASSERT_EQ(refs.drop(), dropped::last);
  refs.add();
  EXPECT_TRUE(refs.revive());
  EXPECT_EQ(refs.drop(), dropped::last) << "told anew";
  EXPECT_FALSE(refs.revive());
}

TEST(ref_state, one_that_was_taken_and_dropped_again_is_not_told_twice) {
  ref_state refs;
  ASSERT_EQ(refs.drop(), dropped::last);
  refs.add();
  EXPECT_EQ(refs.drop(), dropped::others_left);
  EXPECT_FALSE(refs.revive());
}

TEST(ref_state, the_only_one_is_dropped_without_a_locked_instruction_and_many_are_not) {
  ref_state refs;
  refs.add();
  EXPECT_FALSE(refs.drop_only());
  EXPECT_TRUE(refs.drop_one_of_many());
  EXPECT_FALSE(refs.drop_one_of_many()) << "that one is the last";
  EXPECT_TRUE(refs.drop_only());
  EXPECT_FALSE(refs.revive());
}

TEST(ref_state, orphans_count_their_refs_for_the_system) {
  ref_state refs;
  refs.add();
  EXPECT_EQ(refs.make_orphan(), 2u);
  EXPECT_TRUE(refs.add()) << "an orphan: the caller counts";
  EXPECT_FALSE(refs.drop_one_of_many());
  EXPECT_FALSE(refs.drop_only());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refs.drop(), dropped::orphan);
}

TEST(ref_state, one_of_many_threads_drops_the_last) {
  for (int round = 0; round < 200; ++round) {
    ref_state refs;
    std::atomic<int> last{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t) {
      refs.add();
      all.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          refs.add();
          if (!refs.drop_one_of_many() && refs.drop() == dropped::last) ++last;
        }
        if (!refs.drop_one_of_many() && refs.drop() == dropped::last) ++last;
      });
    }
    if (!refs.drop_one_of_many() && refs.drop() == dropped::last) ++last;
    for (auto& thread : all) thread.join();
    ASSERT_EQ(last.load(), 1);
  }
}

}  // namespace
}  // namespace troupe::actor
