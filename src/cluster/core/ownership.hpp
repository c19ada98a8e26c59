// ownership: the placement of a node, which is another one for each attempt to join.
//
// Invariants
//   N7  Only the task that joins replaces the placement, and only before the node has joined. A
//       node that has joined reads it without the lock.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/core/stage.hpp"
#include "cluster/placement/placement.hpp"

namespace troupe::cluster::parts {

// Thread: any, unless a function says otherwise.
class ownership {
 public:
  explicit ownership(const node_stage& stage) noexcept : stage_(stage) {}

  // Replaces the placement; the one before is killed. Thread: of the task that joins.
  void use(std::unique_ptr<placement> next) noexcept;
  // Of the placement. Thread: of the task that joins.
  task<> start();
  // Of a node that has joined.
  task<> stop(time_span at_most);
  void kill() noexcept;

  // Why the last attempt to join failed; null: it has not.
  void set_failure(std::exception_ptr failed) noexcept;
  std::exception_ptr failed() const noexcept;
  // The last failure of the attempts to join, or of a renewal; empty: there was none.
  std::string last_failure() const;

  bool is_mine(std::uint32_t shard) const noexcept;
  bool owns(std::uint32_t shard, std::uint64_t fence) const noexcept;
  // Null: it has no owner, in this node's view.
  std::shared_ptr<const member_row> owner(std::uint32_t shard) const;
  void hurry();
  placement_counts counts() const;
  std::vector<member_row> members() const;

 private:
  template <class Look>
  auto look(Look look) const {
    if (stage_.has_joined()) return look(*placement_);
    std::lock_guard held(mutex_);
    return look(*placement_);
  }

  const node_stage& stage_;
  mutable std::mutex mutex_;              // guards the members below
  std::unique_ptr<placement> placement_;  // N7
  std::exception_ptr failed_;
};

}  // namespace troupe::cluster::parts
