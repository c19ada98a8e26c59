// sending: how a message gets into a mailbox whose owner is another thread, and how the actor gets
// to a worker if the message wakes it.
#pragma once

#include "actor/mailbox/mailbox.hpp"
#include "base/invariant.hpp"

namespace troupe::actor {

// The functions of the caller that send_from_afar uses. Once the message is in the mailbox, the
// actor may handle it and be gone: from then on nothing here may touch the actor, unless this call
// has just claimed it. Urgent mail is the runtime's own: it is tried until it is in, since it must
// not fail; it need not be wait-free (P4).
//   void refuse(Message&)           the actor is closed, or it is inactive and the end has begun:
//                                   the message becomes a dead letter
//   bool closing()                  a hint that the end has begun: inactive actors are not woken
//   bool wakes_always()             ordinary mail also wakes the actor when it is parked
//   bool enter_gate(), void leave() enter_gate() is false when the end has begun; between the two
//                                   the end waits for the caller
//   Activation& activate(Message&)  makes an activation with the message in its list; may throw,
//                                   and then it frees the message
//   void discard(Activation&)       frees an activation that is not needed; the message stays
//   void wake(Activation&)          the actor is active with this activation and in no queue:
//                                   queues it; must not throw
//   void wake_hint(seen)            the message went behind `seen`
template <int Retries = 16, class Mailbox, class Message, class Side>
void send_from_afar(Mailbox box, Message& mail, bool urgent, Side& side) {
  for (int tries = 0; tries < Retries || urgent; ++tries) {
    const auto seen = box.read();
    if (seen == Mailbox::closed || (seen == Mailbox::inactive && side.closing()))
      return side.refuse(mail);
    const bool wakes = Mailbox::is_parked(seen) && (urgent || side.wakes_always());
    if (seen != Mailbox::inactive && !wakes) {
      if (box.append(seen, mail, urgent, wakes)) return side.wake_hint(seen);
      continue;
    }
    // The message wakes the actor, unless the end has begun.
    auto* activated = seen == Mailbox::inactive ? &side.activate(mail) : nullptr;
    const bool open = side.enter_gate();
    const bool ours = open && (activated != nullptr ? box.claim(*activated)
                                                    : box.append(seen, mail, urgent, wakes));
    if (ours) side.wake(activated != nullptr ? *activated : Mailbox::activation_under(seen));
    side.leave();
    if (ours) return;
    if (activated != nullptr) side.discard(*activated);
    if (!open) return side.refuse(mail);
  }
  // Other threads changed the word at each try: now the exchange, which cannot fail. The activation
  // is made before it, since nothing may throw behind it.
  auto& spare = side.activate(mail);
  if (!side.enter_gate()) {
    side.leave();
    side.discard(spare);
    return side.refuse(mail);
  }
  // The message belongs to the mailbox now, and the owner may have handled it before the next line
  // runs: it must not stay in the list of `spare`.
  spare.clear();
  const auto seen = box.append_always(mail);
  TROUPE_REQUIRE(seen != Mailbox::closed, "M4");
  if (seen == Mailbox::inactive) {
    box.finish(mail, Mailbox::tagged(spare));
    side.wake(spare);
  } else {
    side.discard(spare);
    // A parked actor wakes for any mail this time; if there is nothing for it to do, it parks
    // again.
    if (Mailbox::is_parked(seen)) {
      side.wake(Mailbox::activation_under(seen));
    } else {
      side.wake_hint(seen);
    }
  }
  side.leave();
}

}  // namespace troupe::actor
