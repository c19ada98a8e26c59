// outgoing: messages to actors of other nodes: posts, which lie in outboxes, and the asks of
// handlers.
//
// Invariants
//   S2  A message to another node leaves only after the batch is stored with which it was sent, and
//       an ask only after a transaction has seen that the asker's shard is this node's. Changes
//       by an ask on this node are stored only if the transaction sees the same.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "durable/core/engine_core.hpp"
#include "durable/messages/intake.hpp"

namespace troupe::durable::parts {

class outgoing {
 public:
  outgoing(engine_core& core, intake& intake) noexcept : core_(core), intake_(intake) {}
  outgoing(const outgoing&) = delete;
  outgoing& operator=(const outgoing&) = delete;

  // With the mutex held.

  // Whether the post needs no outbox.
  bool goes_directly(const record& message, const activation& sender) const;
  // The post goes to its receiver's node after those to the same receiver.
  void post_elsewhere(const record_ref& message);
  // The ask goes to its receiver's node, again and again until it is answered.
  void begin_ask(const record_ref& message);

 private:
  task<> empty_outbox(engine_ref keeps, std::shared_ptr<outbox> outbox, std::uint64_t generation);
  bool next_of(outbox& from, std::uint64_t generation, record_ref& message, bool& is_for_here);
  void sent_on(outbox& from, const record_ref& message);
  task<> ask_elsewhere(engine_ref keeps, record_ref message);
  bool still_asks(const record_ref& message);
  void end_ask(const record_ref& message, const std::exception_ptr& failed, const bytes& value);

  engine_core& core_;
  intake& intake_;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
  outboxes& outboxes_ = core_.outboxes;
};

}  // namespace troupe::durable::parts
