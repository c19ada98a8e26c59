// supervision_state: an actor's error policy, the way to construct it again, its parent, its
// children, and its watchers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actor/state/kept_failure.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

// For an actor that has an error policy or a parent; lies in its optional state. Only the actor's
// owner uses it, except for the members that supervision_table's mutex guards.
struct supervision_state {
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  unique_function<void(void*)> make;
  std::int64_t failed_since_ns = 0;  // start of the period in which `failures` are counted
  unsigned failures = 0;
  bool applies_error_policy = false;  // its calls are being cancelled because of a failure
  bool escalated = false;             // its parent has received its failure
  // the failure that is applied when the calls have ended that could not be cancelled at once
  kept_failure failure_after_calls;
  // cell::cancels or 0: the value of that flag once the actor is constructed anew after those calls
  std::uint8_t cancels_then = 0;
  cell* parent = nullptr;  // holds a ref
  // Guarded by supervision_table's mutex. `listed`: among its parent's children.
  // Invariant S1: a child joins its parent at most once, and never once it has ended.
  enum class membership : std::uint8_t { none, listed, left, ended };
  membership in_parent = membership::none;
  base::list_link<cell> sibling_link;  // of the same parent, in the order in which they joined
};
base::list_link<cell>& sibling_link_of(cell& child) noexcept;

// In the actor's turn: the actor has failed; applies its policy.
void apply_error_policy(cell& actor, kept_failure failed) noexcept;
// In the actor's turn, when the last call has ended for which the end of the actor waited: ends the
// actor, or constructs it anew.
void end_with_call(cell& actor) noexcept;

// One for each runtime. Threads: any.
class supervision_table {
 public:
  // In the parent's turn, when the parent has not ended. The caller has a ref to the child.
  void add_child(cell& parent, cell& child);
  // In the actor's turn, when the actor has not ended; it may be under construction.
  void add_watch(cell& of, promise<ended>&& watcher);
  // The actor has ended: stops its children, tells its watchers, and takes it from its parent's
  // list.
  void end(cell& of, cell* parent, ended how) noexcept;
  // At the runtime's end: `destroyed` is destroyed without an end. After all of them: tells the
  // watchers that are left.
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
