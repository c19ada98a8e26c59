// reminder_sender: sends the messages of reminders that are due, even after a restart.
#pragma once

#include <cstddef>
#include <vector>

#include "durable/core/engine_core.hpp"
#include "durable/messages/mailboxes.hpp"

namespace troupe::durable::parts {

class reminder_sender {
 public:
  reminder_sender(engine_core& core, mailboxes& mail) noexcept : core_(core), mailboxes_(mail) {}
  reminder_sender(const reminder_sender&) = delete;
  reminder_sender& operator=(const reminder_sender&) = delete;

  // Before the first reminder is planned.
  void open();

 private:
  task<> fire(engine_ref keeps);
  void fire_all(const std::vector<stored_reminder>& first, std::size_t most);
  bool fire_one(const stored_reminder& reminder, due_time now);

  engine_core& core_;
  mailboxes& mailboxes_;
  reminders& reminders_ = core_.reminders;
  availability& health_ = core_.health;
  inbox& inbox_ = core_.inbox;
  batches& batches_ = core_.batches;
  shards& shards_ = core_.shards;
};

}  // namespace troupe::durable::parts
