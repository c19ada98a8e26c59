// shard_scope: the cluster around an engine. Actors are divided among the nodes by shards; each
// node has an engine, and all engines have one database.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

#include "troupe/durable/storage.hpp"
#include "troupe/task/task.hpp"

namespace troupe::durable::parts {

using shard_set = std::bitset<shard_count>;

// Whether an ask, which waits at this actor or is handled by it, waits for another ask to be
// answered, over at most so many other nodes.
struct cycle_question {
  actor_name to;
  message_id ask, other;
  std::uint32_t nodes_left = 16;
};

// Thread: any; shard_of and acts_for are called with the engine's mutex held, and must not call it.
class shard_scope {
 public:
  shard_scope() = default;
  shard_scope(const shard_scope&) = delete;
  shard_scope& operator=(const shard_scope&) = delete;
  virtual ~shard_scope() = default;

  // Below shard_count, and the same on all nodes.
  virtual std::uint32_t shard_of(std::string_view kind, std::string_view key) const noexcept = 0;
  // Throws usage_error for a key of which a message could not travel between the nodes. Such a key
  // is refused on all of them, whichever has its shard.
  virtual void check_key(std::string_view) const {}
  // Whether the lease of this shard, with this fence, lasts at this moment. It is asked before
  // something is answered that no transaction has checked.
  virtual bool acts_for(const held_shard& shard) const noexcept = 0;
  // Hands a message to the node that acts for its receiver, which calls deliver(): a post until it
  // is stored there, others until they are answered. A message that is `named` may be sent again
  // if its arrival is unknown; the engine calls this again after each error but
  // handler_failed, unknown_method and deadlock.
  virtual task<bytes> forward(stored_message message) = 0;
  // Asks engine::waits_for at the node that acts for `question.to`. Errors: any; the answer is
  // unknown.
  virtual task<bool> waits_for(cycle_question question) = 0;
};

}  // namespace troupe::durable::parts
