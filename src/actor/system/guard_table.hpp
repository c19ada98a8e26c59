// guard_table: messages that wait until a predicate over their actor's state holds.
//
// A message whose predicate does not hold is set aside when its turn comes. After each handled
// message the predicates are tried again, oldest first. A message that was set aside has left the
// mailbox: a bounded mailbox has room for another message instead.
// Invariants
//   G1  while a walk pauses, its bucket's `walks_` entry leads to messages in the table: whoever
//       removes one of these moves the entry on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "actor/system/cell_table.hpp"
#include "troupe/actor/conditional_message.hpp"

namespace troupe::actor {

// One for each runtime. The actor's owner adds and removes; a dump reads.
class guard_table {
 public:
  // Adds by age: a message that was set aside before goes back to its old position.
  void add(cell& actor, conditional_message& message) noexcept;
  void remove(cell& actor, conditional_message& message) noexcept;
  // Owner: the actor's oldest message, from which next_waiting leads to the others; null when none
  // waits.
  conditional_message* oldest_of(cell& actor) noexcept;

  // Exact when no turn runs.
  // order: relaxed  the count of outstanding work published it
  bool empty() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }
  // Calls `look` for each message that waits from the beginning of the walk to its end. One thread
  // at a time.
  template <class Look>
  void for_each(Look look) {
    for (std::size_t bucket = 0; bucket < table::buckets; ++bucket) {
      for (bool begins = true; look_at_piece(bucket, begins, look); begins = false)
        table_.let_in(bucket);
    }
  }
  // A piece of that, for which the lock of a bucket is held: at most piece_max messages. False when
  // the bucket has no more.
  static constexpr std::size_t piece_max = 64;
  template <class Look>
  bool look_at_piece(std::size_t bucket, bool begins, Look& look) {
    return table_.look_at(bucket, [&](conditional_message* first) {
      walk& on = walks_[bucket];
      if (begins) on = {first, first};
      for (std::size_t i = 0; i < piece_max; ++i) {
        const conditional_message* const message = on.take();
        if (message == nullptr) return false;
        look(*message->actor, *message);
      }
      return true;
    });
  }

 private:
  using table = cell_table<conditional_message>;
  // Where a walk through a bucket continues: with a message, null for the next actor's, of the
  // actor whose oldest message is `oldest`.
  struct walk {
    conditional_message* oldest = nullptr;
    conditional_message* next = nullptr;
    conditional_message* take() noexcept;
    // The message is about to leave the table.
    void leaves(const conditional_message& message) noexcept;
  };

  friend struct debugger_view;              // src/runtime/debugger_table.cpp
  table table_;                             // the oldest of each actor
  std::array<walk, table::buckets> walks_;  // each guarded by its bucket's lock
  std::atomic<std::uint64_t> waiting_{0}, numbers_{0};
};

}  // namespace troupe::actor
