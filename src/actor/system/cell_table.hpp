// cell_table: finds, by the actor, data that few actors have, and only for a while. The memory of
// the nodes is the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/atomics.hpp"
#include "base/walks/waiters_first.hpp"
#include "troupe/actor/cell.hpp"

namespace troupe::actor {

// Node needs `cell* of` and `Node* next_in_table`. Threads: any.
template <class Node>
class cell_table {
 public:
  static constexpr std::size_t buckets = 32;

  // Calls act(slot) under the lock of the actor's bucket. `slot` is the actor's node, or null at
  // the end of the chain. To add a node, store it there with a null next_in_table; to remove one,
  // store its next_in_table there. act must not run user code.
  template <class Act>
  auto with(const cell& actor, Act act) {
    bucket& chain = buckets_[bucket_of(actor)];
    const auto lock = chain.turns.enter(chain.mutex);
    Node** slot = &chain.first;
    while (*slot != nullptr && (*slot)->actor != &actor) slot = &(*slot)->next_in_table;
    return act(*slot);
  }

  static std::size_t bucket_of(const cell& actor) noexcept {
    return (reinterpret_cast<std::uintptr_t>(&actor) / 64) % buckets;
  }

  // Calls look(first), with the first node of a bucket, under the bucket's lock.
  template <class Look>
  auto look_at(std::size_t bucket, Look look) {
    std::lock_guard lock(buckets_[bucket].mutex);
    return look(buckets_[bucket].first);
  }
  // Call it between two looks at the same bucket: a thread that waits for the bucket's lock gets
  // it.
  void let_in(std::size_t bucket) const noexcept { buckets_[bucket].turns.let_in(); }

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  struct alignas(base::line_bytes) bucket {
    std::mutex mutex;
    base::waiters_first turns;
    Node* first = nullptr;
  };
  std::array<bucket, buckets> buckets_;
};

}  // namespace troupe::actor
