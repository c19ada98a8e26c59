// guards: messages that wait until a predicate over their actor's state holds.
//
// A message whose predicate does not hold is set aside when its turn comes. After each handled
// message the predicates are tried again, oldest first. A message that was set aside has left the
// mailbox: a bounded mailbox has room for another message instead.
#pragma once

#include <atomic>
#include <cstdint>

#include "actor/lifetime/cell_table.hpp"
#include "troupe/actor/conditional_message.hpp"

namespace troupe::actor {

// One for each runtime. The actor's owner adds and removes; a dump reads.
class guard_table {
 public:
  // Adds by age: a message that was set aside before goes back to its old position.
  void add(cell& actor, conditional_message& one) noexcept;
  void remove(cell& actor, conditional_message& one) noexcept;
  // Owner: the actor's oldest message, from which next_waiting leads to the others; null when none
  // waits.
  conditional_message* oldest_of(cell& actor) noexcept;

  // Exact when no turn runs.
  // order: relaxed  the count of outstanding work published it
  bool empty() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }
  template <class Look>
  void for_each(Look look) {
    table_.for_each([&look](const conditional_message& oldest) {
      for (const conditional_message* one = &oldest; one != nullptr; one = one->next_waiting)
        look(*oldest.of, *one);
    });
  }

 private:
  friend struct debugger_view;             // src/runtime/debugger_table.cpp
  cell_table<conditional_message> table_;  // the oldest of each actor
  std::atomic<std::uint64_t> waiting_{0}, numbers_{0};
};

}  // namespace troupe::actor
