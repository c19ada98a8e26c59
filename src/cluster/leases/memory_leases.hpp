// memory_leases: a store of leases in memory: for a node that runs alone, and for simulations, in
// which several nodes share it and it fails according to the seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/leases/lease_store.hpp"

namespace troupe::cluster {

// How often the store fails. Each number is one in so many renewals; 0 is never.
struct lease_faults {
  std::uint64_t refuses = 0;  // the renewal fails and changes nothing
  // The renewal fails, and has taken effect, or not, or does so up to `late_max` later.
  std::uint64_t loses = 0;
  std::chrono::nanoseconds late_max{0};
  std::uint64_t hangs = 0;  // no answer comes, until the caller gives up
  // Each renewal takes a random time up to this one, half of it before it takes effect.
  std::chrono::nanoseconds delay_max{0};
};

// Copies are the same store. Thread: any. Lifetime: the data lasts as long as a copy or a
// lease_store.
class memory_leases {
 public:
  // By which leases run out; never called while they are `forever`. Without one it is
  // troupe::now().
  explicit memory_leases(std::function<std::chrono::nanoseconds()> clock = {});

  std::unique_ptr<lease_store> store() const;

  // From now on.
  void set_faults(const lease_faults& now) const;
  // While it is unavailable, or the node is cut off from it, renewals fail.
  void set_away(bool away) const;
  void set_cut_off(const std::string& member, bool cut_off) const;

  std::vector<shard_row> shards() const;
  bool is_owner(const std::string& member, const held_shard& shard) const;
  std::vector<member_row> members() const;

  struct tables;

 private:
  std::shared_ptr<tables> tables_;
};

}  // namespace troupe::cluster
