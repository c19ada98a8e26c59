// cell_table: something that few actors have for a while, found by the actor. The nodes bring their
// own state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/atomics.hpp"
#include "troupe/actor/cell.hpp"

namespace troupe::actor {

// Node needs `cell* of` and `Node* next_in_table`. Threads: any.
template <class Node>
class cell_table {
 public:
  // Calls act(slot) under the lock: slot is the actor's node, or null. One to put there ends the
  // chain; one to take away leaves its next_in_table. Nobody's code may run in it.
  template <class Act>
  auto with(const cell& actor, Act act) {
    bucket& system = buckets_[(reinterpret_cast<std::uintptr_t>(&actor) / 64) % buckets_.size()];
    std::lock_guard lock(system.mutex);
    Node** slot = &system.first;
    while (*slot != nullptr && (*slot)->of != &actor) slot = &(*slot)->next_in_table;
    return act(*slot);
  }

  // Under the locks, too.
  template <class Look>
  void for_each(Look look) {
    for (bucket& system : buckets_) {
      std::lock_guard lock(system.mutex);
      for (Node* one = system.first; one != nullptr; one = one->next_in_table) look(*one);
    }
  }

 private:
  struct alignas(base::line_bytes) bucket {
    std::mutex mutex;
    Node* first = nullptr;
  };
  std::array<bucket, 32> buckets_;
};

}  // namespace troupe::actor
