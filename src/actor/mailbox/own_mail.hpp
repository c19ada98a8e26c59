// own_mail: which messages are the runtime's own, and which count towards a mailbox's limit.
#pragma once

#include "actor/state/optional_state.hpp"
#include "troupe/actor/method_message.hpp"

namespace troupe::actor {

// Notifies the actor that its last ref was dropped (lifetime/ending.cpp).
const char* unreferenced_by_message(message* mail, void* object, message_act act);

// Under drop_old: makes the actor drop surplus mail although its turn is suspended.
const char* drop_by_message(message* mail, void* object, message_act act);

// Whether the message is the runtime's own: an unreferenced notice, a stop, a request to consume
// the actor, or the call of drop_by_message.
bool is_ours(const message& mail) noexcept;

// Whether the message counts towards the limit of a bounded mailbox.
inline bool is_counted(const message& mail) noexcept {
  return !is_ours(mail) && !sched::is_owed(mail.act(nullptr, nullptr, message_act::describe));
}

// A message has left the actor's mailbox.
inline void leave_mailbox(cell& actor) noexcept {
  if (mail_bound* bound = bound_of(actor)) [[unlikely]]
    bound->leave();
}

}  // namespace troupe::actor
