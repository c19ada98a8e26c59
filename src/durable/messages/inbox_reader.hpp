// inbox_reader: reads the messages that are stored and not in memory, as long as there is room.
#pragma once

#include <cstddef>
#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/core/forgetting.hpp"
#include "durable/memory/answer_list.hpp"
#include "durable/messages/intake.hpp"
#include "durable/messages/mailboxes.hpp"
#include "durable/messages/outgoing.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::durable::parts {

class inbox_reader {
 public:
  inbox_reader(engine_core& core, forgetting& forgets, mailboxes& mail, intake& intake,
               outgoing& outgoing) noexcept
      : core_(core), forgetting_(forgets), mailboxes_(mail), intake_(intake), outgoing_(outgoing) {}
  inbox_reader(const inbox_reader&) = delete;
  inbox_reader& operator=(const inbox_reader&) = delete;
  ~inbox_reader() { away_timer_.cancel(); }

  // The task of engine_core::need_inbox().
  task<> read_all(engine_ref keeps);
  // The database failed. Until it is tried again, messages fail at once. Not with the mutex held.
  void try_again_later();
  // With the mutex held: nothing that is in memory is read from the inbox again.
  void hold_all();

 private:
  void take_page(std::vector<stored_message> page, refusals& told);
  void end_backlog();

  engine_core& core_;
  forgetting& forgetting_;
  mailboxes& mailboxes_;
  intake& intake_;
  outgoing& outgoing_;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  actors& actors_ = core_.actors;
  known_messages& known_ = core_.known;
  shards& shards_ = core_.shards;
  outboxes& outboxes_ = core_.outboxes;
  timer away_timer_;  // guarded by the mutex
};

}  // namespace troupe::durable::parts
