// lease_store: where the members of a cluster and the owners of its shards are written down. One
// seam, with PostgreSQL, a SQLite file, the simulated store and the store of a node that runs alone
// behind it.
//
// All leases of a member end together, so that the store keeps one time for each member and none
// for each shard.
//
// Invariants
//   T1  a row of a shard has an owner only while that member has a row.
//   T2  the row of a member is deleted when it leaves, or when its lease has expired by the clock
//       of the store; in the same transaction its shards get no owner.
//   T3  the fence of a shard grows by one with each change of its owner, even if it has none then.
//   T4  of the renewals of one member none takes effect after one with a larger round.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/durable/storage.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster {

using durable::held_shard;
using durable::shard_count;

// A lease that never runs out, and a time that never comes.
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

struct member_row {
  std::string id;           // of one life of a node: a node that is started again has another one
  std::string name;         // as the program has given it
  bool is_leaving = false;  // it hands its shards over, and gets none
  std::string page{};       // the address of its page; empty: not known
  auto operator<=>(const member_row&) const = default;
};

struct shard_row {
  std::uint32_t shard = 0;
  std::string owner;        // the id of a member; empty: none
  std::uint64_t fence = 0;  // grows by one with each change of the owner
};

// All that a node reports to the store in one period, and all it asks. It is one transaction.
struct renewal {
  member_row self;
  std::uint64_t round = 0;  // larger than the round of each earlier renewal of this member
  // How long the leases of the member last from now on, by the clock of the store; or `forever`.
  std::chrono::milliseconds lease{};
  // All shards that the node still has. The store releases all other shards that it lists for this
  // member, and those that it lists with another fence.
  std::vector<held_shard> kept;
  std::uint32_t wanted = 0;  // at most so many shards without an owner are taken
  // The view has the changes since then: `seen` of the last view. 0 after a failed renewal as well:
  // the view has everything, and the store assumes nothing about earlier views.
  std::uint64_t seen = 0;
  bool leaves = false;  // the member leaves: all its shards are released
};

struct lease_view {
  std::vector<held_shard> held;  // all shards of this node now, both kept and newly taken
  // By id; none: they have not changed since `seen`.
  std::optional<std::vector<member_row>> members;
  std::vector<shard_row> changed;  // whose owner or fence has changed since `seen`
  // How long it is, by the clock of the store, until a lease of another member runs out if that
  // member does not renew it.
  std::chrono::milliseconds next_end = forever;
  std::uint64_t seen = 0;    // for the next renewal
  bool has_changed = false;  // this renewal has changed members or owners
};

// Thread: await the calls in tasks; one at a time. Errors: database::error; after it, and after a
// call that was cancelled, nothing may be assumed: it may have taken effect, or do so later (T4).
class lease_store {
 public:
  lease_store() = default;
  lease_store(const lease_store&) = delete;
  lease_store& operator=(const lease_store&) = delete;
  virtual ~lease_store() = default;

  // Creates its tables, if they do not exist. `cluster` names one of several clusters.
  virtual task<> open(std::string cluster) = 0;
  virtual task<lease_view> renew(renewal renewal) = 0;
};

}  // namespace troupe::cluster
