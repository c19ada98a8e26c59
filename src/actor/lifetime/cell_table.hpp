// cell_table: finds, by the actor, something that few actors have and only for a while. The nodes
// bring their own memory.
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
  // Calls act(slot) under the lock. `slot` is the actor's node, or null at the end of the chain. To
  // add a node, store it there with a null next_in_table; to remove one, store its next_in_table
  // there. act must not run user code.
  template <class Act>
  auto with(const cell& actor, Act act) {
    bucket& in = buckets_[(reinterpret_cast<std::uintptr_t>(&actor) / 64) % buckets_.size()];
    std::lock_guard lock(in.mutex);
    Node** slot = &in.first;
    while (*slot != nullptr && (*slot)->of != &actor) slot = &(*slot)->next_in_table;
    return act(*slot);
  }

  // Also under the locks.
  template <class Look>
  void for_each(Look look) {
    for (bucket& in : buckets_) {
      std::lock_guard lock(in.mutex);
      for (Node* one = in.first; one != nullptr; one = one->next_in_table) look(*one);
    }
  }

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  struct alignas(base::line_bytes) bucket {
    std::mutex mutex;
    Node* first = nullptr;
  };
  std::array<bucket, 32> buckets_;
};

}  // namespace troupe::actor
