// supervision state: an actor's supervision: its policy, how it is constructed anew, its parent and
// children, and who watches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actor/spawned/keeping.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

// Of a supervised actor, or a child; in its extras. Its owner's, but for what supervision_table's
// mutex guards.
struct supervision_state {
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  std::move_only_function<void(void*)> make;
  std::int64_t failed_since_ns = 0;  // when the period began in which `failures` are counted
  unsigned failures = 0;
  bool applies_error_policy = false;  // its calls are being cancelled for a failure
  bool escalated = false;             // its parent has its failure
  // what it fails by once its calls are over that could not be cancelled at once
  kept_failure failure_after_calls;
  std::uint8_t cancels_then = 0;  // cell::cancels, or not, if it is constructed anew then
  cell* parent = nullptr;         // counted
  // Guarded by supervision_table's mutex:
  bool has_ended = false;
  cell* next_child = nullptr;  // of the same parent, in the order of their joining
  // what points here; null: it has not joined, or its parent has ended
  cell** child_link = nullptr;
};

// In the actor's turn: it has failed, and has what its policy says.
void apply_error_policy(cell& actor, kept_failure failed) noexcept;
// In its turn, once the call is over with which it was to end: it does so, or is constructed anew.
void end_with_call(cell& actor) noexcept;

// Of one runtime. Threads: any.
class supervision_table {
 public:
  // In the parent's turn, when it has not ended. The caller has a ref to the child.
  void add_child(cell& parent, cell& child);
  // In the actor's turn, when it is constructed or not yet ended.
  void add_watch(cell& of, promise<ended>&& watcher);
  // The actor has ended: its children are stopped, its watchers are told, its parent forgets it.
  void end(cell& of, cell* parent, ended how) noexcept;
  // At the runtime's end: the actor is destroyed, and does not end. Then for what is left.
  void forget(cell& destroyed) noexcept;
  void end_all() noexcept;

  // order: relaxed  see add_child, add_watch
  bool in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> in_use_{false};
  // Not counted: a child leaves before it goes. By their own links, so that each leaves at once,
  // however many there are.
  struct children {
    children() = default;
    children(const children&) = delete;
    cell* first = nullptr;
    cell** end = &first;
  };
  struct watchers {
    std::vector<promise<ended>> waiting;
    std::size_t prune_at = 16;  // those that gave up go then
  };
  void leave(cell& parent, supervision_state& child) noexcept;

  std::mutex mutex_;
  std::unordered_map<cell*, children> children_;
  std::unordered_map<cell*, watchers> watchers_;
};

}  // namespace troupe::actor
