// durable_actors: the engine of this node's durable actors, and their messages to and from other
// nodes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/core/frames.hpp"
#include "cluster/core/node_core.hpp"
#include "cluster/members/membership.hpp"
#include "durable/engine/engine.hpp"
#include "troupe/sync/semaphore.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class durable_actors {
 public:
  durable_actors(node_core& core, membership& members) noexcept : core_(core), members_(members) {}

  // Of a node that was given durable classes.
  void open(std::unique_ptr<durable::storage> storage);
  bool is_open() const noexcept { return engine_ != nullptr; }
  // Makes the tables, beside the tables of the leases.
  task<> open_store();
  // Errors: usage_error: the node has none, or has not joined.
  const durable::store& store() const;

  void gained(const std::vector<held_shard>& shards);
  void lost(const std::vector<std::uint32_t>& shards);
  // Of shards in order. Returns the shards whose durable actors all rest, in order.
  std::vector<held_shard> hand_over(const std::vector<held_shard>& shards, bool closes);

  // To the node that owns the receiver, until that node has the message or its fate is unknown.
  // Lifetime: `self` while `keeps` is there.
  static task<bytes> forward(durable_actors* self, state_ref keeps,
                             durable::stored_message message);
  // Asks the node where the actor is.
  static task<bool> ask_for_cycle(durable_actors* self, state_ref keeps,
                                  durable::parts::cycle_question question);

  // Of other nodes. They return the frame with the reason if it did not run; "": an answer follows.
  std::string serve_message(const request_frame& request, const std::string& reply,
                            semaphore::permit permit);
  std::string serve_cycle(const request_frame& request, const std::string& reply,
                          semaphore::permit permit);

 private:
  task<bytes> forward_once(const durable::stored_message& message, const std::string& owner,
                           bool& again);
  task<std::string> request(const std::string& owner, const bytes& encoded, bool& again);
  static task<> answer_message(durable_actors* self, state_ref keeps, std::string reply,
                               future<bytes> from, semaphore::permit permit);
  static task<> answer_cycle(durable_actors* self, state_ref keeps, std::string reply,
                             durable::parts::cycle_question question, semaphore::permit permit);
  // Whether durable actors of this node are in the database of the cluster.
  bool is_shared() const noexcept { return engine_ != nullptr && !core_.is_alone(); }

  node_core& core_;
  membership& members_;
  std::shared_ptr<durable::parts::engine> engine_;  // null: no durable classes
  std::optional<durable::store> store_;
};

}  // namespace troupe::cluster::parts
