// lease_book: the rules of a renewal, for stores that have all members and shards at hand.
// Invariants: T1 to T4 of lease_store.hpp.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "cluster/leases/lease_store.hpp"

namespace troupe::cluster {

struct lease_book {
  struct member {
    member_row row;
    std::uint64_t round = 0;
    std::chrono::nanoseconds until{0};  // by the clock of the store; max: without end
  };
  struct shard {
    std::string owner;
    std::uint64_t fence = 0;
    std::uint64_t changed = 0;  // the version in which its owner changed
  };

  std::uint64_t version = 1;  // of the last change
  std::uint64_t members_changed = 1;
  std::map<std::string, member> members;  // by id
  std::array<shard, shard_count> shards;

  // Applies the whole renewal, at the time `now`. Throws database::error (conflict) for one
  // that comes late, and does nothing then.
  lease_view apply(const renewal& renewal, std::chrono::nanoseconds now);

 private:
  bool drop_members(const renewal& renewal, std::chrono::nanoseconds now);
  bool free_shards(const renewal& renewal, bool members_differ);
  bool take_shards(const renewal& renewal);
  void give(shard& row, const std::string& to);
  lease_view view_for(const renewal& renewal, std::chrono::nanoseconds now) const;
};

}  // namespace troupe::cluster
