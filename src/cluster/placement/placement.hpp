// placement: which shards this node owns, and which node owns each of the others.
//
// A loop renews all leases of this node every third of a lease, in one call of the store, and reads
// the changes. From the members each node computes how many shards are its part: it drains and
// releases its excess shards, and takes shards without an owner. The loop never waits for a renewal
// or a drain, so that it sees the end of the lease in time.
//
// Invariants
//   L1  This node acts for a shard only until `begun + lease - margin`, by its own clock, where
//       `begun` is when it began the renewal that has succeeded last. The store counts the lease
//       from a later moment, so that another node owns the shard later, if no clock is wrong by
//       more than the margin in one lease.
//   L2  A shard that is released has been drained before: none of its handlers runs, and every
//       answer given is stored. Or `lost` was called for it, since the drain took too long. Each is
//       released as soon as it is at rest, so that handlers of the others can reach its actors at
//       their new node.
// A shard for which `lost` was called comes back with a larger fence only, if the store does as it
// must: the next renewal does not keep it, so that the store takes it away, even if no other node
// needs it.
// The whole protocol: docs/protocols/placement.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/leases/lease_store.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster {

struct placement_options {
  // At least 100 ms. `forever` for a node that runs alone: it has all shards once it was started,
  // there is no loop, and so nothing that keeps the program alive.
  std::chrono::milliseconds lease{6'000};
  // How wrong the clocks of the node and of the store may be in one lease, and the time that a
  // handler's answer takes to be seen. Less than half of a lease.
  std::chrono::milliseconds margin{600};
  // How long a drain may take. Shards that are not drained by then are given up.
  std::chrono::nanoseconds drain_max = std::chrono::seconds(10);
  // For tests, the clock of the node; else its own clock, which runs while the machine is
  // suspended, or the virtual one of a simulated program.
  std::function<std::chrono::nanoseconds()> clock{};
};

// Counts of renewals so far, by outcome.
struct placement_counts {
  std::uint64_t renewals = 0;  // that have succeeded
  std::uint64_t failures = 0;  // those that have not
  std::uint64_t lost = 0;      // shards that were passed to `lost`
  std::string last_failure;    // why the last one failed; empty: none did
};

class placement {
 public:
  // Of a drain: these shards are at rest. Thread: any.
  using release = std::function<void(std::vector<held_shard> shards)>;

  // Functions that the loop calls, one at a time. Each may be left out. They must not throw.
  struct hooks {
    // The node owns these shards from now on.
    std::function<void(const std::vector<held_shard>& shards)> gained;
    // The node must not act for these any more, since its lease could not be renewed or another
    // node has them, or since they were not drained in time. Their running handlers are given up.
    std::function<void(const std::vector<std::uint32_t>& shards)> lost;
    // The node is to hand these over. It calls `released` with those where nothing runs and nothing
    // will begin, in parts as it comes to that, or is done when that holds for all that are left.
    // Until then is_mine() returns true; afterwards false. It is cancelled after drain_max.
    std::function<task<>(std::vector<held_shard> shards, release released)> drain;
    // Members have joined or left.
    std::function<void(std::vector<member_row> members)> members;
    // This node has changed rows that others read: notify them, so that each calls hurry(). Without
    // it, or if it does not reach them, they see it at the end of their periods.
    std::function<void()> changed;
  };

  // Errors: option_error for options that make no sense.
  placement(runtime& on, std::unique_ptr<lease_store> store, std::string cluster, member_row self,
            placement_options chosen, hooks told);
  placement(const placement&) = delete;
  placement& operator=(const placement&) = delete;
  // As kill().
  ~placement();

  // Makes the tables, joins, and begins the loop. Done after the first renewal, and after the first
  // attempt to take free shards. Errors: the store's, and timed_out when it does not answer; then
  // another placement is made for the next attempt.
  task<> start();
  // Drains and releases all, leaves, and ends the loop. After `at most` the shards that are not
  // drained are given up, and if the store does not answer then, the leases run out.
  task<> stop(time_span at_most);
  // As a crash does: the loop ends, and nothing is released. is_mine() returns false from now on,
  // and none of the callbacks is called any more. Thread: any.
  void kill() noexcept;

  // Something has changed: the next renewal is now, and not at the end of the period. At most some
  // times a second. Thread: any.
  void hurry();

  // Whether this node may act for the shard now. Thread: any. Cost: two loads and the clock.
  bool is_mine(std::uint32_t shard) const noexcept;
  // The same, under that fence.
  bool is_mine(std::uint32_t shard, std::uint64_t fence) const noexcept;
  // With which fence; 0: it is not this node's. Thread: any.
  std::uint64_t fence(std::uint32_t shard) const noexcept;
  // The member that owns it, in this node's view; null: none. Thread: any.
  std::shared_ptr<const member_row> owner(std::uint32_t shard) const;
  // By id. Thread: any.
  std::vector<member_row> members() const;
  placement_counts counts() const;

 private:
  class core;
  const std::shared_ptr<core> core_;
};

}  // namespace troupe::cluster
