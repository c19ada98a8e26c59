// mailboxes: how a message comes to the actor in memory that handles it, or stays outside of
// memory.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   P1  A message that waits for its actor is at no other place.
#pragma once

#include <cstdint>
#include <string>

#include "durable/core/engine_core.hpp"

namespace troupe::durable::parts {

class mailboxes {
 public:
  explicit mailboxes(engine_core& core) noexcept : core_(core) {}
  mailboxes(const mailboxes&) = delete;
  mailboxes& operator=(const mailboxes&) = delete;

  // The actor in memory, which is added if there is none.
  activation& actor_of(const kind_table& kind, const std::string& key);
  // A message that is new on this node.
  void take_in(const record_ref& message);
  // The message comes into the inbox with the open batch.
  void arrive(const record_ref& message);
  // The actor handles the message after those that wait for it already.
  void enqueue(const record_ref& message, activation& actor);
  // The message is handled when it is read from the inbox.
  void leave_out(const record_ref& message);

 private:
  engine_core& core_;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
  numbers& numbers_ = core_.numbers;
};

}  // namespace troupe::durable::parts
