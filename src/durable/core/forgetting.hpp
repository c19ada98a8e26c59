// forgetting: how actors and messages leave memory without being stored: everything, or the actors
// of shards that another node owns.
//
// Invariants
//   E4  When a batch is not stored, or its outcome stays unknown, `generation` grows, and
//       everything in memory is forgotten, as by a crash: objects, waiting messages, the open
//       batch. A turn that began in an older generation puts nothing into a batch.
//   E5  While the outcome is unknown (`in_doubt` of availability), nothing is read and no turn
//       begins.
#pragma once

#include <exception>

#include "durable/core/engine_core.hpp"

namespace troupe::durable::parts {

class forgetting {
 public:
  explicit forgetting(engine_core& core) noexcept : core_(core) {}
  forgetting(const forgetting&) = delete;
  forgetting& operator=(const forgetting&) = delete;

  // As a crash does, but callers get errors. `in_doubt`: the outcome of the batch is unknown;
  // nothing is read until commits::end_doubt(). Not with the mutex held.
  void forget_all(filling& failed, const std::exception_ptr& why, bool in_doubt);
  // Returns true, and forgets all for good, if by this failure another process has the store.
  // Not with the mutex held.
  bool lost_to_another(const std::exception_ptr& failed);
  // With the mutex held: this node does not act for these shards any more, nor does
  // its storage.
  void drop(const shard_set& lost);

 private:
  void drop_moved(const filling& failed, const std::exception_ptr& why);

  engine_core& core_;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  reminders& reminders_ = core_.reminders;
  shards& shards_ = core_.shards;
  outboxes& outboxes_ = core_.outboxes;
  numbers& numbers_ = core_.numbers;
};

}  // namespace troupe::durable::parts
