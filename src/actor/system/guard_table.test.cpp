#include "actor/system/guard_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <vector>

namespace troupe::actor {
namespace {

// Messages of three cells whose chains lie in one bucket. The cells are never touched: the table
// knows them by their addresses.
class guards_of_three : public testing::Test {
 protected:
  static constexpr std::size_t per_actor = 100, stride = 64 * 32;
  guards_of_three() {
    for (std::size_t i = 0; i < 3 * per_actor; ++i) {
      all_.push_back(std::make_unique<conditional_message>(nullptr, nullptr));
      table_.add(cell_of(i), *all_.back());
      listed_.insert(all_.back().get());
    }
  }
  cell& cell_of(std::size_t i) { return *reinterpret_cast<cell*>(&memory_[(i % 3) * stride]); }
  void remove(std::size_t i) {
    table_.remove(cell_of(i), *all_[i]);
    listed_.erase(all_[i].get());
  }
  std::size_t bucket() {
    for (std::size_t at = 0; at < 32; ++at) {
      bool is_here = false;
      const auto look = [&](const cell&, const message&) { is_here = true; };
      static_cast<void>(table_.look_at_piece(at, true, look));
      if (is_here) return at;
    }
    ADD_FAILURE() << "no bucket has messages";
    return 0;
  }
  // Walks through the bucket. Checks that each piece is bounded, and no message is seen twice.
  template <class Between>
  std::set<const message*> walk(Between between) {
    std::set<const message*> seen;
    std::size_t piece = 0;
    const auto look = [&](const cell&, const message& message_seen) {
      ++piece;
      EXPECT_TRUE(seen.insert(&message_seen).second);
      EXPECT_TRUE(listed_.contains(&message_seen));
    };
    const std::size_t at = bucket();
    for (bool begins = true; table_.look_at_piece(at, begins, look); begins = false) {
      EXPECT_EQ(piece, guard_table::piece_max);
      piece = 0;
      between(seen);
    }
    EXPECT_LE(piece, guard_table::piece_max);
    return seen;
  }

  guard_table table_;
  std::vector<std::unique_ptr<conditional_message>> all_;
  std::set<const message*> listed_;
  alignas(64) std::byte memory_[3 * stride] = {};
};

TEST_F(guards_of_three, a_walk_sees_each_message_once_and_holds_the_lock_for_few) {
  EXPECT_EQ(walk([](const auto&) {}).size(), 3 * per_actor);
}

TEST_F(guards_of_three, messages_that_leave_between_two_pieces_end_no_walk) {
  // all orders in which an actor's messages may leave, at each pause
  for (std::size_t first = 0; first < 3 * per_actor; first += 7) {
    SCOPED_TRACE(first);
    std::size_t next = first;
    std::set<std::size_t> left;
    const auto seen = walk([&](const auto&) {
      for (int i = 0; i < 40; ++i, next = (next + 1) % (3 * per_actor)) {
        if (left.insert(next).second) remove(next);
      }
    });
    for (const message* waiting : listed_) EXPECT_TRUE(seen.contains(waiting));
    for (const std::size_t i : left) {
      table_.add(cell_of(i), *all_[i]);
      listed_.insert(all_[i].get());
    }
  }
}

TEST_F(guards_of_three, an_actor_may_leave_with_all_its_messages) {
  for (std::size_t actor = 0; actor < 3; ++actor) {
    SCOPED_TRACE(actor);
    const auto each = [&](auto act) {
      for (std::size_t i = actor; i < all_.size(); i += 3) act(i);
    };
    bool is_first = true;
    const auto seen = walk([&](const auto&) {
      if (std::exchange(is_first, false)) each([&](std::size_t i) { remove(i); });
    });
    for (const message* waiting : listed_) EXPECT_TRUE(seen.contains(waiting));
    each([&](std::size_t i) {
      table_.add(cell_of(i), *all_[i]);
      listed_.insert(all_[i].get());
    });
  }
}

TEST_F(guards_of_three, an_older_message_may_come_back_between_two_pieces) {
  for (std::size_t i = 0; i < 3; ++i) remove(i);
  bool is_first = true;
  const auto seen = walk([&](const auto&) {
    if (!std::exchange(is_first, false)) return;
    for (std::size_t i = 0; i < 3; ++i) {
      table_.add(cell_of(i), *all_[i]);
      listed_.insert(all_[i].get());
    }
  });
  for (std::size_t i = 3; i < all_.size(); ++i) EXPECT_TRUE(seen.contains(all_[i].get())) << i;
}

}  // namespace
}  // namespace troupe::actor
