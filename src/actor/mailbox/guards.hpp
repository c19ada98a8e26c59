// guards: messages that wait until a predicate over their actor's state holds.
//
// Set aside when they are reached and do not hold; looked at again after each message that is
// handled, oldest first. They are in no mailbox then: a bounded one has room for another message
// instead.
#pragma once

#include <atomic>
#include <cstdint>

#include "actor/lifetime/cell_table.hpp"
#include "troupe/actor/conditional_message.hpp"

namespace troupe::actor {

// Of one runtime. The actor's owner adds and takes; a dump reads.
class guard_table {
 public:
  // By age: one that was reached before stands where it stood.
  void add(cell& actor, conditional_message& one) noexcept;
  void remove(cell& actor, conditional_message& one) noexcept;
  // The owner's: the oldest, which the others follow by next_waiting; null when there is none.
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
  cell_table<conditional_message> table_;  // the oldest of each actor
  std::atomic<std::uint64_t> waiting_{0}, numbers_{0};
};

}  // namespace troupe::actor
