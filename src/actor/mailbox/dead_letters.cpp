#include "actor/mailbox/dead_letters.hpp"

#include "actor/mailbox/own_mail.hpp"
#include "actor/mailbox/watched_message.hpp"

namespace troupe::actor {

void make_dead_letter(actor_system& system, cell& actor, message& mail, bool observed) noexcept {
  if (is_counted(mail)) leave_mailbox(actor);
  make_uncounted_dead_letter(system, actor, mail, observed);
}

void make_uncounted_dead_letter(actor_system& system, const cell& actor, message& mail,
                                bool observed) noexcept {
  if (is_ours(mail)) {
    mail.act(&mail, nullptr, message_act::discard);
    return;
  }
  system.count_dead_letter();
  // The message may hold the last ref to the actor, and to its runtime when that has ended: copy
  // the needed values first.
  const failed_call where{actor.type->name, name_of(mail), id_of(actor), {}};
  mail.act(&mail, nullptr, message_act::discard);
  system.observe_dead_letter(where, observed);
}

}  // namespace troupe::actor
