// local_actors: the actors that are in memory on this node, by shard.
//
// Invariants
//   N1  An actor of a shard is found and made, and gets its messages, under the lock of the shard,
//       and while the node owns the shard. A drained shard therefore gets no message.
//   N2  A holder of a message for an actor keeps its activation: an actor that only the table has
//       is at rest. Only such actors are unloaded, and a shard is handed over when all are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/core/node_core.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/base/small_mutex.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class local_actors {
 public:
  struct actor_counts {
    std::atomic<std::size_t> actors{0};
    std::atomic<std::uint64_t> created{0}, unloaded{0};
    observe::sharded_counter messages;
  };

  explicit local_actors(node_core& core);

  // `behind`: none is found while earlier messages from this node are under way to its shard.
  found_actor find(const address& target, bool behind);
  void remove(activation& actor) noexcept;
  // Those that were idle for too long; and of too many, those that were used least recently.
  void unload_idle();
  const actor_counts& counts() const noexcept { return counts_; }

  shard_lock lock(std::uint32_t shard) { return shard_lock(shards_[shard].mutex); }
  // Messages from this node that are under way to the shard: later ones come behind them. Under the
  // lock of the shard.
  std::size_t& queued(std::uint32_t shard) noexcept { return shards_[shard].queued; }

  // The node owns it from now on.
  void open(const held_shard& shard);
  // Messages in the mailboxes of its actors are refused when their turns come.
  void close(std::uint32_t shard) noexcept;
  // Whether each actor of it is at rest.
  bool is_at_rest(std::uint32_t shard) noexcept;
  // Of a drain: closes the shard if it is at rest, or if `closes`. Returns true if it is at rest,
  // or was lost meanwhile.
  bool begin_hand_over(const held_shard& shard, bool closes);
  // After a look at the shard's durable actors: it goes, or is open again.
  void end_hand_over(const held_shard& shard, bool goes) noexcept;
  // As a crash does: ends all actors.
  void kill() noexcept;
  // Drops all actors, which keep the node.
  void let_go() noexcept;

 private:
  // Of the key alone: actors of two classes with one key are rarely in one shard.
  struct name_hash {
    std::size_t operator()(
        const std::pair<const class_table*, std::string_view>& name) const noexcept {
      return std::hash<std::string_view>()(name.second);
    }
  };
  using actor_map = std::unordered_map<std::pair<const class_table*, std::string_view>,
                                       std::shared_ptr<activation>, name_hash>;
  struct shard_actors {
    base::small_mutex mutex;  // guards the members below
    bool is_open = false;     // owned, and not being drained
    std::uint64_t fence = 0;
    actor_map actors;
    std::size_t queued = 0;
  };

  static bool rests(const shard_actors& shard);  // N2
  void drop(shard_actors& shard, actor_map& gone) noexcept;
  std::int64_t unload_before();

  node_core& core_;
  std::array<shard_actors, own_shard + 1> shards_;
  actor_counts counts_;
};

}  // namespace troupe::cluster::parts
