// intake: messages that come from the program, from other nodes and from handlers, and their ids: a
// message whose id is known waits for the first one of that id, or has its answer.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/messages/mailboxes.hpp"

namespace troupe::durable::parts {

class intake {
 public:
  intake(engine_core& core, forgetting& forgets, mailboxes& mail) noexcept
      : core_(core), forgetting_(forgets), mailboxes_(mail) {}
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  // Thread: any, without the mutex.
  void send(request request) noexcept;
  // As engine::deliver.
  future<bytes> deliver(stored_message received);

  // With the mutex held.

  // Throws id_mismatch if another message has the same id.
  void check_identity(const record& message) const;
  // Returns true if the message is in memory already: its callers wait for the first message then.
  // `stored`: callers of a post that is stored already; the mutex must be free for their answers.
  bool joins(record& message, std::unique_ptr<answer_to>& stored);
  // Asks the storage for the message's id. The message is `looked_up` meanwhile.
  void begin_look_up(const record_ref& message);
  // The message was asked of another node, and this node has got its actor.
  void bring_here(const record_ref& message);
  // The row of the inbox with this id, which was read meanwhile, is of another message.
  void drop_rival(const record_ref& message, refusals& told);

 private:
  void check_room() const;
  void accept(const record_ref& message, bool came_from_node);
  bool has_rival(const record& message) const noexcept;
  task<> accept_later(engine_ref keeps, record_ref message, bool came_from_node);
  task<> look_up(engine_ref keeps, record_ref message);
  task<> pass_on(engine_ref keeps, record_ref message);

  engine_core& core_;
  forgetting& forgetting_;
  mailboxes& mailboxes_;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
};

}  // namespace troupe::durable::parts
