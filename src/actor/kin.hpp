// kin: an actor's supervision: its policy, how it is constructed anew, its parent and children, and who watches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "troupe/actor/supervision.hpp"
#include "troupe/task/future.hpp"

namespace troupe::actor {

// Of a supervised actor, or a child; in its extras. Its owner's, but for what kin_table's mutex guards.
struct kin {
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  std::move_only_function<void(void*)> make;
  std::int64_t failed_since_ns = 0;  // when the period began in which `failures` are counted
  unsigned failures = 0;
  cell* parent = nullptr;  // counted
  bool has_ended = false;  // guarded by kin_table's mutex
};

// In the actor's turn: it has failed, and has what its policy says.
void suffer(cell& actor, std::exception_ptr what) noexcept;

// Of one runtime. Threads: any.
class kin_table {
 public:
  // In the parent's turn, when it has not ended. The caller has a ref to the child.
  void add_child(cell& parent, cell& child);
  // In the actor's turn, when it is born or not yet ended.
  void add_watch(cell& of, promise<ended>&& watcher);
  // The actor has ended: its children are stopped, its watchers are told, its parent forgets it.
  void end(cell& of, cell* parent, ended how) noexcept;
  // At the runtime's end.
  void end_all() noexcept;

  // order: relaxed  see add_child, add_watch
  bool in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> in_use_{false};
  std::mutex mutex_;
  // Not counted: a child leaves before it goes.
  std::unordered_map<cell*, std::vector<cell*>> children_;
  std::unordered_map<cell*, std::vector<promise<ended>>> watchers_;
};

}  // namespace troupe::actor
