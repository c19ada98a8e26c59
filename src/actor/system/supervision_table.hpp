// supervision_table: the children and the watchers of the actors of one runtime.
// Invariants
//   S1  a child joins its parent at most once, and never once it has ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actor/state/optional_state.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

base::list_link<cell>& sibling_link_of(cell& child) noexcept;

// One for each runtime. Threads: any.
class supervision_table {
 public:
  // In the parent's turn, when the parent has not ended. The caller has a ref to the child.
  void add_child(cell& parent, cell& child);
  // In the actor's turn, when the actor has not ended; it may be under construction.
  void add_watch(cell& actor, promise<ended>&& watcher);
  // The actor has ended: calls `stop` for its children, notifies its watchers, and removes it from
  // its parent's list. `stop` is called under the mutex.
  void end(cell& actor, cell* parent, ended how, void (*stop)(cell& child) noexcept) noexcept;
  // At the runtime's end: `destroyed` is destroyed without an end. After all of them: notifies the
  // remaining watchers.
  void forget(cell& destroyed) noexcept;
  void end_all() noexcept;

  // Calls `look` with parents and children that have not ended, at most `most` times, and must be
  // short. The two stay meanwhile; `look` reads only members that do not change.
  void for_each_child(std::size_t most, const std::function<void(const cell&, const cell&)>& look);

  // order: relaxed  see add_child, add_watch
  bool in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> in_use_{false};
  // Holds no refs: a child leaves the list before it goes. Linked through the children themselves,
  // so that each leaves in constant time, however many there are.
  using children = base::intrusive_list<cell, &sibling_link_of>;
  struct watchers {
    std::vector<promise<ended>> waiting;
    std::size_t prune_at = 16;  // at this length add_watch removes the watchers that gave up
  };
  void leave(cell& parent, cell& child) noexcept;

  std::mutex mutex_;
  std::unordered_map<cell*, children> children_;
  std::unordered_map<cell*, watchers> watchers_;
};

}  // namespace troupe::actor
