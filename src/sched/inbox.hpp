// inbox: the items that other threads hand to an executor; taken all at once, oldest first.
//
// Threads: any may push and take. Cost: one compare-and-swap for a push, one exchange for a take.
// Invariants
//   I1  the take that gets the items linked by a push sees them completely.
//   I2  items pushed by one thread come out in the order pushed.
// Taking everything leaves no node behind: a node may be pushed again at once (no ABA).
#pragma once

#include "base/atomics.hpp"

namespace troupe::sched {

// Node needs a member `Node* next`.
template <class Node, class Atomics = base::std_atomics>
class inbox {
 public:
  // True when the inbox was empty.
  bool push(Node& item) noexcept {
    // order: relaxed  only compared
    Node* top = top_.load(std::memory_order_relaxed);
    do {
      item.next = top;
      // order: release  publishes the item (I1); pairs with take_all/acquire
    } while (!top_.compare_exchange_weak(top, &item, std::memory_order_release,
                                         std::memory_order_relaxed));
    return top == nullptr;
  }

  // A list through `next`, oldest first; null when empty.
  Node* take_all() noexcept {
    if (empty()) return nullptr;
    // order: acquire  sees the complete items (I1); pairs with push/release
    Node* newest = top_.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }

  // order: relaxed  a hint; a sleeper has a full fence before it (docs/protocols/idle_workers.md)
  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

 private:
  typename Atomics::template atomic<Node*> top_{nullptr};
};

}  // namespace troupe::sched
