// shard_moves: shards of the actors come to this node of a cluster and leave it.
//
// Invariants
//   S1  The changes and answers of a batch belong to shards that this node owned when it was
//       stored: the transaction checks it, or for a batch that stores nothing the lease.
//   S3  Nothing of a shard is in memory that was read before the node got the shard.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/messages/inbox_reader.hpp"

namespace troupe::durable::parts {

class shard_moves {
 public:
  shard_moves(engine_core& core, forgetting& forgets, inbox_reader& reader) noexcept
      : core_(core), forgetting_(forgets), inbox_reader_(reader) {}
  shard_moves(const shard_moves&) = delete;
  shard_moves& operator=(const shard_moves&) = delete;

  // Thread: any, without the mutex. As the engine's functions of these names.
  void gained(const std::vector<held_shard>& shards);
  void lost(const std::vector<std::uint32_t>& shards);
  std::vector<held_shard> hand_over(const std::vector<held_shard>& shards, bool closes);

  // Why the batch is not to be stored; null: it may be.
  std::exception_ptr refusal_of(const filling& taken);

 private:
  task<> take_over(engine_ref keeps);
  void take(std::uint64_t first_order);
  void lose(const shard_set& lost);
  shard_set working() const;
  void put_off(const shard_set& leaving, refusals& told);
  void put_off(record& message, refusals& told);

  engine_core& core_;
  forgetting& forgetting_;
  inbox_reader& inbox_reader_;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  reminders& reminders_ = core_.reminders;
  shards& shards_ = core_.shards;
  outboxes& outboxes_ = core_.outboxes;
};

}  // namespace troupe::durable::parts
